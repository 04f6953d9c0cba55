#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/file.h"
#include "codec/json_writer.h"
#include "command.h"
#include "deployment_flags.h"
#include "manifest_side.h"
#include "mapview/axis.h"
#include "mapview/describe.h"
#include "mapview/html.h"
#include "mapview/svg.h"
#include "mapview/text.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using mapview::Cell;
using mapview::CellMap;

struct MapArguments {
  std::vector<std::string> sides;
  DeploymentFlags flags;
  std::string output;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t panels = 0;
};

constexpr const char* kMapHelp =
    R"(Draws which kernel serves which batch, max_q_len and max_kv_len.

A panel for each max_q_len; rows are batches, columns KV lengths. Ranges longer than
the picture are shown at values spread by ratio, both ends included. On the page, a
cell shows its kernel, plan, runner-up and modelled cost when the pointer is on it.
Fallbacks are striped, problems without a kernel crossed; letters tell kernels apart
in print. Two manifests are drawn beside each other.

Examples:
  cubist map flashinfer-0.6.13 --model gpt-oss-120b --device b200 --batch 1..256 \
      --max-q-len 1..4 --page-size 32                        in the terminal
  cubist map flashinfer-0.6.13 --model gpt-oss-120b ... -o map.html
  cubist map flashinfer-0.6.8 flashinfer-0.6.13 --model deepseek-v3 ... -o upgrade.svg
  cubist map flashinfer-0.6.13,device=b200 flashinfer-0.6.13,device=gb300 ...)";

struct Limits {
  std::size_t rows, columns, panels;
};

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Limits limits_of(const MapArguments& arguments, bool in_terminal) {
  Limits limits =
      in_terminal ? Limits{24, mapview::columns_that_fit(terminal_width()), 8} : Limits{48, 180, 8};
  if (arguments.rows > 0) limits.rows = arguments.rows;
  if (arguments.columns > 0) limits.columns = arguments.columns;
  if (arguments.panels > 0) limits.panels = arguments.panels;
  return limits;
}

Status check_output(const MapArguments& arguments) {
  const std::string& output = arguments.output;
  if (output.empty() || ends_with(output, ".html") || ends_with(output, ".svg")) return {};
  return fail(StatusCode::kInvalidArgument,
              "--output '{}': the name must end in .html or .svg; leave it out for the terminal",
              output);
}

void put_cell(const CellMap& map, const Cell& cell, JsonWriter& json) {
  const auto name = [&](std::int32_t kernel) -> std::string_view {
    return map.kernels[static_cast<std::size_t>(kernel)]->name;
  };
  json.key("kernel");
  if (cell.kernel == Cell::kNone) {
    json.raw("null");
    return;
  }
  json.value(name(cell.kernel));
  json.field("sha256", map.kernels[static_cast<std::size_t>(cell.kernel)]->sha256.hex());
  json.field("fallback", mapview::fallback_text(cell.fallback));
  json.list("grid", cell.grid).field("cluster", cell.cluster);
  json.field("num_ctas_kv", cell.num_ctas_kv).field("modelled_cost", cell.time);
  if (cell.runner_up == Cell::kNone) return;
  json.field("runner_up", name(cell.runner_up)).field("runner_up_cost", cell.runner_up_time);
}

std::string as_json(const std::vector<CellMap>& maps) {
  std::string out;
  JsonWriter json(out);
  json.begin('{').key("maps").begin('[');
  for (const CellMap& map : maps) {
    json.begin('{').field("title", map.title).field("class", map.label).key("cells").begin('[');
    std::size_t i = 0;
    for (const std::int32_t q : map.axes.max_q_len) {
      for (const std::int32_t b : map.axes.batch) {
        for (const std::int32_t kv : map.axes.max_kv_len) {
          json.begin('{').field("batch", b).field("max_q_len", q).field("max_kv_len", kv);
          put_cell(map, map.cells[i++], json);
          json.end('}');
        }
      }
    }
    json.end(']').end('}');
  }
  json.end(']').end('}');
  return out + "\n";
}

/// Class by class, the sides of a class beside each other.
Result<std::vector<CellMap>> make_maps(const MapArguments& arguments, const Limits& limits,
                                       std::vector<std::unique_ptr<ManifestSide>>& sides) {
  for (const std::string& text : arguments.sides) {
    CUBIST_ASSIGN_OR_RETURN(auto side, open_side(text));
    sides.push_back(std::move(side));
  }
  std::vector<workingset::Query> queries;
  for (const auto& side : sides) {
    CUBIST_ASSIGN_OR_RETURN(Deployment deployment, arguments.flags.read_for(side->device));
    queries.push_back(std::move(deployment.query));
  }
  std::vector<CellMap> maps;
  for (const workingset::ProblemClass& cls : queries.front().classes) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const workingset::Query& query = queries[i];
      const mapview::Axes axes{mapview::pick_values(query.batch, limits.rows),
                               mapview::pick_values(query.max_q_len, limits.panels),
                               mapview::pick_values(query.max_kv_len, limits.columns)};
      CUBIST_ASSIGN_OR_RETURN(CellMap map,
                              mapview::make_cell_map(sides[i]->table, query, cls, axes));
      map.title = fmt::format(
          "{}, {}", sides[i]->text,
          query.device.name.empty() ? fmt::format("sm {}", query.device.sm) : query.device.name);
      maps.push_back(std::move(map));
    }
  }
  return maps;
}

Status run_map(const MapArguments& arguments, const CommonOptions& common) {
  CUBIST_RETURN_IF_ERROR(check_output(arguments));
  const Limits limits = limits_of(arguments, arguments.output.empty() && !common.json);
  std::vector<std::unique_ptr<ManifestSide>> sides;  // maps borrow records from these
  CUBIST_ASSIGN_OR_RETURN(const std::vector<CellMap> maps, make_maps(arguments, limits, sides));
  const std::size_t per_row = arguments.sides.size();
  if (!arguments.output.empty()) {
    const std::string text = ends_with(arguments.output, ".svg")
                                 ? mapview::render_svg(maps, per_row)
                                 : mapview::render_html(maps, per_row);
    CUBIST_RETURN_IF_ERROR(write_file_atomically(arguments.output, text));
    if (!common.quiet && !common.json) std::printf("wrote %s\n", arguments.output.c_str());
    if (!common.json) return {};
  }
  const std::string text = common.json ? as_json(maps) : mapview::render_text(maps);
  print(text);
  return {};
}

}  // namespace

void add_map_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("map", "Draw which kernel serves which problem");
  command->footer(kMapHelp);
  auto arguments = std::make_shared<MapArguments>();
  add_store_option(*command);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command
      ->add_option("manifest", arguments->sides,
                   "One or two manifests, each perhaps with ,device=NAME or ,revision=NAME")
      ->required()
      ->expected(1, 2);
  command->add_option("-o,--output", arguments->output, "map.html or map.svg");
  command->add_option("--rows", arguments->rows, "Batches at most");
  command->add_option("--columns", arguments->columns, "KV lengths at most");
  command->add_option("--panels", arguments->panels, "Query lengths at most");
  arguments->flags.add_to(*command);
  command->callback([=] {
    if (Status status = run_map(*arguments, context.common); !status) {
      context.exit_code = report_error(context.common, status.error());
    }
  });
}

}  // namespace cubist::tools
