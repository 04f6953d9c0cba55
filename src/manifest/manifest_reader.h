#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "manifest/manifest.h"
#include "manifest/trait_fields.h"

namespace cubist {

/// Fills a Manifest from the events of a JSON parser, in one pass and without a tree. Only the
/// shape is its business: types, keys, ranges; validate_manifest looks at the rest. No event but
/// the next expected one is accepted, so no depth beyond the format's five levels is ever entered.
///
/// The event functions are those of nlohmann's SAX interface (json_events.h has two parsers that
/// call them); false stops the parser, and the reason is in take_error().
class ManifestReader {
 public:
  explicit ManifestReader(std::string_view file_name) : file_name_(file_name) {}

  Manifest take_manifest() { return std::move(manifest_); }
  /// Only after an event function gave false.
  Error take_error() { return std::move(*error_); }

  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar({.type = ScalarType::kBool, .boolean = value}); }
  bool number_integer(std::int64_t value) {
    return value == 0 ? number_unsigned(0) : scalar({.type = ScalarType::kNegative});
  }
  bool number_unsigned(std::uint64_t value) {
    return scalar({.type = ScalarType::kUnsigned, .number = value});
  }
  bool number_float(double, const std::string&) { return scalar({.type = ScalarType::kFloat}); }
  bool string(std::string_view value) {
    return scalar({.type = ScalarType::kString, .text = value});
  }
  template <class Binary>
  bool binary(Binary&) {
    return false;  // text has none
  }
  bool key(std::string_view name);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    return reject_text(error.what());
  }

 private:
  /// What is being read: the document itself, or an element of it.
  enum class Place {
    kDocument,
    kRoot,
    kPacks,
    kPack,
    kSources,
    kSource,
    kKernels,
    kKernel,
    kTraits
  };

  // The keys of each object; the numbers are positions in the lists of their names.
  enum RootKey {
    kSchema,
    kSchemaVersion,
    kManifestName,
    kDescription,
    kSerial,
    kExpires,
    kPackList
  };
  enum PackKey {
    kPackName,
    kVersion,
    kLicense,
    kFamily,
    kRevision,
    kParamLayout,
    kMinDriver,
    kSourceList,
    kKernelList
  };
  enum SourceKey { kType, kLocation, kPrefix };
  enum KernelKey { kKernelName, kPath, kSha256, kSize, kArch, kTraitObject };

  enum class ScalarType { kNull, kBool, kUnsigned, kNegative, kFloat, kString };
  /// A JSON value that is neither object nor array.
  struct Scalar {
    ScalarType type = ScalarType::kNull;
    bool boolean = false;
    std::uint64_t number = 0;
    std::string_view text = {};
  };

  /// The keys of one object: those seen (a bit each) and the one being read.
  struct ObjectState {
    std::uint64_t seen = 0;
    std::size_t field = 0;
  };

  Pack& pack() { return manifest_.packs.back(); }
  KernelRecord& kernel() { return pack().kernels.back(); }

  bool enter_key(ObjectState& state, std::size_t field, std::string_view name);
  template <std::size_t N>
  bool find_key(const std::array<std::string_view, N>& keys, ObjectState& state,
                std::string_view name);
  bool find_trait_key(std::string_view name);
  template <std::size_t N>
  bool require(const std::array<std::string_view, N>& keys, std::uint64_t optional,
               const ObjectState& state);
  bool end_root();
  bool end_pack();
  bool end_kernel();
  bool end_traits();

  bool scalar(const Scalar& value);
  bool root_value(const Scalar& value);
  bool pack_value(const Scalar& value);
  bool min_driver_value(const Scalar& value);
  bool source_value(const Scalar& value);
  bool kernel_value(const Scalar& value);
  bool trait_value(const Scalar& value);
  bool digest_value(const Scalar& value);
  bool arch_value(const Scalar& value);
  template <class Text>
  bool read_text(const Scalar& value, Text& out);
  template <class Enum>
  bool read_word(const Scalar& value, Enum& out);
  template <class Number>
  bool read_number(const Scalar& value, std::uint64_t min, std::uint64_t max, Number& out);

  static std::string_view type_name(ScalarType type);
  std::string_view current_key() const;
  std::string_view expected_type() const;
  /// JSON pointer to the object being read, or to the value of its current key.
  std::string pointer(bool with_key) const;

  template <class... Args>
  bool reject(fmt::format_string<Args...> text, Args&&... args) {
    return reject_at(pointer(true), fmt::format(text, std::forward<Args>(args)...));
  }
  bool reject_at(std::string_view pointer, std::string_view message);
  bool reject_type(std::string_view found);
  bool reject_key(std::string_view name, std::string_view known);
  bool reject_text(std::string_view message);

  std::string_view file_name_;
  Manifest manifest_;
  std::optional<Error> error_;
  std::uint64_t schema_version_ = 0;
  Place place_ = Place::kDocument;
  ObjectState root_;
  ObjectState pack_;
  ObjectState item_;  // a source or a kernel
  ObjectState traits_;
  // The pack's first kernel whose traits lack a key that attention kernels need: its place and
  // keys. Whether that is a fault depends on the pack's family, which may stand behind its kernels.
  std::optional<std::pair<std::size_t, TraitSet>> incomplete_;
};

}  // namespace cubist
