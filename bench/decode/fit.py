#!/usr/bin/env python3
"""Fits the model of time of the cubist_decode rules (src/selector/decode_costs.h) to a sweep, and says how good its choices are.

    python3 bench/decode/fit.py docs/results/h200-decode-sweep.json [--check HELD_OUT.json]

Prints the table of static kernels for decode_costs.h, in microseconds of an H200, and for each file how much slower the
model's choice is than the best of its problem. The formulas here and in src/selector/decode_costs.cpp are the same.
"""
import argparse
import json
import math
import re
import sys

SMS = 132
TILE_US = {128: 0.94, 64: 0.47}  # persistent kernels: a tile of 64 bf16 keys in one SM
START, SEQUENCE, GROUP_JOIN, PART = 1.0, 3.9, 3.1, 0.65
STATIC_START, WAVE, JOIN, STATIC_PART = 1.2, 2.4, 4.6, 0.33
FAVOUR = 0.8  # a static kernel must be so much faster: its time is that of equal lengths


MORE = [0.05 * 1.15 ** i for i in range(0, 26, 2)]


def ceil_div(a, b):
    return -(-a // b)


def persistent_us(kv, batch, columns, groups, tile_us):
    tiles = ceil_div(kv, 64) * batch
    us = START + ceil_div(tiles, groups) * tile_us + SEQUENCE * max(1.0, batch / groups)
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
    columns = 8
    if persistent:
        return persistent_us(row["kv"], row["batch"], columns, row["num_ctas_kv"], TILE_US[head_dim])
    return static_us(row["kv"], row["batch"], columns, row["num_ctas_kv"], *table[kv_type, head_dim, tile])


def fit(rows):
    groups, table = {}, {}
    for row in rows:
        key = key_of(row)
        if not key[3]:
            groups.setdefault(key[:3], []).append(row)
    steps = [0.25 * 1.07 ** i for i in range(0, 36, 2)]
    for key, members in sorted(groups.items()):
        best = None
        for per_sm in (1, 2, 3, 4):
            for alone in steps:
                for more in (s for s in MORE if s <= alone):
                    table[key] = (alone, more, per_sm)
                    error = sum(abs(math.log(model(row, table) / row["us"])) for row in members)
                    if best is None or error < best[0]:
                        best = (error, alone, more, per_sm)
        table[key] = best[1:]
    return table


def judge(rows, table):
    problems = {}
    for row in rows:
        problems.setdefault((row["dtype"], row["shape"], row["s_qo"], row["kv"], row["batch"]), []).append(row)
    worse = []
    for problem, ways in problems.items():
        def cost(row):
            return model(row, table) / (FAVOUR if not key_of(row)[3] else 1.0)
        chosen = min(ways, key=cost)
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
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    with open(args.sweep, encoding="utf-8") as file:
        rows = json.load(file)
    table = fit(rows)
    for (kv_type, head_dim, tile), (alone, more, per_sm) in sorted(table.items()):
        print("    {%d, %d, %d, %.2fF, %.2fF, %d}," % (8 if kv_type == "e4m3" else 16, head_dim, tile, alone, more, per_sm))
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
