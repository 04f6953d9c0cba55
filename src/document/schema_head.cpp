#include "document/schema_head.h"

#include <limits>
#include <string>

#include "document/json_text.h"

namespace cubist {

void read_schema(const DocumentNode& root, std::string_view schema, std::int32_t version) {
  if (!root.is_object()) root.complain("expected an object");
  std::string found;
  if (const DocumentNode at = root.required("schema"); at.read(found) && found != schema) {
    at.complain(fmt::format("found {}, expected {}", in_quotes(found), in_quotes(schema)));
  }
  std::int32_t number = 0;
  if (const DocumentNode at = root.required("schema_version");
      at.read_integer(number, 1, std::numeric_limits<std::int32_t>::max()) && number != version) {
    at.complain(fmt::format("version {} is not known here, {} is; a newer cubist may read it",
                            number, version));
  }
}

}  // namespace cubist
