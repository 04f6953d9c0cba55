#!/usr/bin/env python3
"""Times Cubist's MLA decode kernels (keys of 576, values their first 512, one copy) on this GPU, beside others' where they are
at hand.

    LIBCUBIST=build/release/src/libcubist.so python3 bench/decode/bench_mla.py --out mla.json [--kit KIT/peers.py]

The method is bench_decode.py's: graphs of calls over cold KV slots, the median of 11 replays, every kernel of a call, Cubist by
its C API as the selector chose, results checked. The kit's MLA peers run on the same tensors. Sections: `main`, 128 heads, bf16;
`heads`, 16 to 64 heads a GPU; `e4m3`, an e4m3 cache with bf16 Q. Every section is run `--rounds` times, and all figures are kept.
"""
import argparse
import importlib.util
import itertools
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch  # noqa: E402

import cubist_peer  # noqa: E402
from bench_decode import WRONG_ABOVE, bound_us, read_bound  # noqa: E402
from point import MAX_CALLS, MIN_CALLS, L2_BYTES, Point, Pool, graph_us  # noqa: E402

HEAD_DIM, VALUES = 576, 512


class MlaPoint(Point):
    """A Point whose slots are (kv,), [pages, page, 576]."""

    def __init__(self, heads, batch, kv, s_qo, dtype="bf16"):
        super().__init__(("MLA%d" % heads, heads, 1, HEAD_DIM), dtype, 64, kv, batch, s_qo)
        self.d_v, self.mla, self.scale = VALUES, True, (128 + 64) ** -0.5
        self.kv_bytes //= 2

    def allocate(self, pool, layout="NHD"):
        super().allocate(pool, layout)
        n, flat = self.slot_elements, pool.get(self.dtype)[0]
        count = min(flat.numel() // n, max(MAX_CALLS, -(-4 * L2_BYTES // (n * flat.element_size()))))
        self.calls = max(MIN_CALLS, min(count, MAX_CALLS))
        self.slots = [(flat[i * n:(i + 1) * n].view(-1, self.page, HEAD_DIM),) for i in range(count)]
        self.out = torch.full((self.batch * self.s_qo, self.hq, VALUES), float("nan"), device="cuda", dtype=self.q.dtype)

    def reference(self, b):
        n, s = self.lens[b], self.s_qo
        kv = self.slots[0][0][self.page_table[b, :self.pages_of[b]].long()].reshape(-1, HEAD_DIM)[:n].float()
        scores = torch.einsum("shd,kd->shk", self.q.view(self.batch, s, self.hq, HEAD_DIM)[b].float(), kv) * self.scale
        last = n - s + torch.arange(s, device="cuda")
        scores.masked_fill_(torch.arange(n, device="cuda")[None, None] > last[:, None, None], float("-inf"))
        return torch.einsum("shk,kd->shd", scores.softmax(-1), kv[:, :VALUES])

    def error(self, result):
        result = result.reshape(self.batch, self.s_qo, self.hq, VALUES)
        found = [(result[b].float(), self.reference(b)) for b in sorted({0, self.batch - 1})]
        wrong = sum(((a - r) ** 2).sum().item() for a, r in found)
        return (wrong / sum((r ** 2).sum().item() for _, r in found)) ** 0.5


def points(section):
    if section == "main":
        for kv, batch, s_qo in itertools.product((4096, 8192), (16, 32, 40, 64, 128), (1, 2)):
            yield MlaPoint(128, batch, kv, s_qo)
    elif section == "heads":
        for heads, batch in itertools.product((16, 32, 64), (32, 128)):
            yield MlaPoint(heads, batch, 8192, 1)
    elif section == "e4m3":
        for heads, batch, s_qo in ((128, 64, 1), (128, 32, 1), (128, 32, 4), (16, 32, 1)):
            yield MlaPoint(heads, batch, 8192, s_qo, "fp8")
    else:
        sys.exit("bench_mla: no section '%s'; there are main, heads and e4m3" % section)


def mla_peers(path):
    if not path:
        return {}
    spec = importlib.util.spec_from_file_location("decode_peers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: peer for name, peer in module.PEERS.items() if peer.mla}


def timed(make, point):
    try:
        run = make(point)
        given = run(0)
        torch.cuda.synchronize()
        error = point.error(point.out if given is None else given)
        if not error <= WRONG_ABOVE["bf16"]:
            return None, "wrong: relative error %.2e" % error
        return round(graph_us(run, point), 2), float("%.2e" % error)
    except Exception as reason:  # a peer may fail in any way; the others go on
        return None, ("%s: %s" % (type(reason).__name__, reason)).replace("\n", " ")[:200]


def measure(point, pool, table, peers):
    point.allocate(pool)
    row = dict(heads=point.hq, batch=point.batch, kv=point.kv, s_qo=point.s_qo, dtype=point.dtype,
               bound_us=round(bound_us(table, point.kv_bytes), 1), us={}, notes={})
    for name, make in [("ours", cubist_peer.make_mla), *((n, p.make) for n, p in peers.items() if point.dtype in p.dtypes)]:
        us, note = timed(make, point)
        if us is not None:
            row["us"][name] = us
        row["notes"][name] = note
    for made in ("slots", "q", "out", "page_table", "indices", "seqlens"):
        point.__dict__.pop(made, None)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kit", help="a peers.py")
    parser.add_argument("--peers", help="only these of the kit, with commas")
    parser.add_argument("--sections", default="main,heads,e4m3")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no measurement later than this")
    args = parser.parse_args()
    start, table, peers, pool = time.monotonic(), read_bound(), mla_peers(args.kit), Pool()
    if args.peers:
        peers = {name: peers[name] for name in args.peers.split(",")}
    rows = []
    for number, section in itertools.product(range(args.rounds), args.sections.split(",")):
        for point in points(section):
            if time.monotonic() - start > args.seconds:
                break
            rows.append(dict(section=section, round=number, **measure(point, pool, table, peers)))
            print(json.dumps(rows[-1]), flush=True)
    args.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
