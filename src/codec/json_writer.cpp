#include "codec/json_writer.h"

namespace cubist {

JsonWriter& JsonWriter::value(std::string_view text) {
  comma();
  out_.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out_.append("\\\"");
        break;
      case '\\':
        out_.append("\\\\");
        break;
      case '\n':
        out_.append("\\n");
        break;
      case '\t':
        out_.append("\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr char kDigits[] = "0123456789abcdef";
          out_.append("\\u00");
          out_.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
          out_.push_back(kDigits[c & 0xf]);
        } else {
          out_.push_back(c);
        }
    }
  }
  out_.push_back('"');
  return *this;
}

}  // namespace cubist
