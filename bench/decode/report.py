#!/usr/bin/env python3
"""Makes docs/results/h200-decode-table.md and docs/results/h200-decode.svg from bench_decode.py's JSON.

    python3 bench/decode/report.py docs/results/h200-decode.json
"""
import json
import math
import pathlib
import sys


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def cell_line(cell):
    ours, bound, peer, alone = (cell[k] for k in ("ours_us", "bound_us", "best_peer_us", "ungrouped_us"))
    kernel = "stream" if "stream" in cell.get("kernel", "") else "static"
    kernel += " q" + cell.get("kernel", "_q?_").split("_h")[-1].split("_q")[-1].split("_")[0]
    return "| %s | %d | %d | %s | %.1f | %.1f | %.1f %% | %s | %s | %s |" % (
        cell["shape"], cell["s_qo"], cell["batch"], kernel, ours, bound, 100 * bound / ours,
        "%.1f %s" % (peer, cell["best_peer"]) if peer else "-", "%.2f" % (peer / ours) if peer else "-",
        "%.2f" % (alone / ours) if alone else "-")


def section_text(name, title, cells):
    cells = [c for c in cells if c["section"] == name and c["ours_us"]]
    if not cells:
        return ""
    lines = ["## " + title, ""]
    ratios = [c["best_peer_us"] / c["ours_us"] for c in cells if c["best_peer_us"]]
    if ratios:
        lines += ["Best peer over ours: geometric mean %.3f, worst %.2f, %d of %d cells below 0.98." % (
            geometric_mean(ratios), min(ratios), sum(r < 0.98 for r in ratios), len(ratios)), ""]
    lines += ["| shape | s_qo | batch | kernel | us | bound us | of bound | best peer us | peer / ours | ungrouped / ours |",
              "|---|---|---|---|---|---|---|---|---|---|"]
    order = sorted(cells, key=lambda c: (c["shape"], c["s_qo"], c["batch"]))
    return "\n".join(lines + [cell_line(c) for c in order]) + "\n\n"


def other_text(cells):
    rows = ["## Pages, layouts and features", "",
            "| what | shape | s_qo | batch | page | layout | us | bound us | of bound |", "|---|---|---|---|---|---|---|---|---|"]
    for c in cells:
        if c["section"] in ("pages", "features") and c["ours_us"]:
            rows.append("| %s | %s | %d | %d | %d | %s | %.1f | %.1f | %.1f %% |" % (
                c.get("name", "bf16"), c["shape"], c["s_qo"], c["batch"], c["page"], c["layout"], c["ours_us"], c["bound_us"],
                100 * c["bound_us"] / c["ours_us"]))
    return "\n".join(rows) + "\n"


def plot(cells):
    """Fraction of the bound per cell: ours filled, the best peer hollow."""
    cells = sorted((c for c in cells if c["section"] == "bf16" and c["ours_us"]),
                   key=lambda c: (c["shape"], c["s_qo"], c["batch"]))
    step, left, top, height = 22, 60, 40, 300
    width = left + step * len(cells) + 20
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (
        width, top + height + 70), '<rect width="100%" height="100%" fill="white"/>',
        '<text x="%d" y="20">bf16, KV 8192, page 64: time of reading the KV cache over time of the step (filled: Cubist, hollow: '
        'best peer)</text>' % left]
    for tenth in range(0, 11, 2):
        y = top + height * (1 - tenth / 10)
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="20" y="%.1f">%.1f</text>' % (
            left, width - 20, y, y, y + 4, tenth / 10))
    for i, c in enumerate(cells):
        x = left + step * (i + 0.5)
        out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="#1f5fa8"/>' % (
            x, top + height * (1 - min(1.05, c["bound_us"] / c["ours_us"]))))
        if c["best_peer_us"]:
            out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="none" stroke="#c0392b"/>' % (
                x, top + height * (1 - min(1.05, c["bound_us"] / c["best_peer_us"]))))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x, top + height + 16, c["batch"]))
        if i % 5 == 0:
            out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#888"/>' % (
                x - step / 2, x - step / 2, top, top + height + 40))
            out.append('<text x="%.1f" y="%d">%s s_qo %d</text>' % (x - step / 2 + 3, top + height + 36, c["shape"], c["s_qo"]))
    out.append('<text x="20" y="%d">batch</text></svg>' % (top + height + 16))
    return "\n".join(out) + "\n"


def main():
    source = pathlib.Path(sys.argv[1])
    result = json.loads(source.read_text())
    cells = result["cells"]
    text = "# Decode kernels on one %s: table\n\nMade by `bench/decode/report.py` from `%s` (%s).\n\n" % (
        result["gpu"], source.name, result["date"])
    text += section_text("bf16", "bf16, KV 8192, page 64", cells)
    text += section_text("fp8", "e4m3 KV, bf16 Q, KV 8192, page 64", cells)
    text += section_text("short", "bf16, KV 2048, page 64", cells)
    text += other_text(cells)
    source.with_name("h200-decode-table.md").write_text(text)
    source.with_suffix(".svg").write_text(plot(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
