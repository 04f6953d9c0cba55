#include "trust/document_head.h"

#include <string>

#include "document/json_text.h"

namespace cubist::trust {

void read_head(const DocumentNode& root, std::string_view schema, std::string_view what,
               std::int64_t& serial) {
  if (!root.is_object()) root.complain("expected an object");
  std::string found;
  if (root.required("schema").read(found) && found != schema) {
    root.member("schema").complain(
        fmt::format("is {}; {} says {}", in_quotes(found), what, schema));
  }
  std::int32_t version = 0;
  root.required("schema_version").read_integer(version, 1, 1);
  root.required("serial").read_integer(serial, 1, kMaxSerial);
}

}  // namespace cubist::trust
