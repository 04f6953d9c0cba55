#!/usr/bin/env python3
"""Fits the model of time of the cubist_decode rules (src/selector/decode_costs.h) to a sweep, and says how good its choices are.

    python3 bench/decode/fit.py docs/results/h200-decode-sweep.json [--check HELD_OUT.json]

Prints the tables of static and of persistent kernels for decode_costs.cpp, in microseconds of an H200, and for each file how
much slower the model's choice is than the best of its problem. The formulas here and in src/selector/decode_costs.cpp are the same.
"""
import argparse
import json
import math
import pathlib
import re
import sys

SMS = 132
START, SEQUENCE, GROUP_JOIN, PART = 1.0, 3.9, 3.1, 0.65  # persistent kernels
ELEMENT = 0.94 / 128  # 64 keys, for an element of a row of K
STATIC_START, WAVE, JOIN, STATIC_PART = 1.2, 2.4, 4.6, 0.33
FAVOUR = 0.8  # a static kernel must be so much faster: its time is that of equal lengths


MORE = [0.05 * 1.15 ** i for i in range(0, 26, 2)]


def ceil_div(a, b):
    return -(-a // b)


def persistent_us(kv, batch, columns, groups, head_dim, tile, sequence):
    """Pages of 64 and more; `tile` and `sequence` over those of the model."""
    tiles = ceil_div(kv, 64) * batch
    us = START + ceil_div(tiles, groups) * tile * ELEMENT * head_dim + sequence * SEQUENCE * max(1.0, batch / groups)
    if groups > 1:
        us += GROUP_JOIN + PART * max(1.0, groups / batch)
    return ceil_div(columns, SMS) * us


def static_us(kv, batch, columns, split, alone, more, per_sm):
    tiles = ceil_div(ceil_div(kv, 64), split)
    full, rest = divmod(columns * batch * split, per_sm * SMS)
    us = STATIC_START + full * (WAVE + tiles * (alone + more * (per_sm - 1)))
    if rest:
        us += WAVE + tiles * (alone + more * (ceil_div(rest, SMS) - 1))
    return us + (JOIN + STATIC_PART * split if split > 1 else 0.0)


def key_of(row):
    found = re.search(r"_kv_(\w+?)_o_\w+?_h(\d+)_q(\d+)_(stream_)?sm", row["kernel"])
    return found[1], int(found[2]), int(found[3]), bool(found[4])


def model(row, table):
    kv_type, head_dim, tile, persistent = key_of(row)
    columns = 8 * ceil_div(row["s_qo"], row.get("num_tokens_per_cta_q", row["s_qo"]))
    costs = table[kv_type, head_dim, tile, persistent]
    formula = persistent_us if persistent else static_us
    return formula(row["kv"], row["batch"], columns, row["num_ctas_kv"], *((head_dim, *costs) if persistent else costs))


def candidates(persistent):
    if persistent:
        for tile in (0.4 * 1.04 ** i for i in range(36)):
            for sequence in (0.08 * i for i in range(45)):
                yield tile, sequence
        return
    for per_sm in (1, 2, 3, 4):
        for alone in (0.25 * 1.07 ** i for i in range(0, 36, 2)):
            for more in (step for step in MORE if step <= alone):
                yield alone, more, per_sm


def fit(rows):
    kernels, table = {}, {}
    for row in rows:
        kernels.setdefault(key_of(row), []).append(row)
    for key, members in sorted(kernels.items()):
        best = None
        for costs in candidates(key[3]):
            table[key] = costs
            error = sum(abs(math.log(model(row, table) / row["us"])) for row in members)
            if best is None or error < best[0]:
                best = (error, costs)
        table[key] = best[1]
    return table


def shipped():
    """The rows of src/selector/decode_costs.cpp."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/selector/decode_costs.cpp").read_text(encoding="utf-8")
    table = {}
    for row in re.findall(r"^ *\{(\d+(?:, [\d.]+)+)\},$", text, re.M):
        bits, head_dim, tile, *costs = (float(part) if "." in part else int(part) for part in row.split(", "))
        table["e4m3" if bits == 8 else "bf16", head_dim, tile, len(costs) == 2] = tuple(costs)
    for (kv, head_dim, tile, persistent), costs in sorted(table.items(), reverse=True):
        if persistent:  # a missing tile costs what the next larger one does
            table.setdefault((kv, head_dim, tile // 2, True), costs)
    return table


def chosen_of(ways):
    """The ways that the rules compare: of static kernels the smallest tile that holds all rows, else the largest."""
    def suits(row):
        tile, rows = key_of(row)[2], row["s_qo"] * (12 if row["shape"] == "S1" else 8)
        return (0, tile) if tile >= rows else (1, -tile)
    static = [row for row in ways if not key_of(row)[3]]
    best = min(map(suits, static), default=None)
    return [row for row in ways if key_of(row)[3] or suits(row) == best]


def judge(rows, table):
    problems = {}
    for row in rows:
        problems.setdefault((row["dtype"], row["shape"], row["s_qo"], row["kv"], row["batch"]), []).append(row)
    worse = []
    for problem, ways in problems.items():
        def cost(row):
            return model(row, table) / (FAVOUR if not key_of(row)[3] else 1.0)
        chosen = min(chosen_of(ways), key=cost)
        fastest = min(ways, key=lambda row: row["us"])
        worse.append((chosen["us"] / fastest["us"], problem, chosen, fastest))
    worse.sort(key=lambda item: item[0])
    ratios = [item[0] for item in worse]
    print("%d problems: choice over best: median %.3f, nine in ten %.3f, worst %.3f; within 5 %%: %.0f %%" % (
        len(ratios), ratios[len(ratios) // 2], ratios[len(ratios) * 9 // 10], ratios[-1],
        100 * sum(r <= 1.05 for r in ratios) / len(ratios)))
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep")
    parser.add_argument("--check")
    parser.add_argument("--shipped", action="store_true", help="judge the table of decode_costs.cpp, not the fitted one")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    with open(args.sweep, encoding="utf-8") as file:
        rows = json.load(file)
    table = fit(rows)
    table.update({(kv, d, t, persistent): costs for (kv, d, t, persistent), costs in shipped().items()
                  if args.shipped or (kv, d, t, persistent) not in table})
    for persistent in (False, True):
        print("persistent" if persistent else "static")
        for (kv_type, head_dim, tile, kind), costs in sorted(table.items()):
            if kind == persistent:
                bits = 8 if kv_type == "e4m3" else 16
                print("    {%d, %d, %d, %s}," % (bits, head_dim, tile, ", ".join("%.3g" % cost for cost in costs)))
    worse = judge(rows, table)
    if args.check:
        with open(args.check, encoding="utf-8") as file:
            worse += judge(json.load(file), table)
    if args.verbose:
        for ratio, problem, chosen, fastest in sorted(worse, key=lambda item: item[0])[-25:]:
            print("%.2f" % ratio, problem, chosen["kernel"][13:], chosen["num_ctas_kv"], chosen["us"], "|",
                  fastest["kernel"][13:], fastest["num_ctas_kv"], fastest["us"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
