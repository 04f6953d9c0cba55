#include "mapview/html.h"

#include <cmath>
#include <map>

#include "codec/json_writer.h"
#include "mapview/describe.h"
#include "mapview/legend.h"
#include "mapview/svg.h"

namespace cubist::mapview {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Which kernel serves which problem</title>
<style>
body{font:14px system-ui,sans-serif;margin:16px;color:#111;background:#fff}
h1{font-size:18px;margin:0 0 8px}
.row{display:flex;gap:16px;align-items:flex-start;margin-bottom:12px}
.row svg{min-width:380px;height:auto}
.hit{fill:transparent;cursor:crosshair}
table{border-collapse:collapse;margin:0 0 16px;font-size:13px}
td,th{padding:2px 10px 2px 0;text-align:left;vertical-align:top}
.c{display:inline-block;width:26px;text-align:center;border:1px solid #333;font-weight:600;font-size:11px}
#tip{position:fixed;right:12px;bottom:12px;pointer-events:none;max-width:46em;background:#fff;border:1px solid #333;
 padding:8px 10px;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;box-shadow:2px 2px 6px #0003}
@media print{#tip{display:none}}
</style></head><body>
<h1>Which kernel serves which problem</h1>
<p>Each cell is the problem of its labelled lengths. Letters name kinds of kernels; striped cells are
fallbacks (the rules find nothing and another kernel serves), crossed ones have no kernel. Point at a
cell to see its kernel, plan, runner-up and modelled cost on every map of its row.</p>
)";

// D holds maps: {t: title, b, q, l: axes, n: kernel names, k, r: kernel and runner-up, c, d: their
// costs, f: fallback, p: plans' numbers, P: plans}. Nothing of it is trusted as markup: the tip is
// text.
constexpr std::string_view kScript = R"JS(
const tip=document.getElementById('tip');
function about(m,q,b,l){
  const M=D[m];if(!M||!(q in M.q)||!(b in M.b)||!(l in M.l))return '';
  const i=(q*M.b.length+b)*M.l.length+l;
  let s=M.t+'\nbatch '+M.b[b]+', max_q_len '+M.q[q]+', max_kv_len '+M.l[l]+'\n';
  if(M.k[i]<0)return s+'no kernel';
  s+=M.n[M.k[i]]+'\n'+M.P[M.p[i]];
  if(M.c[i]>0)s+='\nmodelled cost '+M.c[i];
  if(M.r[i]>=0)s+='\nrunner-up '+M.n[M.r[i]]+' ('+M.d[i]+')';
  if(M.f[i])s+='\nfallback: '+F[M.f[i]];
  return s;
}
function show(m,q,b,l){
  tip.hidden=false;
  const row=D.map((M,i)=>i).filter(i=>Math.floor(i/R)===Math.floor(m/R));
  tip.textContent=row.map(i=>about(i,q,b,l)).filter(Boolean).join('\n\n');
}
document.addEventListener('mousemove',e=>{
  const h=e.target.closest&&e.target.closest('.hit');if(!h)return;
  const r=h.getBoundingClientRect(),M=D[+h.dataset.map];
  const l=Math.min(M.l.length-1,Math.max(0,Math.floor((e.clientX-r.left)/r.width*M.l.length)));
  const y=Math.min(M.b.length-1,Math.max(0,Math.floor((e.clientY-r.top)/r.height*M.b.length)));
  // Where the pointer is not.
  const low=e.clientY>innerHeight/2;
  tip.style.top=low?'12px':'auto';tip.style.bottom=low?'auto':'12px';
  show(+h.dataset.map,+h.dataset.q,M.b.length-1-y,l);
});
function fromHash(){
  const p=location.hash.slice(1).split('/').map(Number);
  if(p.length===4&&p.every(Number.isInteger))show(...p);
}
addEventListener('hashchange',fromHash);fromHash();
)JS";

/// Strings inside a script element: "<" could begin an end tag or a comment, whatever the quotes.
std::string script_safe(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

template <class Get>
void put_cells(std::string_view key, const CellMap& map, Get get, JsonWriter& json) {
  json.key(key).begin('[');
  for (const Cell& cell : map.cells) json.value(get(cell));
  json.end(']');
}

/// Costs are compared, not added up: whole numbers are enough.
std::int64_t rounded(float time) { return std::llround(time); }

std::string plan_text(const Cell& cell) {
  return fmt::format("grid {} x {} x {}, {} CTAs per KV sequence, cluster {}", cell.grid[0],
                     cell.grid[1], cell.grid[2], cell.num_ctas_kv, cell.cluster);
}

void put_plans(const CellMap& map, JsonWriter& json) {
  std::vector<std::string> plans;
  std::map<std::string, std::size_t> numbers;
  json.key("p").begin('[');
  for (const Cell& cell : map.cells) {
    const std::string text = cell.kernel == Cell::kNone ? std::string() : plan_text(cell);
    const auto [at, added] = numbers.try_emplace(text, plans.size());
    if (added) plans.push_back(text);
    json.value(at->second);
  }
  json.end(']');
  json.list("P", plans);
}

void put_map(const CellMap& map, JsonWriter& json) {
  json.begin('{').field("t", map.title + " | " + map.label);
  json.list("b", map.axes.batch).list("q", map.axes.max_q_len).list("l", map.axes.max_kv_len);
  json.key("n").begin('[');
  for (const KernelRecord* record : map.kernels) json.value(record->name);
  json.end(']');
  put_cells(
      "k", map, [](const Cell& c) { return c.kernel; }, json);
  put_cells(
      "r", map, [](const Cell& c) { return c.runner_up; }, json);
  put_cells(
      "c", map, [](const Cell& c) { return rounded(c.time); }, json);
  put_cells(
      "d", map, [](const Cell& c) { return rounded(c.runner_up_time); }, json);
  put_cells(
      "f", map, [](const Cell& c) { return static_cast<int>(c.fallback); }, json);
  put_plans(map, json);
  json.end('}');
}

std::string data_script(const std::vector<CellMap>& maps, std::size_t per_row) {
  std::string data = fmt::format("const R={},D=", per_row);
  JsonWriter json(data);
  json.begin('[');
  for (const CellMap& map : maps) put_map(map, json);
  json.end(']');
  data += ",F=[";
  for (int reason = 0; reason < 4; ++reason) {
    data += fmt::format("{}\"{}\"", reason == 0 ? "" : ",",
                        fallback_text(static_cast<FallbackReason>(reason)));
  }
  return script_safe(data + "];");
}

std::string picture(const Legend& legend, std::size_t number, const CellMap& map, bool first) {
  const MapDrawing drawing = draw_map(legend, number, map, false);
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
      "aria-label=\"{2}\">\n",
      drawing.width, drawing.height, escaped(map.title + " " + map.label));
  if (first) out += drawing_definitions();
  out += drawing.body;
  for (std::size_t q = 0; q < drawing.panels.size(); ++q) {
    const PanelGeometry& panel = drawing.panels[q];
    out += fmt::format(
        "<rect class=\"hit\" data-map=\"{}\" data-q=\"{}\" x=\"{}\" y=\"{}\" "
        "width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
        number, q, panel.left, panel.top,
        panel.cell_width * static_cast<double>(map.axes.max_kv_len.size()),
        panel.cell_height * static_cast<double>(map.axes.batch.size()));
  }
  return out + "</svg>\n";
}

std::string pattern_row(std::string_view pattern, std::string_view text, std::size_t cells) {
  return fmt::format(
      "<tr><td><svg width=\"28\" height=\"16\"><rect x=\"1\" y=\"1\" width=\"26\" height=\"14\" "
      "fill=\"url(#{})\" stroke=\"#333\"/></svg></td><td>{}</td><td>{}</td><td></td></tr>\n",
      pattern, text, cells);
}

std::string legend_table(const Legend& legend) {
  std::string out = "<table><tr><th></th><th>kind</th><th>cells</th><th>kernels</th></tr>\n";
  for (const LegendEntry& entry : legend.entries()) {
    if (entry.cells == 0) continue;
    std::string names = fmt::format("<details><summary>{}</summary>", entry.names.size());
    for (const std::string& name : entry.names) names += escaped(name) + "<br>";
    out += fmt::format(
        "<tr><td><span class=\"c\" style=\"background:{};color:{}\">{}</span></td>"
        "<td>{}</td><td>{}</td><td>{}</details></td></tr>\n",
        entry.fill, entry.ink, entry.code, escaped(entry.kind), entry.cells, names);
  }
  if (legend.fallbacks() > 0) {
    out += pattern_row("fallback", "striped: fallback, the rules find nothing and another serves",
                       legend.fallbacks());
  }
  if (legend.gaps() > 0) out += pattern_row("gap", "crossed: no kernel", legend.gaps());
  return out + "</table>\n";
}

}  // namespace

std::string render_html(const std::vector<CellMap>& maps, std::size_t per_row) {
  const Legend legend(maps);
  std::string out = std::string(kHead) + legend_table(legend);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (i % per_row == 0) out += i == 0 ? "<div class=\"row\">\n" : "</div><div class=\"row\">\n";
    out += picture(legend, i, maps[i], i == 0);
  }
  out += "</div>\n<div id=\"tip\" hidden></div>\n<script>\n";
  return out + data_script(maps, per_row) + std::string(kScript) + "</script></body></html>\n";
}

}  // namespace cubist::mapview
