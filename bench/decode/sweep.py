#!/usr/bin/env python3
"""Times every way to launch each of a grid of problems: what the selector's model of time is fitted to and judged by.

    LIBCUBIST=... python3 bench/decode/sweep.py --out docs/results/h200-decode-sweep.json

A row: the problem, what was launched (kernel, num_tokens_per_cta_q, num_ctas_kv) and its time; `chosen` marks the selector's own choice. Prints how
much slower the choice is than the best of its problem.
"""
import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cubist_peer  # noqa: E402
from bench_decode import S1, S2  # noqa: E402
from point import Point, Pool, graph_us  # noqa: E402

SPLITS = (1, 2, 4, 8, 16)


def points(dtypes, held_out):
    lengths, batches = ((64, 512, 2048, 8192, 32768), (1, 4, 8, 16, 40, 64, 128))
    if held_out:
        lengths, batches = ((200, 1500, 6000), (2, 6, 12, 24, 48, 100))
    for dtype in dtypes:
        for shape in (S1, S2):
            for kv in lengths:
                for batch in batches:
                    for s_qo in (1, 2, 4, 8) if not held_out else (1, 3, 8):
                        if kv * batch <= 1 << 20:
                            yield Point(shape, dtype, 64, kv, batch, s_qo)


def persistent_ways(point):
    """(kernel, tokens a CTA, groups): of either kind the smallest tile for all rows, and tiles that need two CTAs."""
    group = point.hq // point.hkv
    for holds in (True, False):
        for kind in (range(64, 129) if point.dtype != "fp8" else (), range(8, 97) if point.dtype == "fp8" else range(8, 33)):
            tiles = [t for t in cubist_peer.persistent_tiles(point) if t in kind and (t >= group * point.s_qo) == holds]
            if not tiles:
                continue
            tile = min(tiles) if holds else max(tiles)
            tokens = max(1, tile // group)
            ctas_q = -(-point.s_qo // tokens)
            if tile < group or ctas_q > 2:
                continue
            tokens = -(-point.s_qo // ctas_q)
            columns = point.hkv * ctas_q
            yield cubist_peer.kernel_name(point, tile, True), tokens, max(1, min(132 // columns, point.batch * -(-point.kv // 64)))


def ways(point):
    """(kernel, tokens a CTA, num_ctas_kv) worth timing."""
    rows = point.hq // point.hkv * point.s_qo
    tile = next(t for t in (16, 32, 64, 128) if t >= rows)
    for split in SPLITS:
        ctas = point.batch * point.hkv * split
        if split == 1 or (ctas <= 1300 and split * 256 <= point.kv + 255):
            yield cubist_peer.kernel_name(point, tile), point.s_qo, split
    yield from persistent_ways(point)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--dtypes", default="bf16,fp8")
    parser.add_argument("--held-out", action="store_true", help="other lengths, batches and token counts than the fit's")
    parser.add_argument("--part", default="0/1", help="i/n: only every n-th problem, from the i-th")
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    start, pool, rows, worse = time.monotonic(), Pool(), [], []
    lib = cubist_peer.library()
    first, step = map(int, args.part.split("/"))
    for point in list(points(args.dtypes.split(","), args.held_out))[first::step]:
        if time.monotonic() - start > args.seconds:
            break
        point.allocate(pool, "HND")
        plan = lib.plan(lib.select(cubist_peer.problem_of(point)))
        chosen = (plan.kernel.decode(), plan.num_tokens_per_cta_q, plan.num_ctas_kv)
        chosen = (chosen[0], min(chosen[1], point.s_qo), chosen[2])
        times = {way: graph_us(cubist_peer.make_planned(point, *way), point, 5) for way in {*ways(point), chosen}}
        worse.append(times[chosen] / min(times.values()))
        for way, us in sorted(times.items()):
            rows.append(dict(shape=point.shape[0], dtype=point.dtype, kv=point.kv, batch=point.batch, s_qo=point.s_qo,
                             kernel=way[0], num_tokens_per_cta_q=way[1], num_ctas_kv=way[2], us=round(us, 2),
                             chosen=way == chosen))
        for made in ("slots", "q", "out", "page_table", "indices", "seqlens"):
            point.__dict__.pop(made, None)
    args.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    worse.sort()
    print("%d problems, %d rows, %.0f s; choice over best: median %.3f, nine in ten %.3f, worst %.3f; within 5 %%: %d" % (
        len(worse), len(rows), time.monotonic() - start, worse[len(worse) // 2], worse[len(worse) * 9 // 10], worse[-1],
        sum(w <= 1.05 for w in worse)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
