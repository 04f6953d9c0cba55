#include "importer/meta_table.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "importer/cpp_lexer.h"

namespace cubist {
namespace {

// Far above anything published (41 members, 2 structs): keeps hostile text from growing quadratic.
constexpr std::size_t kMaxMembers = 256;
constexpr std::size_t kMaxStructs = 64;

struct StructDeclaration {
  std::string_view name;
  std::vector<std::string_view> members;
  bool plain = true;  ///< data members only: can be the struct of a table
};

class MetaParser {
 public:
  MetaParser(std::string_view header, std::string_view file) : lexer_(header, file) {}

  Result<std::vector<MetaTable>> parse();

 private:
  using Kind = CppToken::Kind;

  Status advance();
  tl::unexpected<Error> error(std::string_view message) const {
    return lexer_.error(token_.line, message);
  }
  const StructDeclaration* find_struct(std::string_view name) const;

  Status parse_struct();
  Status parse_member(StructDeclaration& declaration);
  Status skip_braces();
  Status parse_table(const StructDeclaration& declaration);
  Result<std::optional<std::uint64_t>> parse_dimension();
  Status parse_rows(MetaTable& table);
  Status parse_row(MetaTable& table);
  Status parse_word(MetaTable& table);
  Status parse_value(MetaTable& table);

  CppLexer lexer_;
  CppToken token_;
  std::vector<StructDeclaration> structs_;
  std::vector<MetaTable> tables_;
};

Status MetaParser::advance() {
  CUBIST_ASSIGN_OR_RETURN(token_, lexer_.next());
  return {};
}

const StructDeclaration* MetaParser::find_struct(std::string_view name) const {
  const auto found = std::find_if(structs_.begin(), structs_.end(),
                                  [&](const StructDeclaration& s) { return s.name == name; });
  return found == structs_.end() ? nullptr : &*found;
}

Result<std::vector<MetaTable>> MetaParser::parse() {
  CUBIST_RETURN_IF_ERROR(advance());
  while (token_.kind != Kind::kEnd) {
    if (token_.is("struct")) {
      CUBIST_RETURN_IF_ERROR(parse_struct());
      continue;
    }
    const StructDeclaration* declaration =
        token_.kind == Kind::kWord ? find_struct(token_.text) : nullptr;
    CUBIST_RETURN_IF_ERROR(advance());
    if (declaration != nullptr) CUBIST_RETURN_IF_ERROR(parse_table(*declaration));
  }
  return std::move(tables_);
}

/// At "struct". Anything but "struct NAME {" is left to the caller.
Status MetaParser::parse_struct() {
  CUBIST_RETURN_IF_ERROR(advance());
  if (token_.kind != Kind::kWord) return {};
  StructDeclaration declaration;
  declaration.name = token_.text;
  const std::uint32_t line = token_.line;
  CUBIST_RETURN_IF_ERROR(advance());
  if (!token_.is('{')) return {};
  CUBIST_RETURN_IF_ERROR(advance());
  while (!token_.is('}')) {
    if (token_.kind == Kind::kEnd) {
      return lexer_.error(line, fmt::format("the text ends inside struct {}", declaration.name));
    }
    CUBIST_RETURN_IF_ERROR(parse_member(declaration));
  }
  CUBIST_RETURN_IF_ERROR(advance());
  if (find_struct(declaration.name) != nullptr) {
    return lexer_.error(line, fmt::format("struct {} is declared twice", declaration.name));
  }
  if (structs_.size() == kMaxStructs) {
    return lexer_.error(line, fmt::format("more than {} structs in one header", kMaxStructs));
  }
  structs_.push_back(std::move(declaration));
  return {};
}

/// A declaration up to its ";": the member's name is the last word before it or an initialiser.
Status MetaParser::parse_member(StructDeclaration& declaration) {
  std::string_view name;
  bool in_name = true;
  while (!token_.is(';') && !token_.is('}') && token_.kind != Kind::kEnd) {
    if (token_.is('{')) {
      // A nested type, a function's body or a brace initialiser.
      declaration.plain = false;
      CUBIST_RETURN_IF_ERROR(skip_braces());
      continue;
    }
    if (token_.is('(') || token_.is('[') || token_.is(',')) declaration.plain = false;
    if (token_.is('=')) in_name = false;
    if (in_name && token_.kind == Kind::kWord) name = token_.text;
    CUBIST_RETURN_IF_ERROR(advance());
  }
  if (!token_.is(';')) {
    declaration.plain = false;
    return {};
  }
  if (!name.empty()) {
    if (declaration.members.size() == kMaxMembers) {
      return error(
          fmt::format("struct {} has more than {} members", declaration.name, kMaxMembers));
    }
    declaration.members.push_back(name);
  }
  return advance();
}

/// From "{" to behind the "}" that belongs to it.
Status MetaParser::skip_braces() {
  const std::uint32_t line = token_.line;
  std::size_t depth = 0;
  do {
    if (token_.kind == Kind::kEnd) return lexer_.error(line, "this '{' is never closed");
    if (token_.is('{')) ++depth;
    if (token_.is('}')) --depth;
    CUBIST_RETURN_IF_ERROR(advance());
  } while (depth != 0);
  return {};
}

/// Behind the struct's name. Reads "NAME[] = {rows}"; leaves anything else to the caller.
Status MetaParser::parse_table(const StructDeclaration& declaration) {
  if (token_.kind != Kind::kWord) return {};
  MetaTable table;
  table.struct_name = declaration.name;
  table.name = token_.text;
  const std::uint32_t line = token_.line;
  CUBIST_RETURN_IF_ERROR(advance());
  if (!token_.is('[')) return {};
  CUBIST_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> declared, parse_dimension());
  if (!token_.is('=')) return {};
  if (!declaration.plain || declaration.members.empty()) {
    return lexer_.error(line, fmt::format("table {}: struct {} has more than plain members",
                                          table.name, declaration.name));
  }
  table.columns = declaration.members;
  CUBIST_RETURN_IF_ERROR(advance());
  if (!token_.is('{')) return error(fmt::format("'{{' expected: table {} begins", table.name));
  CUBIST_RETURN_IF_ERROR(advance());
  CUBIST_RETURN_IF_ERROR(parse_rows(table));
  if (declared && *declared != table.num_rows()) {
    return lexer_.error(line, fmt::format("table {} is declared with {} rows and has {}",
                                          table.name, *declared, table.num_rows()));
  }
  tables_.push_back(std::move(table));
  return {};
}

/// "[]" or "[17]"; a dimension that is no number is not compared.
Result<std::optional<std::uint64_t>> MetaParser::parse_dimension() {
  std::optional<std::uint64_t> declared;
  CUBIST_RETURN_IF_ERROR(advance());
  if (token_.kind == Kind::kNumber) {
    std::uint64_t number = 0;
    const char* end = token_.text.data() + token_.text.size();
    if (std::from_chars(token_.text.data(), end, number).ptr == end) declared = number;
  }
  while (!token_.is(']')) {
    if (token_.kind == Kind::kEnd) return error("the text ends inside '['");
    CUBIST_RETURN_IF_ERROR(advance());
  }
  CUBIST_RETURN_IF_ERROR(advance());
  return declared;
}

/// Behind the table's "{"; ends behind its "}".
Status MetaParser::parse_rows(MetaTable& table) {
  while (!token_.is('}')) {
    if (token_.kind == Kind::kEnd) {
      return error(fmt::format("the text ends inside table {}, behind {} rows", table.name,
                               table.num_rows()));
    }
    if (!token_.is('{')) {
      return error(fmt::format("table {}: '{{' of row {} expected, found '{}'", table.name,
                               table.num_rows(), token_.text));
    }
    CUBIST_RETURN_IF_ERROR(parse_row(table));
    if (token_.is(',')) {
      CUBIST_RETURN_IF_ERROR(advance());
    } else if (!token_.is('}')) {
      return error(fmt::format("table {}: ',' or '}}' expected behind row {}", table.name,
                               table.num_rows() - 1));
    }
  }
  return advance();
}

Status MetaParser::parse_row(MetaTable& table) {
  const std::size_t row = table.num_rows();
  const std::size_t first = table.values.size();
  const std::uint32_t line = token_.line;
  table.lines.push_back(line);
  CUBIST_RETURN_IF_ERROR(advance());
  while (!token_.is('}')) {
    CUBIST_RETURN_IF_ERROR(parse_value(table));
    if (table.values.size() - first > table.columns.size()) break;
    if (!token_.is(',')) break;
    CUBIST_RETURN_IF_ERROR(advance());
  }
  const std::size_t count = table.values.size() - first;
  if (count != table.columns.size() || !token_.is('}')) {
    if (count == table.columns.size()) {
      return error(fmt::format("table {}: '}}' expected at the end of row {}", table.name, row));
    }
    return lexer_.error(
        line, fmt::format("table {}: row {} has {}{} values, struct {} has {} members", table.name,
                          row, count > table.columns.size() ? "over " : "",
                          std::min(count, table.columns.size()), table.struct_name,
                          table.columns.size()));
  }
  return advance();
}

/// A name, or the last part of a qualified one (Data_type::DATA_TYPE_E4M3).
Status MetaParser::parse_word(MetaTable& table) {
  while (true) {
    const CppToken word = token_;
    CUBIST_RETURN_IF_ERROR(advance());
    if (!token_.is(':')) {
      table.values.push_back({MetaValue::Kind::kWord, word.text});
      return {};
    }
    while (token_.is(':')) CUBIST_RETURN_IF_ERROR(advance());
    if (token_.kind != Kind::kWord) return error("a name expected behind '::'");
  }
}

Status MetaParser::parse_value(MetaTable& table) {
  if (token_.kind == Kind::kWord) return parse_word(table);
  switch (token_.kind) {
    case Kind::kNumber:
      table.values.push_back({MetaValue::Kind::kNumber, token_.text});
      break;
    case Kind::kString:
      table.values.push_back({MetaValue::Kind::kString, token_.text});
      break;
    default:
      return error(fmt::format(
          "table {}: a constant expected in row {}, found {}", table.name, table.num_rows() - 1,
          token_.kind == Kind::kEnd ? "the end of the text" : fmt::format("'{}'", token_.text)));
  }
  return advance();
}

}  // namespace

Result<std::vector<MetaTable>> parse_meta_tables(std::string_view header, std::string_view file) {
  return MetaParser(header, file).parse();
}

}  // namespace cubist
