#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace cubist {

/// A place in a JSON document, present or not. Cheap to copy; lives as long as its Document.
///
/// Reading never fails at once: complaints ("presets.json:12: /models/3/layers: found a string,
/// expected ...", with the line where the text has more than one) are kept in the Document, and
/// what was to be read keeps its value. Ask Document::status() when all is read.
class DocumentNode {
 public:
  /// Whether the document has this place, with anything but null in it.
  bool present() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  /// JSON pointer, for messages.
  const std::string& pointer() const { return pointer_; }
  /// "presets.json:12"; without the line where the text has just one. Takes a look at the text.
  std::string place() const;

  /// The member of an object; complains if this is something else. A missing member is a node that
  /// is not present.
  DocumentNode member(std::string_view key) const;
  /// The same, complaining when it is missing.
  DocumentNode required(std::string_view key) const;
  /// The items of an array, in order; complains if this is something else.
  std::vector<DocumentNode> items() const;
  /// The keys of an object, in order.
  std::vector<std::string> keys() const;

  // Each leaves `out` alone and gives false when the node is absent or complained about.
  bool read(std::string& out) const;
  bool read(bool& out) const;
  bool read_number(double& out) const;
  bool read_integer(std::int64_t& out, std::int64_t min, std::int64_t max) const;
  bool read_integer(std::int32_t& out, std::int64_t min, std::int64_t max) const;
  bool read_strings(std::vector<std::string>& out) const;

  /// Complains about every member of an object that is not in `known`, and about null as one that
  /// is, or as an item of one: whoever wrote it meant something, and it would be read as if it were
  /// not there.
  void allow_only(const std::vector<std::string_view>& known) const;
  void complain(std::string_view message) const;

 private:
  friend class Document;
  struct Shared;
  DocumentNode(std::shared_ptr<Shared> shared, const nlohmann::json* value, std::string pointer)
      : shared_(std::move(shared)), value_(value), pointer_(std::move(pointer)) {}
  void complain_type(std::string_view expected) const;
  void complain_if_null() const;
  /// The same at the line of `at`, a part of this.
  void complain(std::string_view message, const DocumentNode& at) const;

  std::shared_ptr<Shared> shared_;
  const nlohmann::json* value_;
  std::string pointer_;
};

/// A JSON text that people write: presets, rules, model configurations, working sets.
class Document {
 public:
  /// errors  kInvalidArgument: no JSON (line and column), a key twice in one object, nesting deeper
  ///         than 64
  static Result<Document> parse(std::string_view text, std::string_view file_name);
  /// The same from a file. errors  also kNotFound, kIo, and kIntegrity above `max_bytes`
  static Result<Document> load(const std::string& path, std::uint64_t max_bytes = 64ULL << 20);

  DocumentNode root() const;
  /// kInvalidArgument with the first complaint, or success.
  Status status() const;
  /// All of them, in the order in which they were made; at most kMaxComplaints.
  const std::vector<Error>& complaints() const;
  static constexpr std::size_t kMaxComplaints = 100;

 private:
  explicit Document(std::shared_ptr<DocumentNode::Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<DocumentNode::Shared> shared_;
};

}  // namespace cubist
