#include <algorithm>
#include <string>

#include "mapview/describe.h"
#include "mapview/html.h"
#include "mapview/legend.h"
#include "mapview/svg.h"
#include "mapview/text.h"
#include "support/catch.h"

using namespace cubist;
using namespace cubist::mapview;

namespace {

KernelRecord kernel(const std::string& name, std::uint16_t tile_q) {
  KernelRecord record;
  record.name = name;
  record.traits.tile_q = tile_q;
  record.traits.kernel_type = KernelType::kSwapsMmaAbGeneration;
  return record;
}

/// Two batches by three lengths: one kernel, another one as fallback, and a gap.
struct Example {
  KernelRecord small = kernel("small", 8);
  KernelRecord wide = kernel("wide</script><b>", 64);
  CellMap map;

  Example() {
    map.title = "made up & <small>";
    map.label = "one class";
    map.axes = {{1, 2}, {1}, {10, 20, 30}};
    map.kernels = {&small, &wide};
    map.cells.resize(6);
    for (Cell& cell : map.cells) {
      cell.kernel = 0;
      cell.runner_up = 1;
      cell.time = 640;
      cell.runner_up_time = 700;
      cell.grid = {1, 8, 1};
    }
    map.cells[1].kernel = 1;
    map.cells[1].runner_up = 0;
    map.cells[1].fallback = FallbackReason::kRuleFindsNoKernel;
    map.cells[2] = Cell{};
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "the legend counts cells, orders kinds by them, and gives each a letter and two colours") {
  const Example example;
  const Legend legend({example.map, example.map});
  REQUIRE(legend.entries().size() == 2);
  CHECK(legend.entries()[0].code == "A");
  CHECK(legend.entries()[0].cells == 8);
  CHECK(legend.entries()[1].cells == 2);
  CHECK(legend.entries()[0].fill != legend.entries()[1].fill);
  CHECK(legend.gaps() == 2);
  CHECK(legend.fallbacks() == 2);
  CHECK(legend.entry_of(0, 1) == legend.entry_of(1, 1));
  CHECK(code_of(25) == "Z");
  CHECK(code_of(26) == "A1");
}

TEST_CASE("a terminal shows letters, lower case for fallbacks and dots for gaps") {
  const Example example;
  const std::string text = render_text({example.map});
  CHECK(contains(text, "      2 AAA\n"));
  CHECK(contains(text, "      1 Ab.\n"));
  CHECK(contains(text, "max_q_len 1"));
  CHECK(contains(text, "tile_q 64"));
  CHECK(contains(text, "cells without a kernel"));
  CHECK(columns_that_fit(80) < 80);
  CHECK(columns_that_fit(0) > 0);
}

TEST_CASE("a drawing merges cells, stripes fallbacks, crosses gaps and says what each is") {
  const Example example;
  const std::string svg = render_svg({example.map}, 1);
  CHECK(count(svg, "<svg") == 1);
  CHECK(count(svg, "</svg>") == 1);
  CHECK(count(svg, "<g ") == count(svg, "</g>"));
  // Below: three runs; above: one.
  CHECK(count(svg, "<title>batch") == 4);
  CHECK(contains(svg, "<title>batch 2, max_q_len 1, max_kv_len 10..30&#10;small"));
  CHECK(contains(svg, "modelled cost 640&#10;runner-up"));
  CHECK(contains(svg, "fallback: rule_finds_no_kernel"));
  CHECK(contains(svg, "no kernel</title>"));
  CHECK(count(svg, "fill=\"url(#fallback)\"") == 2);  // the cell, and the legend
  CHECK(count(svg, "fill=\"url(#gap)\"") == 2);
  CHECK(contains(svg, "made up &amp; &lt;small&gt;"));
  CHECK_FALSE(contains(svg, "</script>"));
}

TEST_CASE("two maps are beside each other, more of them below") {
  const Example example;
  const std::string one_row = render_svg({example.map, example.map}, 2);
  const std::string two_rows = render_svg({example.map, example.map}, 1);
  const auto width_of = [](const std::string& svg) {
    return std::stod(svg.substr(svg.find("viewBox=\"0 0 ") + 13));
  };
  CHECK(width_of(one_row) > width_of(two_rows) / 2);
  CHECK(count(render_html({example.map, example.map}, 1), "class=\"row\"") == 2);
  CHECK(count(render_html({example.map, example.map}, 2), "class=\"row\"") == 1);
}

TEST_CASE("a page needs nothing else, and names in it are never markup") {
  const Example example;
  const std::string html = render_html({example.map, example.map}, 2);
  CHECK_FALSE(contains(html, "http://"));
  CHECK_FALSE(contains(html, "https://"));
  CHECK_FALSE(contains(html, "src="));
  CHECK_FALSE(contains(html, "<b>"));
  CHECK(count(html, "<script>") == 1);
  CHECK(count(html, "</script>") == 1);
  CHECK(count(html, "class=\"hit\"") == 2);
  CHECK(contains(html, "\"k\":[0,1,-1,0,0,0]"));
  CHECK(contains(html, "\"c\":[640,640,0,640,640,640]"));
}

TEST_CASE("text for pages keeps neither markup nor control characters") {
  CHECK(escaped("a<b>&\"c\x1b[2J") == "a&lt;b&gt;&amp;&quot;c[2J");
}
