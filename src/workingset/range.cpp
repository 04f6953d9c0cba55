#include "workingset/range.h"

#include <algorithm>

#include "base/count.h"
#include "document/json_text.h"

namespace cubist::workingset {
namespace {

tl::unexpected<Error> bad_range(std::string_view field, std::string_view text,
                                std::string_view reason) {
  return fail(StatusCode::kInvalidArgument,
              "{} {}: {}; give a number from 1, a range '1..256', '..131072' (from 1), or several "
              "with commas; k stands for 1,024",
              field, in_quotes(text), reason);
}

Result<std::int32_t> parse_number(std::string_view field, std::string_view text) {
  const auto value = parse_count(text);
  if (!value) return bad_range(field, text, "not a whole number");
  if (*value < 1 || *value > INT32_MAX) return bad_range(field, text, "outside 1..2147483647");
  return static_cast<std::int32_t>(*value);
}

Result<Range> parse_range(std::string_view field, std::string_view text) {
  Range range;
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    CUBIST_ASSIGN_OR_RETURN(range.first, parse_number(field, text));
    range.last = range.first;
    return range;
  }
  if (dots > 0) {
    CUBIST_ASSIGN_OR_RETURN(range.first, parse_number(field, text.substr(0, dots)));
  }
  if (dots + 2 == text.size()) return bad_range(field, text, "the range has no end");
  CUBIST_ASSIGN_OR_RETURN(range.last, parse_number(field, text.substr(dots + 2)));
  if (range.last < range.first) return bad_range(field, text, "the range ends before it starts");
  return range;
}

}  // namespace

Result<std::vector<Range>> parse_ranges(std::string_view field, std::string_view text) {
  std::vector<Range> parts;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    CUBIST_ASSIGN_OR_RETURN(const Range part, parse_range(field, rest.substr(0, comma)));
    parts.push_back(part);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> joined;
  for (const Range& part : parts) {
    if (!joined.empty() && std::int64_t{joined.back().last} + 1 >= part.first) {
      joined.back().last = std::max(joined.back().last, part.last);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

Status validate_ranges(std::string_view field, const std::vector<Range>& ranges) {
  if (ranges.empty()) {
    return fail(StatusCode::kInvalidArgument, "{} has no range; give at least one", field);
  }
  std::int64_t before = 0;
  for (const Range& range : ranges) {
    if (range.first <= before || range.last < range.first) {
      return fail(StatusCode::kInvalidArgument,
                  "{} has the range {}..{}; ranges start at 1 or later, end where they start or "
                  "later, and ascend",
                  field, range.first, range.last);
    }
    before = range.last;
  }
  return {};
}

std::string to_string(const std::vector<Range>& ranges) {
  std::string out;
  for (const Range& range : ranges) {
    if (!out.empty()) out += ',';
    out += range.first == range.last ? fmt::format("{}", range.first)
                                     : fmt::format("{}..{}", range.first, range.last);
  }
  return out;
}

std::vector<Range> cut(const Range& range, const std::vector<std::int32_t>& ends) {
  std::vector<std::int32_t> inside;
  for (const std::int32_t end : ends) {
    if (end >= range.first && end < range.last) inside.push_back(end);
  }
  std::sort(inside.begin(), inside.end());
  std::vector<Range> pieces;
  std::int32_t first = range.first;
  for (const std::int32_t end : inside) {
    if (end < first) continue;
    pieces.push_back({first, end});
    first = end + 1;
  }
  pieces.push_back({first, range.last});
  return pieces;
}

}  // namespace cubist::workingset
