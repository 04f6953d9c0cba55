#include "trust/document_head.h"

#include "document/schema_head.h"

namespace cubist::trust {

void read_head(const DocumentNode& root, std::string_view schema, std::int64_t& serial) {
  read_schema(root, schema);
  root.required("serial").read_integer(serial, 1, kMaxSerial);
}

}  // namespace cubist::trust
