#include "trust/key_statement.h"

#include <algorithm>

#include "document/document.h"
#include "trust/document_head.h"

// { "schema": "cubist.keys", "schema_version": 1, "serial": 2,
//   "add": [ "RW..." ], "retire": [ "RW..." ] }

namespace cubist::trust {
namespace {

void read_keys(const DocumentNode& node, std::vector<PublicKey>& out) {
  for (const DocumentNode& item : node.items()) {
    std::string line;
    if (!item.read(line)) {
      item.complain("expected a public key, RW...");
      continue;
    }
    if (const auto key = parse_public_key(line, "key")) {
      if (std::find(out.begin(), out.end(), *key) != out.end()) item.complain("occurs twice");
      out.push_back(*key);
    } else {
      item.complain(key.error().message());
    }
  }
}

}  // namespace

Result<KeyStatement> parse_key_statement(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only({"schema", "schema_version", "serial", "add", "retire"});
  KeyStatement statement;
  statement.file = file_name;
  read_head(root, "cubist.keys", statement.serial);
  read_keys(root.member("add"), statement.add);
  read_keys(root.member("retire"), statement.retire);
  for (const PublicKey& key : statement.add) {
    if (std::find(statement.retire.begin(), statement.retire.end(), key) !=
        statement.retire.end()) {
      root.member("add").complain(fmt::format("key {} is retired too", key.id.text()));
    }
  }
  if (statement.add.empty() && statement.retire.empty()) {
    root.complain("neither add nor retire: the statement says nothing");
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return statement;
}

}  // namespace cubist::trust
