#include "manifest/json_events.h"

#include <simdjson.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cubist {
namespace {

namespace dom = simdjson::dom;

static_assert(kRoomBehindText >= simdjson::SIMDJSON_PADDING);

bool give(dom::element element, ManifestReader& reader);

bool give_object(const dom::object& object, ManifestReader& reader) {
  if (!reader.start_object(object.size())) return false;
  for (const dom::key_value_pair field : object) {
    if (!reader.key(field.key) || !give(field.value, reader)) return false;
  }
  return reader.end_object();
}

bool give_array(const dom::array& array, ManifestReader& reader) {
  if (!reader.start_array(array.size())) return false;
  for (const dom::element element : array) {
    if (!give(element, reader)) return false;
  }
  return reader.end_array();
}

/// As deep as the reader allows: it takes no object or array where the format has none.
bool give(dom::element element, ManifestReader& reader) {
  switch (element.type()) {
    case dom::element_type::OBJECT:
      return give_object(dom::object(element), reader);
    case dom::element_type::ARRAY:
      return give_array(dom::array(element), reader);
    case dom::element_type::STRING:
      return reader.string(std::string_view(element));
    case dom::element_type::INT64: {
      const std::int64_t value(element);
      // "-0" is 0 to one parser and an integer with a sign to the other; the reader takes both.
      return value < 0 ? reader.number_integer(value)
                       : reader.number_unsigned(static_cast<std::uint64_t>(value));
    }
    case dom::element_type::UINT64:
      return reader.number_unsigned(std::uint64_t(element));
    case dom::element_type::DOUBLE:
      return reader.number_float(double(element), {});
    case dom::element_type::BOOL:
      return reader.boolean(bool(element));
    case dom::element_type::NULL_VALUE:
      return reader.null();
  }
  return false;
}

}  // namespace

bool read_json(const std::string& text, ManifestReader& reader) {
  dom::parser parser;
  dom::element document;
  const bool copy = text.capacity() - text.size() < simdjson::SIMDJSON_PADDING;
  if (parser.parse(text.data(), text.size(), copy).get(document) != simdjson::SUCCESS) {
    return false;
  }
  return give(document, reader);
}

bool explain_json(std::string_view text, ManifestReader& reader) {
  if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &reader)) return false;
  // To this parser a NUL is the end of the text, whatever follows.
  const std::size_t nul = text.find('\0');
  if (nul == std::string_view::npos) return true;
  const struct {
    std::string message;
    const char* what() const { return message.c_str(); }
  } error{fmt::format("parse error at byte {}: a NUL, which no JSON text has", nul + 1)};
  return reader.parse_error(nul, {}, error);
}

}  // namespace cubist
