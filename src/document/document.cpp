#include "document/document.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "document/json_text.h"
#include "document/pointer_line.h"
#include "document/syntax_check.h"

namespace cubist {

// NOLINTNEXTLINE(bugprone-exception-escape): of the library's tree, whose move throws nothing
struct DocumentNode::Shared {
  nlohmann::json tree;
  std::string text;
  std::string file_name;
  std::vector<Error> complaints;
};

namespace {

std::string_view kind_of(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null:
      return "null";
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::string:
      return "a string";
    case nlohmann::json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

}  // namespace

bool DocumentNode::present() const { return value_ != nullptr && !value_->is_null(); }
bool DocumentNode::is_object() const { return present() && value_->is_object(); }
bool DocumentNode::is_array() const { return present() && value_->is_array(); }
bool DocumentNode::is_string() const { return present() && value_->is_string(); }
bool DocumentNode::is_number() const { return present() && value_->is_number(); }

std::string DocumentNode::place() const {
  const std::string& text = shared_->text;
  if (text.find('\n') >= text.find_last_not_of(" \t\r\n")) return shared_->file_name;
  return fmt::format("{}:{}", shared_->file_name, line_of_pointer(text, pointer_));
}

void DocumentNode::complain(std::string_view message) const { complain(message, *this); }

void DocumentNode::complain(std::string_view message, const DocumentNode& at) const {
  if (shared_->complaints.size() == Document::kMaxComplaints) return;
  shared_->complaints.emplace_back(
      StatusCode::kInvalidArgument,
      fmt::format("{}: {}: {}", at.place(), pointer_.empty() ? std::string("(document)") : pointer_,
                  message));
}

void DocumentNode::complain_type(std::string_view expected) const {
  complain(fmt::format("found {}, expected {}", kind_of(*value_), expected));
}

DocumentNode DocumentNode::member(std::string_view key) const {
  const nlohmann::json* found = nullptr;
  if (is_object()) {
    const auto at = value_->find(key);
    if (at != value_->end()) found = &*at;
  } else if (present()) {
    complain_type("an object");
  }
  return DocumentNode(shared_, found, pointer_ + step_of_pointer(key));
}

DocumentNode DocumentNode::required(std::string_view key) const {
  DocumentNode node = member(key);
  if (!node.present()) node.complain("the key is missing");
  return node;
}

std::vector<DocumentNode> DocumentNode::items() const {
  std::vector<DocumentNode> nodes;
  if (!present()) return nodes;
  if (!value_->is_array()) {
    complain_type("an array");
    return nodes;
  }
  for (std::size_t i = 0; i < value_->size(); ++i) {
    nodes.push_back(DocumentNode(shared_, &(*value_)[i], fmt::format("{}/{}", pointer_, i)));
  }
  return nodes;
}

std::vector<std::string> DocumentNode::keys() const {
  std::vector<std::string> keys;
  if (!is_object()) return keys;
  for (const auto& member : value_->items()) keys.push_back(member.key());
  return keys;
}

bool DocumentNode::read(std::string& out) const {
  if (!present()) return false;
  if (!value_->is_string()) {
    complain_type("a string");
    return false;
  }
  out = value_->get_ref<const std::string&>();
  return true;
}

bool DocumentNode::read(bool& out) const {
  if (!present()) return false;
  if (!value_->is_boolean()) {
    complain_type("true or false");
    return false;
  }
  out = value_->get<bool>();
  return true;
}

bool DocumentNode::read_number(double& out) const {
  if (!present()) return false;
  if (!value_->is_number()) {
    complain_type("a number");
    return false;
  }
  const double number = value_->get<double>();
  if (!std::isfinite(number)) {
    complain("the number is not finite");
    return false;
  }
  out = number;
  return true;
}

bool DocumentNode::read_integer(std::int64_t& out, std::int64_t min, std::int64_t max) const {
  if (!present()) return false;
  if (!value_->is_number_integer()) {
    complain_type("a whole number");
    return false;
  }
  const bool huge = value_->is_number_unsigned() &&
                    value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t number = huge ? 0 : value_->get<std::int64_t>();
  if (huge || number < min || number > max) {
    complain(fmt::format("is {}; it must be {}..{}", value_->dump(), min, max));
    return false;
  }
  out = number;
  return true;
}

bool DocumentNode::read_integer(std::int32_t& out, std::int64_t min, std::int64_t max) const {
  std::int64_t wide = 0;
  if (!read_integer(wide, std::max<std::int64_t>(min, INT32_MIN),
                    std::min<std::int64_t>(max, INT32_MAX))) {
    return false;
  }
  out = static_cast<std::int32_t>(wide);
  return true;
}

bool DocumentNode::read_strings(std::vector<std::string>& out) const {
  if (!present()) return false;
  std::vector<std::string> strings;
  for (const DocumentNode& item : items()) {
    std::string text;
    if (!item.read(text)) {
      if (!item.present()) item.complain("found null, expected a string");
      return false;
    }
    strings.push_back(std::move(text));
  }
  if (!is_array()) return false;
  out = std::move(strings);
  return true;
}

void DocumentNode::complain_if_null() const {
  if (value_->is_null()) complain("found null; give it a value, or leave it out");
  if (!value_->is_array()) return;
  for (const DocumentNode& item : items()) {
    if (item.value_->is_null()) item.complain_if_null();
  }
}

void DocumentNode::allow_only(const std::vector<std::string_view>& known) const {
  for (const std::string& key : keys()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) {
      complain(fmt::format("unknown key {}; known here are {}", in_quotes(key), joined(known)),
               member(key));
    } else {
      member(key).complain_if_null();
    }
  }
}

Result<Document> Document::parse(std::string_view text, std::string_view file_name) {
  CUBIST_RETURN_IF_ERROR(check_json_syntax(text, file_name));
  auto shared = std::make_shared<DocumentNode::Shared>();
  shared->text = text;
  shared->file_name = file_name;
  shared->tree = nlohmann::json::parse(text, nullptr, false);
  return Document(std::move(shared));
}

Result<Document> Document::load(const std::string& path, std::uint64_t max_bytes) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, max_bytes));
  return parse(text, path);
}

DocumentNode Document::root() const { return DocumentNode(shared_, &shared_->tree, ""); }

Status Document::status() const {
  if (shared_->complaints.empty()) return {};
  return tl::unexpected<Error>(Error(shared_->complaints.front()));
}

const std::vector<Error>& Document::complaints() const { return shared_->complaints; }

}  // namespace cubist
