#!/usr/bin/env python3
"""Times every way to launch each of a grid of problems: what the selector's model of time is fitted to and judged by.

    LIBCUBIST=... python3 bench/decode/sweep.py --out docs/results/h200-decode-sweep.json

A row: the problem, what was launched (kernel, num_ctas_kv) and its time; `chosen` marks the selector's own choice. Prints how
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

SPLITS = (1, 2, 3, 4, 6, 8, 16)


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


def ways(point):
    """(kernel, num_ctas_kv) worth timing."""
    rows = point.hq // point.hkv * point.s_qo
    tile = next(t for t in (16, 32, 64, 128) if t >= rows)
    for split in SPLITS:
        ctas = point.batch * point.hkv * split
        if split == 1 or (ctas <= 1300 and split * 256 <= point.kv + 255):
            yield cubist_peer.kernel_name(point, tile), split
    if point.dtype == "bf16":
        groups = max(1, min(132 // point.hkv, point.batch * -(-point.kv // 64)))
        yield cubist_peer.kernel_name(point, max(tile, 64), True), groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--dtypes", default="bf16,fp8")
    parser.add_argument("--held-out", action="store_true", help="other lengths, batches and token counts than the fit's")
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    start, pool, rows, worse = time.monotonic(), Pool(), [], []
    lib = cubist_peer.library()
    for point in points(args.dtypes.split(","), args.held_out):
        if time.monotonic() - start > args.seconds:
            break
        point.allocate(pool, "HND")
        plan = lib.plan(lib.select(cubist_peer.problem_of(point)))
        chosen = (plan.kernel.decode(), plan.num_ctas_kv)
        times = {way: graph_us(cubist_peer.make_planned(point, way[0], point.s_qo, way[1]), point, 5)
                 for way in {*ways(point), chosen}}
        worse.append(times[chosen] / min(times.values()))
        for (kernel, split), us in sorted(times.items()):
            rows.append(dict(shape=point.shape[0], dtype=point.dtype, kv=point.kv, batch=point.batch, s_qo=point.s_qo,
                             kernel=kernel, num_ctas_kv=split, us=round(us, 2), chosen=(kernel, split) == chosen))
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
