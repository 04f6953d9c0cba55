"""The selection rules of both trtllm-gen revisions a second time, as plainly as they can be said.

Slow and simple on purpose: dictionaries, linear code, no cleverness shared with src/selector. model_test.py
holds the two against each other on recordings and on drawn problems. The rules in words:
docs/design/selection.md.
"""

import json
import struct

INT_MAX = 2**31 - 1
KINDS = {"context": 0, "generation": 1, "swaps": 2, "keeps": 3}
MASKS = {"dense": 0, "causal": 1, "sliding_or_chunked": 2, "custom": 3}
MODES = {"off": 0, "gmem": 1, "gmem_separate": 2, "cga_smem": 3}
LAYOUTS = {"separate": 0, "packed": 1, "paged": 2, "contiguous": 3}
SPARSE = {"none": 0, "static": 1, "dynamic": 2}
COST = {128: (2.2, 1.32), 64: (1.68, 1.2), 32: (1.48, 1.08), 16: (1.2, 1.03), 8: (1.0, 1.0)}
BITS = {"fp16": 16, "bf16": 16, "e4m3": 8, "int8": 8, "e2m1": 4}


class Refused(Exception):
    pass


def up(a, b):
    return -(-a // b)


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Row:
    def __init__(self, kernel):
        t = kernel["traits"]
        get = t.get
        self.name, self.sha256 = kernel["name"], kernel["sha256"]
        self.arch = kernel["arch"]
        self.q, self.o = t["dtype_q"], t["dtype_o"]
        self.k, self.v = get("dtype_k", get("dtype_kv")), get("dtype_v", get("dtype_kv"))
        self.sage = tuple(get("sage_block_" + x, 0) for x in "qkpv")
        self.dqk = t["head_dim_qk"]
        self.dv = get("head_dim_vo", self.dqk)
        self.dcta = get("head_dim_per_cta_v", self.dv)
        self.tile_q, self.tile_kv = t["tile_q"], t["tile_kv"]
        self.step_q, self.step_kv = get("step_q", self.tile_q), get("step_kv", self.tile_kv)
        self.kind = KINDS[t["kernel_type"]]
        self.mask = MASKS[get("mask_type", "dense")]
        self.persistent = get("scheduler", "static") == "persistent"
        self.mode = MODES[get("multi_ctas_kv_mode", "off")]
        self.layout = LAYOUTS[get("qkv_layout", "paged")]
        self.page, self.dynamic = get("page_size", 0), get("dynamic_page", False)
        self.sparse = SPARSE[get("sparse_type", "none")]
        self.threads, self.smem = t["threads"], t["smem"]
        self.heads = get("groups_heads_q", self.kind != 0)
        self.tokens = get("groups_tokens_heads_q", False)
        self.reuse, self.pair = get("reuse_smem_k_for_v", False), get("two_cta_mma", False)
        self.skip = get("skip_softmax", False)

    def runs_on(self, sm):
        return self.arch == "sm_100f" or self.arch == f"sm_{sm}a"

    def specific(self):
        return self.arch.endswith("a")

    def key(self):
        return (self.q, self.k, self.v, self.o, self.sage, self.layout, self.sparse, self.dqk, self.dv, self.mask,
                self.kind, self.persistent, self.mode, self.dcta, self.tile_q, self.tile_kv, self.page, self.dynamic,
                self.reuse, self.pair, self.skip)


class Table:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            pack = json.load(file)["packs"][0]
        self.old = pack["revision"].endswith("0.6.8")
        self.rows = [Row(kernel) for kernel in pack["kernels"]]
        self.by_key, self.by_types = {}, {}
        for row in self.rows:
            self.by_key.setdefault(row.key(), []).append(row)
            types = (row.q, row.k, row.v, row.o, row.sage, row.layout, row.dqk, row.dv)
            self.by_types.setdefault(types, []).append(row)


class Problem:
    def __init__(self, given, old):
        get = given.get
        self.old = old
        self.phase, self.sm, self.sms = get("phase", "decode"), get("sm", 100), get("num_sms", 148)
        self.decode, self.ragged = self.phase == "decode", self.phase == "ragged"
        self.q, self.o = given["dtype_q"], given["dtype_o"]
        self.k, self.v = get("dtype_k", given["dtype_kv"]), get("dtype_v", given["dtype_kv"])
        self.dqk = get("head_dim_qk", 128)
        self.dv = get("head_dim_vo", self.dqk)
        self.q_heads, self.kv_heads = given["num_q_heads"], get("num_kv_heads", 8)
        self.batch, self.max_q = get("batch", 1), get("max_q_len", 1)
        self.max_kv = get("max_kv_len", 1024)
        self.sum_q = get("sum_seq_q", self.batch * self.max_q)
        self.page = 0 if self.ragged else get("page_size", 64)
        self.window = INT_MAX if get("window_left", -1) == -1 else given["window_left"] + 1
        self.chunk = get("chunk_size", 0) or INT_MAX
        self.causal, self.lse = get("causal", True), get("lse", False)
        self.top_k = get("sparse_mla_topk", 0) if self.decode else 0
        self.per_token = get("sparse_dynamic", False)
        self.sparse = 0 if self.top_k <= 0 else 2 if self.per_token else 1
        if self.sparse == 2:
            self.max_kv = self.top_k
        self.skip = get("skip_softmax", 0.0) != 0.0
        self.sage = tuple(get("sage_blocks", (0, 0, 0, 0)))
        self.workspace = get("workspace_size", 268435456)
        self.active = get("max_active_clusters")
        self.gpcs = get("gpcs")
        hnd = get("kv_layout", "HND") == "HND" or self.k == "e2m1"
        self.kv_token_stride = get("kv_stride_tokens", self.dqk if hnd else self.dqk * self.kv_heads)
        self.has_group = self.q_heads > 0 and self.kv_heads > 0 and self.q_heads % self.kv_heads == 0
        self.hpk = self.q_heads // self.kv_heads if self.has_group else 0
        pair = (self.dqk, self.dv)
        self.mla = self.decode and (pair == (576, 512) or not old and
                                    (pair == (320, 256) or pair == (512, 512) and self.top_k > 0))

    def active_clusters(self, size):
        if self.active is not None:
            return self.active
        gpcs = self.gpcs
        if gpcs is None:  # eight of them, whole pairs of SMs spread evenly
            pairs = self.sms // 2
            gpcs = [2 * (pairs // 8 + (i < pairs % 8)) for i in range(8)]
            gpcs[7] += self.sms % 2
        return sum(sms // size for sms in gpcs)


def check_entry(p):
    """What a release refuses before it looks for a kernel."""
    floats = ("fp16", "bf16")
    if not p.has_group:
        raise Refused("head ratio")
    if p.sm not in (100, 103):
        raise Refused("architecture")
    if p.q not in floats + ("e4m3",) + (() if p.old else ("int8",)):
        raise Refused("type of Q")
    if p.k not in floats + ("e4m3", "e2m1") + (() if p.old else ("int8",)):
        raise Refused("type of K")
    if not p.old and p.v not in floats + ("e4m3", "e2m1"):
        raise Refused("type of V")
    if p.o not in floats + ("e4m3", "e2m1"):
        raise Refused("type of O")
    pair = (p.dqk, p.dv)
    if not all(32 <= d <= 1024 for d in pair):
        raise Refused("head size")
    if p.decode and p.dqk != p.dv and pair not in ((576, 512), (320, 256)):
        raise Refused("head sizes of decode")
    if p.top_k > 0 and pair not in ((576, 512), (320, 256)) and (p.old or pair != (512, 512)):
        raise Refused("top-k with this shape")
    if p.top_k % 4 != 0:
        raise Refused("top-k no multiple of 4")
    if not p.ragged and p.page & (p.page - 1) != 0:
        raise Refused("page no power of two")
    if p.phase == "context" and not p.causal and p.window != INT_MAX:
        raise Refused("window without causal")
    counters = 0 if p.phase == "context" else 8388608
    stats = 0
    if p.old and p.ragged:
        stats = 8 * p.q_heads * p.sum_q
    if not p.old and p.lse:
        stats = 8 * p.q_heads * p.batch * up(p.max_q, 256) * 256 + 2**20
    if p.workspace < counters + stats:
        raise Refused("workspace")


class State:
    def __init__(self, p):
        self.mode = 1 if p.decode else 0
        self.persistent = not p.decode
        self.kind = 1 if p.decode else 0
        self.dcta = p.dv
        self.tile_q = self.tile_kv = 128
        self.pair = self.forced = self.dynamic = False
        self.page = p.page
        if p.decode:
            self.mask = 0 if p.mla and not p.old else 1
        else:
            self.mask = 1 if p.causal else 0

    def copy(self):
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        return other


def look_up(table, p, s):
    if s.tile_q > 128 or s.tile_q & (s.tile_q - 1):
        raise Refused("tile")
    key = (p.q, p.k, p.v, p.o, p.sage, 0 if p.ragged else 2, p.sparse, p.dqk, p.dv, s.mask, s.kind, s.persistent,
           s.mode, s.dcta, s.tile_q, s.tile_kv, s.page, s.dynamic, False, s.pair, p.skip)
    rows = [row for row in table.by_key.get(key, ()) if row.runs_on(p.sm)]
    if not rows:
        raise Refused("missing")
    return max(rows, key=Row.specific)


class Grid:
    pass


def base_grid(p, row, pair):
    g = Grid()
    tokens = row.step_q
    if row.kind != 0:
        tokens = max(1, row.step_q // p.hpk) if row.tokens else 1
    g.q = up(p.max_q, tokens)
    g.heads = min(p.hpk, row.step_q) if row.heads else 1
    if p.q_heads % g.heads:
        raise Refused("heads of a CTA")
    if row.dv % row.dcta:
        raise Refused("columns of a CTA")
    heads, columns = p.q_heads // g.heads, row.dv // row.dcta
    g.x, g.y, g.z, g.kv, g.cluster = g.q, heads * columns, p.batch, 1, 2 if row.pair else 1
    if pair:
        if (heads, columns) != (2, 2):
            raise Refused("pairs of CTAs")
        g.x, g.y = g.x * 2, g.y // 4
    return g


def seen_keys(p, row):
    w = min(p.max_kv, p.top_k) if p.sparse else p.max_kv
    if row.mask == 2:
        w = min(w, p.window + row.step_kv - 1) if p.max_kv > p.window else min(w, p.chunk)
    return w


def lay_out(p, s, row):
    """The grid, and whether it asks for another pass (then `s` has changed)."""
    g = base_grid(p, row, p.mla and row.pair)
    again = False
    lone = p.batch == 1 and p.max_q <= 16 and (p.dqk, p.dv) == (576, 512)
    if s.mode != 0:
        g.kv = min(up(seen_keys(p, row), 2 * row.step_kv), max(1, p.sms // (g.x * g.y * g.z)))
        g.x *= g.kv
        if row.mode == 3:
            g.cluster *= g.kv
        clusters = s.mode == 1 and s.kind == 2 and not s.forced and not lone
        clusters = clusters and ((not p.mla or s.tile_q < 32) if p.old else p.dv < 512)
        if g.kv <= 1:
            s.mode, s.persistent, again = 0, True, True
        elif clusters and g.kv <= 16:
            s.mode, again = 3, True
    total = g.x * g.y * g.z
    if p.mla and not row.pair and not again and s.dcta == 512:
        c = 1 if lone else 2
        if total * c <= p.sms:
            s.dcta, again = 128 if total * 2 * c <= p.sms else 256, True
    return g, again


def time_of(p, row, g, keys):
    a, b = COST[row.tile_q]
    length = up(up(keys, row.step_kv), g.kv) * row.step_kv
    waves = up(g.x * g.y * g.z, p.sms)
    per_key = f32(f32(a) * f32(length))
    per_split = f32(f32(f32(b) * 128.0) * f32(g.kv))
    return f32(f32(waves) * f32(per_key + per_split))


def ask_cost_model(table, p, s):
    c = s.copy()
    row = look_up(table, p, c)
    g, _ = lay_out(p, c, row)
    default = s.tile_q
    if 2 * g.x * g.y * g.z > p.sms or default <= 8:
        return
    best = None
    for tile in (128, 64, 32, 16, 8):
        if tile > default or tile < p.hpk:
            continue
        c.tile_q, c.kind = tile, 3 if tile >= 64 else 2
        row = look_up(table, p, c)
        g, _ = lay_out(p, c, row)
        time = time_of(p, row, g, p.max_kv)
        if best is None or time < best:
            best = time
            s.tile_q, s.kind = c.tile_q, c.kind


def pick_tile(table, p, s):
    if p.mla and not p.sparse:
        n = p.batch * p.max_q * up(p.hpk, 16)
        split = min(up(p.max_kv, 256), max(1, p.sms // n))
        if p.hpk <= 32 or up(p.max_kv, split) <= 1024 and n <= p.sms:
            s.kind, s.tile_q = 2, 8 if p.hpk <= 8 else 16
        else:
            s.kind, s.tile_q = 3, 64
            s.mode = 2 if s.mode != 0 else 0
            if p.hpk == 128:
                s.pair, s.dcta = True, 256
    elif p.mla:
        s.tile_kv = 128
        if p.hpk <= 32:
            s.kind, s.tile_q = 2, p.hpk
            if p.hpk // 2 >= 8 and p.batch * up(min(p.max_kv, p.top_k), 128) <= p.sms // 8:
                s.tile_q = p.hpk // 2
        else:
            s.kind, s.tile_q = 3, 64
            s.mode = 2 if s.mode == 1 else s.mode
            many = p.batch * (p.hpk // 64) * 8 > p.sms
            if p.hpk == 128 and (many or p.max_q > 1 and not p.old):
                s.pair, s.dcta = True, 256
    elif p.q != p.k or p.q != p.v:
        s.kind, s.tile_q = 2, 8 if p.hpk <= 8 else 16
    else:
        rows = p.hpk * p.max_q
        s.tile_q = next((t for t in (8, 16, 32, 64) if rows <= t), 128)
        s.kind = 3 if s.tile_q >= 64 else 2
        if p.max_q > 1:
            ask_cost_model(table, p, s)


def set_page(p, s):
    s.page, s.dynamic = p.page, False
    if p.sparse:
        s.page = 1
    elif not p.old and not p.ragged and p.hpk > 1 and p.dqk == p.dv and p.page >= 128:
        s.page, s.dynamic = 128, True


def one_pass(table, p, s):
    if not p.old:
        set_page(p, s)
    if p.decode:
        pick_tile(table, p, s)
        if p.mla and not p.old:
            s.mask = 0
            if not p.sparse and (p.max_kv > p.window or p.chunk != INT_MAX):
                raise Refused("windowed MLA")
    if not p.old and p.dv > 256 and not p.mla and s.kind != 2:
        s.dcta = 256
    if (p.old or not p.sparse) and (s.mask == 1 or p.decode) and (p.max_kv > p.window or p.chunk != INT_MAX):
        s.mask = 2
    if p.old:
        set_page(p, s)
    row = look_up(table, p, s)
    g, again = lay_out(p, s, row)
    return row, g, again


def check_reduction(p, row):
    if row.mode != 2:
        return
    columns = row.dcta * (2 if row.pair else 1)
    types = row.o in ("e4m3", "fp16", "bf16") if row.q == "e4m3" else row.o == row.q
    if row.kind != 3 or row.tile_q not in (64, 128) or row.tile_kv != 128 or columns not in (64, 128, 256, 512):
        raise Refused("reduction")
    if not types or p.old and p.q_heads < row.tile_q:
        raise Refused("reduction")


def published(table, p):
    """(row, grid) as the release launches it; raises Refused where it does not."""
    check_entry(p)
    if p.old and p.phase == "context" and not p.causal:
        raise Refused("context without causal")
    s = State(p)
    for _ in range(4):
        row, g, again = one_pass(table, p, s)
        if not again:
            break
    else:
        raise Refused("no rest")
    if row.mode == 3 and p.active_clusters(g.cluster) * g.cluster < g.x * g.y * g.z:
        s.mode, s.forced = 1, True
        row, g, again = one_pass(table, p, s)
        if again:
            raise Refused("no rest")
    check_reduction(p, row)
    if p.ragged and row.o == "e2m1":
        raise Refused("e2m1 output without scales")
    return row, g


def mixes_groups(p, row):
    return p.decode and p.hpk > row.step_q and (p.hpk % row.step_q != 0 or row.tokens)


def serves(p, row):
    """The grid of a row that gives the right answer, or None. Rules: docs/design/selection.md."""
    if (row.q, row.k, row.v, row.o, row.sage) != (p.q, p.k, p.v, p.o, p.sage) or not row.runs_on(p.sm):
        return None
    if row.layout != (0 if p.ragged else 2) or (row.kind not in (2, 3) if p.decode else row.kind != 0):
        return None
    if (row.dqk, row.dv) != (p.dqk, p.dv) or row.reuse or row.sparse != p.sparse:
        return None
    if p.ragged:
        page = row.page == 0
    elif p.sparse:
        page = row.page == 1
    elif row.dynamic:
        page = p.dqk == p.dv and p.page >= 128
    else:
        page = row.page == p.page
    windowed = p.max_kv > p.window or p.chunk != INT_MAX
    if not p.decode:
        mask = row.mask == (0 if not p.causal else 2 if windowed else 1)
    elif p.sparse:
        mask = row.mask == (1 if p.old else 0)
    elif windowed:
        mask = row.mask == 2
    else:
        mask = row.mask == 1 or row.mask == 0 and (not row.tokens or p.max_q == 1)
    if not page or not mask or row.skip and not p.skip or mixes_groups(p, row):
        return None
    if row.mode != 0 and (row.persistent or not p.decode):
        return None
    if row.pair and ((p.q_heads, p.hpk, row.tile_q, 2 * row.dcta) != (128, 128, 64, row.dv) or row.mode not in (0, 2)):
        return None
    if p.ragged and row.o == "e2m1" or row.smem + 1024 > 232448:
        return None
    try:
        if row.mode == 2:
            columns = row.dcta * (2 if row.pair else 1)
            types = row.o in ("e4m3", "fp16", "bf16") if row.q == "e4m3" else row.o == row.q
            fits = row.kind == 3 and row.tile_q in (64, 128) and row.tile_kv == 128 and columns in (64, 128, 256, 512)
            if not types or not fits:
                return None
        g = base_grid(p, row, row.pair)
    except Refused:
        return None
    if row.mode != 0:
        base = g.x * g.y * g.z
        if base > 8192 * 256:
            return None
        g.kv = min(up(seen_keys(p, row), 2 * row.step_kv), max(1, p.sms // base))
        if row.mode == 3:
            g.kv = min(g.kv, 16)
            g.cluster *= g.kv
        if g.kv < 2:
            return None
        g.x *= g.kv
    return None if g.y > 65535 or g.z > 65535 else g


def best_that_serves(table, p):
    """(row, grid) first in the order of the fall-back, or None."""
    types = (p.q, p.k, p.v, p.o, p.sage, 0 if p.ragged else 2, p.dqk, p.dv)
    found = []
    for row in table.by_types.get(types, ()):
        g = serves(p, row)
        if g is None or row.mode == 3 and p.active_clusters(g.cluster) * g.cluster < g.x * g.y * g.z:
            continue
        relaxed = p.skip and not row.skip
        order = (relaxed, time_of(p, row, g, seen_keys(p, row)), -row.tile_q, not row.specific(), row.name)
        found.append((order, row, g))
    if not found:
        return None
    _, row, g = min(found, key=lambda entry: entry[0])
    return row, g


def reshape_factor(p, row):
    if p.ragged or p.dqk != p.dv or p.q == p.k:
        return 1
    unpacked = p.k == "e2m1" and p.q == "e4m3" and p.dqk >= 128 and row.kind == 2
    if unpacked or not p.old and p.kv_token_stride != p.dqk:
        return 1
    return max(1, min(128 // p.dqk, 128 // (p.dqk * BITS[p.k] // 8), min(p.page, row.tile_kv)))


def answer(p, row, g):
    """The fields of a plan that the rules decide, by the recordings' names."""
    tokens = row.tile_q
    if row.kind != 0:
        tokens = row.tile_q // min(row.tile_q, p.hpk) if row.tokens else 1
    reduction = None
    if row.mode == 2:
        columns = row.dcta * (2 if row.pair else 1)
        heads, dims = p.q_heads // min(p.hpk, row.tile_q), row.dv // columns
        slices = columns * 2 * row.tile_q // 8192
        k = min(2 * p.sms // (g.q * heads * dims * p.batch), slices)
        reduction = [g.q * k, heads * dims, p.batch]
    lse = None
    if p.lse:
        n = p.sum_q * p.q_heads
        block = min(1024, 1 << (n - 1).bit_length())
        lse = [up(n, block), block]
    return {"kernel": row.name, "sha256": row.sha256, "grid": [g.x, g.y, g.z], "block": [row.threads, 1, 1],
            "cluster": [g.cluster, 1, 1], "smem": row.smem, "cluster_sched_policy": 1 if g.cluster > 1 else 0,
            "num_ctas_q": g.q, "num_ctas_kv": g.kv, "num_tokens_per_cta_q": tokens, "num_heads_per_cta": g.heads,
            "reshape_factor_kv": reshape_factor(p, row), "reduction": reduction, "lse": lse}
