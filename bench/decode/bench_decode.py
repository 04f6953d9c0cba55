#!/usr/bin/env python3
"""Times Cubist's decode kernels on this GPU, beside the kernels of others where they are at hand.

    LIBCUBIST=build/release/src/libcubist.so python3 bench/decode/bench_decode.py --out docs/results/h200-decode.json
    ... --kit KIT/peers.py       also times that kit's peers, in the same run on the same tensors

Every kernel of a step is included and host time is not: calls are captured in a CUDA graph, each over other KV slots, so that
the KV cache comes from device memory; the median of 11 replays counts. Cubist runs by its C API, as the selector chose, with
programmatic dependent launch. `ungrouped_us`: the same kind of kernel with one new token
a CTA; `ungrouped_best_us`: of both kinds the faster. `bound_us`: time of a kernel that
only reads as many bytes (read_bound.cu, nvcc), linear between sizes. Needs PyTorch.

A kit is a Python file with PEERS {name: (make, layout, dtypes, mla, ...)}, make(point) giving run(i); see point.py.
"""
import argparse
import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402

import cubist_peer  # noqa: E402
from point import Point, Pool, graph_us, ragged_lengths  # noqa: E402

S1, S2 = ("S1", 96, 8, 128), ("S2", 64, 8, 64)
BATCHES, TOKENS = (8, 16, 32, 40, 64), (1, 2, 4, 8)
BOUND_MIB = (8, 16, 32, 64, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048)
WRONG_ABOVE = {"bf16": 0.01, "fp16": 0.01, "fp8": 0.08}
# Before each timing of section "rested", ours and peers alike: work without pause takes the GPU to its power limit, and
# its clock down by a fifth. Unit: seconds.
REST_S = 0.5
WRONG_OUTPUT_ABOVE = {"e4m3": 0.04, "nvfp4": 0.15}


def grid(dtype, kv, page=64, batches=BATCHES, tokens=TOKENS):
    return [Point(shape, dtype, page, kv, b, s) for shape in (S1, S2) for b in batches for s in tokens]


def features():
    """What a table of the usual shapes would hide, at batch 32: (name, point)."""
    half = dict(kv=8192, batch=32)
    yield "head_dim 256", Point(("32/4/256", 32, 4, 256), **half)
    yield "fp16", Point(S1, dtype="fp16", **half)
    yield "window 4095", Point(S1, window_left=4095, **half)
    yield "sinks", Point(S2, sinks=True, **half)
    yield "lse", Point(S1, lse=True, **half)
    yield "page 1", Point(S1, page=1, **half)
    yield "head ratio 5", Point(("40/8/128", 40, 8, 128), **half)
    yield "head ratio 7", Point(("28/4/128", 28, 4, 128), **half)
    for shape in (S1, S2):
        yield "e4m3 output", Point(shape, output="e4m3", **half)
        yield "nvfp4 output", Point(shape, output="nvfp4", **half)
        for s_qo in (1, 4, 8):
            yield "e4m3 Q", Point(shape, dtype="fp8", q="fp8", s_qo=s_qo, **half)
        yield "batch-invariant", Point(shape, batch_invariant=True, **half)
    yield "e4m3 Q, nvfp4 output", Point(S1, dtype="fp8", q="fp8", output="nvfp4", **half)
    yield "e4m3 KV, batch-invariant", Point(S1, dtype="fp8", batch_invariant=True, **half)
    yield "batch-invariant, one sequence", Point(S1, kv=8192, batch=1, batch_invariant=True)
    for s_qo in (1, 4):
        lens = ragged_lengths(32)
        yield "ragged", Point(S1, batch=32, s_qo=s_qo, lens=lens)
        mean = sum(lens) // len(lens) // 64 * 64
        yield "ragged's total in equal lengths", Point(S1, batch=32, s_qo=s_qo, kv=mean)


def read_bound():
    """[(bytes, us)] of the read kernel, or nothing without nvcc."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "read_bound"
        built = subprocess.run(["nvcc", "-O3", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-o", program,
                                HERE / "read_bound.cu"], capture_output=True, text=True, check=False)
        if built.returncode:
            sys.exit("bench_decode: nvcc could not build read_bound.cu:\n" + built.stderr)
        told = subprocess.run([program, *map(str, BOUND_MIB)], capture_output=True, text=True, check=True).stdout
    return [(int(n), float(us)) for n, us in (line.split() for line in told.splitlines())]


def bound_us(table, size):
    for (a, us_a), (b, us_b) in zip(table, table[1:]):
        if a <= size <= b:
            return us_a + (us_b - us_a) * (size - a) / (b - a)
    nearest = table[0] if size < table[0][0] else table[-1]
    return nearest[1] * size / nearest[0]


def load_kit(path):
    if not path:
        return {}
    spec = importlib.util.spec_from_file_location("decode_peers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: peer for name, peer in module.PEERS.items() if not peer.mla}


def timed(make, layout, point, pool, rest=0.0):
    """(us, error), or the reason why not."""
    try:
        point.allocate(pool, layout)
        run = make(point)
        given = run(0)
        torch.cuda.synchronize()
        error = point.error(point.out if given is None else given)
        if not error <= max(WRONG_ABOVE[point.dtype], WRONG_OUTPUT_ABOVE.get(point.options.get("output"), 0)):
            return None, "wrong: relative error %.2e" % error
        time.sleep(rest)
        return graph_us(run, point), error
    except Exception as reason:  # a peer may fail in any way; the others go on
        return None, ("%s: %s" % (type(reason).__name__, reason)).replace("\n", " ")[:200]


def measure(point, pool, table, peers, layout, with_ungrouped, rest):
    row = dict(shape=point.shape[0], batch=point.batch, s_qo=point.s_qo, kv=point.kv, dtype=point.dtype, page=point.page,
               layout=layout, bound_us=round(bound_us(table, point.kv_bytes), 2), ours_us=None, best_peer_us=None,
               best_peer=None, ungrouped_us=None)
    us, note = timed(cubist_peer.make, layout, point, pool, rest)
    if us is None:
        row["failed"] = note
    else:
        row.update(ours_us=round(us, 2), kernel=cubist_peer.chosen_kernel(point), relerr=float("%.2e" % note))
    if with_ungrouped:
        tried = [timed(make, "HND", point, pool)[0]
                 for make in (cubist_peer.make_ungrouped, cubist_peer.make_ungrouped_persistent)]
        # The same kernel, or the faster of both kinds.
        row["ungrouped_us"] = round(tried["stream" in row["kernel"]], 2)
        row["ungrouped_best_us"] = round(min(us for us in tried if us is not None), 2)
    row["peers"] = {}
    for name, peer in peers.items():
        if point.dtype not in peer.dtypes or point.options:
            continue
        us, _ = timed(peer.make, peer.layout, point, pool, rest)
        if us is not None:
            row["peers"][name] = round(us, 2)
    if row["peers"]:
        row["best_peer"], row["best_peer_us"] = min(row["peers"].items(), key=lambda item: item[1])
    return row


def plan_of(sections):
    """(section, name, point, layout, with peers, with ungrouped), the usual grid first."""
    if "bf16" in sections:
        for point in grid("bf16", 8192):
            yield "bf16", "", point, "HND", True, True
    if "fp8" in sections:
        for point in grid("fp8", 8192):
            yield "fp8", "", point, "HND", True, False
    if "short" in sections:
        for point in grid("bf16", 2048):
            yield "short", "", point, "HND", True, False
    if "pages" in sections:
        for layout, page in itertools.product(("HND", "NHD"), (16, 64)):
            for point in grid("bf16", 8192, page, (8, 40), (1, 4)):
                yield "pages", "", point, layout, False, False
    if "rested" in sections:
        for point in grid("bf16", 8192, tokens=(8,)):
            yield "rested", "", point, "HND", True, False
    if "features" in sections:
        for name, point in features():
            yield "features", name, point, "HND", False, False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kit")
    parser.add_argument("--peers", help="only these of the kit, with commas")
    parser.add_argument("--sections", default="bf16,rested,fp8,short,pages,features")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no measurement later than this")
    args = parser.parse_args()
    start = time.monotonic()
    table = read_bound()
    peers = load_kit(args.kit)
    if args.peers:
        peers = {name: peers[name] for name in args.peers.split(",")}
    properties = torch.cuda.get_device_properties(0)
    result = dict(gpu=properties.name, sms=properties.multi_processor_count, torch=torch.__version__, date=time.strftime("%F"),
                  read_bound=[[n, us] for n, us in table], cells=[])
    pool, skipped = Pool(), 0
    for section, name, point, layout, with_peers, with_ungrouped in plan_of(args.sections.split(",")):
        if time.monotonic() - start > args.seconds:
            skipped += 1
            continue
        row = dict(section=section, **({"name": name} if name else {}))
        row.update(measure(point, pool, table, peers if with_peers else {}, layout, with_ungrouped,
                           REST_S if section == "rested" else 0.0))
        result["cells"].append(row)
        for made in ("slots", "q", "out", "page_table", "indices", "seqlens", "lse", "sinks", "o_sf"):
            point.__dict__.pop(made, None)
        lines = ",\n".join(json.dumps(cell) for cell in result["cells"])
        head = json.dumps({key: value for key, value in result.items() if key != "cells"})
        args.out.write_text(head[:-1] + ', "cells": [\n' + lines + "\n]}\n")
    print("%d cells, %d skipped, %.0f s" % (len(result["cells"]), skipped, time.monotonic() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
