"""One measuring point of decode attention and its tensors, and how long a step takes.

A step's KV cache must come from device memory: call i of a graph works on slot i of a pool far larger than L2. Page numbers
are a random permutation; numbers are random normal; queries are causal among themselves, aligned at the end.
"""
import math
import random
import statistics

import torch

L2_BYTES = 60 << 20
POOL_BYTES = 3_300_000_000  # for K and for V
MIN_CALLS, MAX_CALLS = 6, 20
O_SCALE = 32.0
NVFP4_GLOBAL_SCALE = 64.0
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}


class Point:
    """shape (name, q heads, kv heads, head dim), dtype of the KV cache ('bf16', 'fp16', 'fp8'), tokens a page, KV length,
    batch, query tokens; `lens`: lengths of a ragged batch; `options`: window_left, sinks, lse, batch_invariant, q ("fp8"),
    output ("e4m3" or "nvfp4"; multiplied by O_SCALE, so that the numbers are those such types can hold).

    allocate() makes q, out, slots [(k, v)], page_table, seqlens, indices, indptr, last for one layout ('HND' or 'NHD').
    """

    def __init__(self, shape, dtype="bf16", page=64, kv=8192, batch=32, s_qo=1, lens=None, **options):
        self.shape, (_, self.hq, self.hkv, self.d) = shape, shape
        self.d_v, self.mla, self.dtype, self.page, self.batch, self.s_qo = self.d, False, dtype, page, batch, s_qo
        self.lens = lens or [kv] * batch
        self.kv, self.ragged, self.options, self.pdl = max(self.lens), lens is not None, options, None
        self.scale = 1 / math.sqrt(self.d)
        self.pages_of = [-(-n // page) for n in self.lens]
        seen = self.lens
        if "window_left" in options:
            seen = [min(n, options["window_left"] + s_qo) for n in self.lens]
        self.kv_bytes = sum(seen) * self.hkv * self.d * 2 * (1 if dtype == "fp8" else 2)
        self.slot_elements = sum(self.pages_of) * page * self.hkv * self.d

    def allocate(self, pool, layout):
        self.layout = layout
        torch.manual_seed(1)
        flats, pages, n = pool.get(self.dtype), sum(self.pages_of), self.slot_elements
        slot_bytes = 2 * n * flats[0].element_size()
        count = min(flats[0].numel() // n, max(MAX_CALLS, -(-4 * L2_BYTES // slot_bytes)))
        self.calls = max(MIN_CALLS, count)
        view = (pages, self.page, self.hkv, self.d) if layout == "NHD" else (pages, self.hkv, self.page, self.d)
        self.slots = [tuple(f[i * n:(i + 1) * n].view(view) for f in flats) for i in range(count)]
        self.indices = torch.randperm(pages, device="cuda").to(torch.int32)
        self.indptr = torch.tensor([0] + self.pages_of, dtype=torch.int32).cumsum(0).to(torch.int32)
        self.last = torch.tensor([n - (g - 1) * self.page for n, g in zip(self.lens, self.pages_of)], dtype=torch.int32)
        self.page_table = torch.zeros(self.batch, max(self.pages_of), dtype=torch.int32, device="cuda")
        for b, g in enumerate(self.pages_of):
            self.page_table[b, :g] = self.indices[int(self.indptr[b]):int(self.indptr[b]) + g]
        self.seqlens = torch.tensor(self.lens, dtype=torch.int32, device="cuda")
        q_type = torch.float16 if self.dtype == "fp16" else torch.bfloat16
        self.q = torch.randn(self.batch * self.s_qo, self.hq, self.d, device="cuda", dtype=q_type)
        self.sinks = torch.randn(self.hq, device="cuda") if self.options.get("sinks") else None
        self.lse = torch.empty(self.batch * self.s_qo, self.hq, device="cuda") if self.options.get("lse") else None
        self.out = torch.full_like(self.q, float("nan"))
        if self.options.get("q") == "fp8":
            self.q = self.q.to(TYPES["fp8"])
        self.allocate_output(self.options.get("output"))

    def allocate_output(self, kind):
        self.o_scale, self.o_sf, self.o_sf_scale = 1.0, None, -1.0
        if kind is None:
            return
        self.o_scale, tokens = O_SCALE, self.batch * self.s_qo
        if kind == "e4m3":
            self.out = torch.zeros(tokens, self.hq, self.d, device="cuda", dtype=TYPES["fp8"])
            return
        self.out = torch.zeros(tokens, self.hq, self.d // 2, device="cuda", dtype=torch.uint8)
        self.o_sf_scale = NVFP4_GLOBAL_SCALE
        self.o_sf = torch.zeros(-(-tokens // 128) * 128, self.hq * self.d // 16, device="cuda", dtype=torch.uint8)

    def decoded(self, result):
        """The output as floats, o_scale taken out."""
        kind = self.options.get("output")
        if kind != "nvfp4":
            return result.float() / self.o_scale
        tokens = self.batch * self.s_qo
        magnitude = torch.tensor(E2M1, device="cuda")
        both = torch.stack([result & 15, result >> 4], -1).reshape(tokens, self.hq, self.d).long()
        values = magnitude[both & 7] * (1 - 2 * (both >> 3))
        # Tiles of 128 rows and 4 columns: (row tile, column tile, row % 32, row / 32 % 4, column % 4).
        rows, columns = self.o_sf.shape
        tiles = self.o_sf.reshape(rows // 128, columns // 4, 32, 4, 4)
        scales = tiles.permute(0, 3, 2, 1, 4).reshape(rows, columns)[:tokens].contiguous().view(TYPES["fp8"]).float()
        blocks = values.reshape(tokens, columns, 16) * scales[..., None] / self.o_sf_scale
        return blocks.reshape(tokens, self.hq, self.d) / self.o_scale

    def reference(self, b):
        """fp32 attention of request b over slot 0: [s_qo, hq, d]."""
        n, s, group = self.lens[b], self.s_qo, self.hq // self.hkv
        pages = self.page_table[b, :self.pages_of[b]].long()
        k, v = (t[pages] if self.layout == "NHD" else t[pages].transpose(1, 2) for t in self.slots[0])
        k, v = (t.reshape(-1, self.hkv, self.d)[:n].float() for t in (k, v))
        q = self.q.view(self.batch, s, self.hkv, group, self.d)[b].float()
        scores = torch.einsum("shgd,khd->shgk", q, k) * self.scale
        position = n - s + torch.arange(s, device="cuda")[:, None]
        key = torch.arange(n, device="cuda")[None, :]
        seen = (key <= position) & (key >= position - self.options.get("window_left", 1 << 30))
        scores = scores.masked_fill(~seen[:, None, None, :], float("-inf"))
        if self.sinks is not None:
            sink = self.sinks.view(1, self.hkv, group, 1).expand(s, -1, -1, 1)
            scores = torch.cat([scores, sink], -1)
        weights = scores.softmax(-1)[..., :n]
        return torch.einsum("shgk,khd->shgd", weights, v).reshape(s, self.hq, self.d)

    def error(self, result):
        """Relative Frobenius error of the first and the last request."""
        result = self.decoded(result).reshape(self.batch, self.s_qo, self.hq, self.d)
        found = [(result[b], self.reference(b)) for b in sorted({0, self.batch - 1})]
        wrong = sum(((a - r) ** 2).sum().item() for a, r in found)
        return math.sqrt(wrong / sum((r ** 2).sum().item() for _, r in found))


class Pool:
    """Random K and V storage that all points share."""

    def __init__(self, elements=POOL_BYTES // 2):
        self.elements, self.flats = elements, {}

    def get(self, dtype):
        if dtype not in self.flats:
            torch.manual_seed(0)
            self.flats[dtype] = []
            for _ in "kv":
                flat = torch.empty(self.elements, dtype=TYPES[dtype], device="cuda")
                for i in range(0, self.elements, 1 << 28):
                    part = flat[i:i + (1 << 28)]
                    part.copy_(torch.randn(part.shape, device="cuda", dtype=torch.bfloat16))
                self.flats[dtype].append(flat)
        return self.flats[dtype]


def ragged_lengths(batch, low=128, high=65536, seed=7):
    """Lengths log-uniform in [low, high]."""
    draw = random.Random(seed)
    return [int(math.exp(draw.uniform(math.log(low), math.log(high)))) for _ in range(batch)]


def graph_us(run, point, replays=11):
    """Microseconds a call: the median replay of a graph of point.calls calls over its slots."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run(0)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(point.calls):
            run(i % len(point.slots))
    graph.replay()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(replays):
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e3 / point.calls)
    return statistics.median(times)
