"""Cubist's decode kernels on PyTorch tensors, for the programs of this folder.

`make(point)` gives run(i), one decode step over KV slot i on torch's current stream, launched through libcubist's C API: the
selector's own plan. `make_mla(point)`: the same for MLA, whose slots are (kv,), [pages, page, 576]. `make_ungrouped(point)` launches the same kernels with one new token a CTA, tokens fastest in the grid:
what grouping tokens and heads saves. `make_planned(point, plan)` launches any plan given as a dict.

A point has: hq, hkv, d, dtype ('bf16' or 'fp8': type of the KV cache), page, batch, s_qo, kv, scale, layout ('HND' or 'NHD'),
q and out [batch * s_qo, hq, d] bf16, slots [(k, v)], page_table and seqlens int32. Environment: LIBCUBIST, the shared
library; LIBCUBIST_MANIFEST, where not the checkout's.
"""
import ctypes as c
import json
import math
import os
import pathlib
import struct

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFEST = os.environ.get("LIBCUBIST_MANIFEST", str(ROOT / "manifests" / "cubist-decode.json"))
I32, I64, U32, U64, PTR = c.c_int32, c.c_int64, c.c_uint32, c.c_uint64, c.c_void_p


def fields(*groups):
    return [(name, kind) for kind, names in groups for name in names.split()]


class Device(c.Structure):
    _fields_ = fields((U32, "struct_size sm"), (I32, "num_sms"), (U32, "max_smem_optin")) + [
        ("max_active_clusters", I32 * 17), ("name", c.c_char * 68)]


class RuntimeOptions(c.Structure):
    _fields_ = fields((U32, "struct_size"), (I32, "offline"), (c.POINTER(c.c_char_p), "manifests"), (U32, "num_manifests"),
                      (I32, "strict"), (c.c_char_p, "store_dir"), (PTR, "trusted_keys key_statements revocations"),
                      (U32, "num_trusted_keys num_key_statements num_revocations"),
                      (I32, "manifest_signatures foreign_store accept_older_serial"), (c.c_char_p, "overrides"))


class Problem(c.Structure):
    _fields_ = fields(
        (U32, "struct_size"),
        (I32, "phase dtype_q dtype_k dtype_v dtype_o head_dim_qk head_dim_vo num_q_heads num_kv_heads batch max_q_len "
              "max_kv_len page_size max_pages_per_seq kv_layout"),
        (I64, "sum_seq_q sum_seq_kv num_pages q_stride_tokens q_stride_heads kv_stride_batch kv_stride_heads "
              "kv_stride_tokens k_stride_tokens k_stride_heads v_stride_tokens v_stride_heads lse_stride_tokens "
              "lse_stride_heads workspace_size"),
        (I32, "kv_combined is_mla window_left chunk_size causal custom_mask packed_qkv varlen_q sinks lse sparse_mla_topk "
              "sparse_dynamic uses_shared_paged_kv_idx o_sf_start_index"),
        (c.c_float, "o_sf_scale skip_softmax")) + [("sage_blocks", I32 * 4)] + fields(
            (I32, "enable_pdl max_active_clusters batch_invariant reserved"))


class PlanInfo(c.Structure):
    _fields_ = fields((U32, "struct_size"), (I32, "family"), (c.c_char_p, "kernel sha256 arch revision fallback"),
                      (U64, "size_bytes"), (U32 * 3, "grid block cluster"), (U32, "smem cluster_sched_policy"),
                      (I32, "pdl tile_q tile_kv multi_ctas_kv_mode num_ctas_q num_ctas_kv num_tokens_per_cta_q "
                            "num_heads_per_cta min_active_clusters needs_reduction needs_lse"))


class WorkspaceInfo(c.Structure):
    _fields_ = fields((U32, "struct_size alignment"), (U64, "size_bytes zero_bytes"))


class AttentionArgs(c.Structure):
    _fields_ = fields((U32, "struct_size"), (c.c_float, "q_scale k_scale v_scale sm_scale o_scale"),
                      (PTR, "q k v o block_table seq_lens_kv cum_seq_lens_q sinks lse bmm1_scale_log2 bmm2_scale workspace"),
                      (U64, "workspace_size"), (I64, "o_stride_tokens o_stride_heads"),
                      (PTR, "cum_seq_lens_kv k_sf v_sf o_sf sliding_pool topk_lens sage_q sage_k sage_p sage_v o_layout"),
                      (c.c_float, "o_sf_scale"), (I32, "o_sf_start_index"))


class Library:
    """libcubist with its manifest open; every failure raises with the library's own message."""

    def __init__(self):
        self.lib = c.CDLL(os.environ.get("LIBCUBIST", "libcubist.so.0"))
        self.lib.cubist_last_error_message.restype = c.c_char_p
        names = (c.c_char_p * 1)(MANIFEST.encode())
        options = RuntimeOptions(c.sizeof(RuntimeOptions), 1, names, 1, 0, None)
        self.runtime = PTR()
        self.call("cubist_runtime_open", c.byref(options), c.byref(self.runtime))
        self.device = Device(struct_size=c.sizeof(Device))
        self.call("cubist_device_query", I32(torch.cuda.current_device()), c.byref(self.device))

    def call(self, name, *args):
        if getattr(self.lib, name)(*args) != 0:
            raise RuntimeError("%s: %s" % (name, self.lib.cubist_last_error_message().decode()))

    def select(self, problem):
        selection = PTR()
        self.call("cubist_runtime_select", self.runtime, c.byref(problem), c.byref(self.device), c.byref(selection))
        return selection

    def plan(self, selection):
        info = PlanInfo(struct_size=c.sizeof(PlanInfo))
        self.call("cubist_selection_get_plan", selection, U32(0), c.byref(info))
        return info


_library = None


def library():
    global _library
    if _library is None:
        _library = Library()
    return _library


def strides(p):
    """Elements from page to page, head to head, token to token of a dense pool."""
    page = p.hkv * p.page * p.d
    return (page, p.page * p.d, p.d) if p.layout == "HND" else (page, p.d, p.hkv * p.d)


def head_dim_vo(p):
    return getattr(p, "d_v", p.d)


def problem_of(p):
    kv = {"fp16": 0, "bf16": 1, "fp8": 5}[p.dtype]
    options = getattr(p, "options", {})
    own = 0 if p.dtype == "fp16" else 1
    q = 5 if options.get("q") == "fp8" else own
    o = {None: own, "e4m3": 5, "nvfp4": 7}[options.get("output")]
    pages, heads, tokens = strides(p)
    derived = {name: -1 for name in ("max_pages_per_seq sum_seq_q sum_seq_kv q_stride_tokens q_stride_heads "
                                     "k_stride_tokens k_stride_heads v_stride_tokens v_stride_heads lse_stride_tokens "
                                     "lse_stride_heads window_left max_active_clusters").split()}
    derived["window_left"] = options.get("window_left", -1)
    return Problem(struct_size=c.sizeof(Problem), dtype_q=q, dtype_k=kv, dtype_v=kv, dtype_o=o, head_dim_qk=p.d,
                   head_dim_vo=head_dim_vo(p), is_mla=int(head_dim_vo(p) != p.d), num_q_heads=p.hq, num_kv_heads=p.hkv, batch=p.batch, max_q_len=p.s_qo, max_kv_len=p.kv, page_size=p.page,
                   kv_layout=0 if p.layout == "HND" else 1, num_pages=p.slots[0][0].shape[0], kv_stride_batch=pages,
                   kv_stride_heads=heads, kv_stride_tokens=tokens, workspace_size=268435456, causal=1,
                   sinks=int(options.get("sinks", False)), lse=int(options.get("lse", False)),
                   uses_shared_paged_kv_idx=1, o_sf_scale=getattr(p, "o_sf_scale", -1.0),
                   enable_pdl=int(p.pdl is not False), batch_invariant=int(options.get("batch_invariant", False)), **derived)


def make(p):
    lib = library()
    selection = lib.select(problem_of(p))
    lib.call("cubist_selection_prepare", selection)
    need = WorkspaceInfo(struct_size=c.sizeof(WorkspaceInfo))
    lib.call("cubist_selection_get_workspace", selection, c.byref(need))

    def address(name):
        tensor = getattr(p, name, None)
        return tensor.data_ptr() if tensor is not None else None

    workspace = torch.zeros(max(int(need.size_bytes), 1), dtype=torch.uint8, device="cuda")

    def run(i):
        k, v = p.slots[i][0], p.slots[i][-1]
        args = AttentionArgs(c.sizeof(AttentionArgs), 1, 1, 1, p.scale, getattr(p, "o_scale", 1), p.q.data_ptr(), k.data_ptr(), v.data_ptr(),
                          p.out.data_ptr(), p.page_table.data_ptr(), p.seqlens.data_ptr(), None, address("sinks"),
                          address("lse"), None, None,
                          workspace.data_ptr() if need.size_bytes else None, need.size_bytes, -1, -1, o_sf=address("o_sf"),
                          o_sf_start_index=-1)
        lib.call("cubist_selection_launch", selection, c.byref(args), PTR(torch.cuda.current_stream().cuda_stream))
    return run


make.layout = "HND"


def make_mla(p):
    return make(p)


make_mla.layout = "NHD"
make_mla.mla = True


def chosen_kernel(p):
    lib = library()
    return lib.plan(lib.select(problem_of(p))).kernel.decode()


class Params(c.Structure):
    """src/model/decode_params.h."""
    _fields_ = fields(
        (PTR, "q k v o sinks lse block_table seq_lens_kv cum_seq_lens_q partial_o partial_stats counters bmm1_scale_log2 "
              "bmm2_scale"),
        (I64, "q_stride_tokens q_stride_heads k_stride_pages k_stride_heads k_stride_tokens v_stride_pages v_stride_heads "
              "v_stride_tokens o_stride_tokens o_stride_heads"),
        (c.c_float, "scale_softmax_log2 output_scale"),
        (I32, "batch max_q_len num_q_heads num_kv_heads num_heads_per_kv page_size_log2 max_pages_per_seq window_left "
              "num_ctas_q num_ctas_kv num_tokens_per_cta_q num_heads_per_cta prefetch_kv reserved")) + [("k_map", c.c_char * 128), ("v_map", c.c_char * 128)]


class LaunchAttribute(c.Structure):
    _fields_ = [("id", c.c_int), ("pad", c.c_char * 4), ("value", c.c_char * 64)]


class LaunchConfig(c.Structure):
    _fields_ = fields((U32, "gx gy gz bx by bz smem"), (PTR, "stream"), (c.POINTER(LaunchAttribute), "attributes"),
                      (U32, "num_attributes"))


class Driver:
    """The kernels by name, loaded straight from kernels/prebuilt."""

    def __init__(self):
        self.cuda = c.CDLL("libcuda.so.1")
        self.functions = {}
        pack = json.loads(pathlib.Path(MANIFEST).read_text())["packs"][0]
        self.kernels = {k["name"]: dict(k["traits"], name=k["name"]) for k in pack["kernels"]}
        self.folder = pathlib.Path(MANIFEST).parent / pack["sources"][0]["location"]

    def check(self, code, what):
        if code:
            raise RuntimeError("%s: CUDA error %d" % (what, code))

    def function(self, name):
        if name not in self.functions:
            traits, module, function = self.kernels[name], PTR(), PTR()
            image = (self.folder / (name + ".cubin")).read_bytes()
            self.check(self.cuda.cuModuleLoadData(c.byref(module), image), "cuModuleLoadData")
            self.check(self.cuda.cuModuleGetFunction(c.byref(function), module, name.encode()), "cuModuleGetFunction")
            self.check(self.cuda.cuFuncSetAttribute(function, 8, traits["smem"]), "cuFuncSetAttribute")
            self.functions[name] = function
        return self.functions[name]

    def launch(self, function, grid, threads, smem, params, pdl):
        attribute = LaunchAttribute(6, b"", b"\1")  # programmatic stream serialization
        config = LaunchConfig(*grid, threads, 1, 1, smem, torch.cuda.current_stream().cuda_stream, c.pointer(attribute),
                              int(pdl))
        arguments = (PTR * 1)(c.cast(c.pointer(params), PTR))
        self.check(self.cuda.cuLaunchKernelEx(c.byref(config), function, arguments, None), "cuLaunchKernelEx")


_driver = None


def driver():
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver


def tensor_map(p, tensor):
    """The descriptor of K or V for the persistent kernels: kernels/decode/README.md, "Tensor maps"."""
    size = tensor.element_size()
    pages, heads, tokens = (size * n for n in strides(p))
    raw = c.create_string_buffer(192)
    at = (c.addressof(raw) + 63) & ~63  # the driver wants 64-byte alignment
    elements = min(p.d, 128 // size)
    box = (elements, min(p.page, 64), p.d // elements if p.page >= 64 else 1, 1, 1)
    kind, swizzle = (9 if size == 2 else 0), (3 if elements * size == 128 else 2)
    code = driver().cuda.cuTensorMapEncodeTiled(
        PTR(at), kind, 5, PTR(tensor.data_ptr()), (U64 * 5)(elements, p.page, p.d // elements, p.hkv, 0x7fffffff),
        (U64 * 4)(tokens, elements * size, heads, pages), (U32 * 5)(*box), (U32 * 5)(1, 1, 1, 1, 1), 0, swizzle, 2, 0)
    driver().check(code, "cuTensorMapEncodeTiled")
    return c.string_at(at, 128)


def make_planned(p, kernel, num_tokens_per_cta_q, num_ctas_kv):
    """run(i) for one bf16 or e4m3 kernel and one split; persistent kernels: into that many groups of CTAs."""
    d = driver()
    traits, group = d.kernels[kernel], p.hq // p.hkv
    persistent = traits.get("scheduler") == "persistent"
    heads = min(group, traits["tile_q"])
    num_ctas_q = -(-p.s_qo // num_tokens_per_cta_q)
    columns = p.hkv * -(-group // heads)
    grid = (num_ctas_q * num_ctas_kv, columns, p.batch)
    if persistent:
        grid = (num_ctas_q * columns, num_ctas_kv, 1)
    tiles = 2 * p.batch * num_ctas_q * columns
    rows = max(2, p.batch) * num_ctas_q * columns * num_ctas_kv * traits["tile_q"]
    counters = torch.zeros(tiles, dtype=torch.int32, device="cuda")
    stats = torch.empty(rows * 2, dtype=torch.float32, device="cuda")
    partial = torch.empty(rows * (p.d + 8), dtype=torch.float32, device="cuda")
    pages, head, token = strides(p)
    function = d.function(kernel)
    maps = [(tensor_map(p, k), tensor_map(p, v)) for k, v in p.slots] if persistent else None

    def run(i):
        k, v = p.slots[i]
        params = Params(q=p.q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=p.out.data_ptr(),
                        block_table=p.page_table.data_ptr(), seq_lens_kv=p.seqlens.data_ptr(), partial_o=partial.data_ptr(),
                        partial_stats=stats.data_ptr(), counters=counters.data_ptr(), q_stride_tokens=p.hq * p.d,
                        q_stride_heads=p.d, k_stride_pages=pages, k_stride_heads=head, k_stride_tokens=token,
                        v_stride_pages=pages, v_stride_heads=head, v_stride_tokens=token, o_stride_tokens=p.hq * p.d,
                        o_stride_heads=p.d, scale_softmax_log2=p.scale * math.log2(math.e), output_scale=1.0, batch=p.batch,
                        max_q_len=p.s_qo, num_q_heads=p.hq, num_kv_heads=p.hkv, num_heads_per_kv=group,
                        page_size_log2=p.page.bit_length() - 1, max_pages_per_seq=p.page_table.shape[1], window_left=-1,
                        num_ctas_q=num_ctas_q, num_ctas_kv=num_ctas_kv, num_tokens_per_cta_q=num_tokens_per_cta_q,
                        num_heads_per_cta=heads, prefetch_kv=int(p.pdl is not False))
        if not persistent:  # CubistStaticDecodeParams: bf16 output, at least four tiles a CTA
            c.memmove(c.addressof(params) + 256, struct.pack("<QfiiI", 0, 0.0, 0, 0, 4), 24)
        if persistent:
            for offset, image in zip((256, 384), maps[i]):
                c.memmove(c.addressof(params) + offset, image, 128)
        d.launch(function, grid, traits["threads"], traits["smem"], params, p.pdl is not False)
    return run


def persistent_tiles(p):
    """tile_q of the persistent kernels for this point's types and head size."""
    kv = {"fp8": "e4m3"}.get(p.dtype, p.dtype)
    return sorted(k["tile_q"] for k in driver().kernels.values()
                  if k.get("scheduler") == "persistent" and k["dtype_kv"] == kv and k["head_dim_qk"] == p.d)


def kernel_name(p, tile_q, persistent=False):
    kv = {"fp8": "e4m3"}.get(p.dtype, p.dtype)
    kind = "stream_" if persistent else ""
    return "cubist_decode_q_bf16_kv_%s_o_bf16_h%d_q%d_%ssm90a" % (kv, p.d, tile_q, kind)


def make_ungrouped(p, persistent=False):
    """One new token a CTA, tokens fastest in the grid, so that CTAs with the same keys run side by side: the smallest kernel
    that holds one token's heads, its KV split until the GPU is full."""
    tiles = persistent_tiles(p) if persistent else (16, 32, 64, 128)
    tile = next(t for t in tiles if t >= p.hq // p.hkv)
    columns = p.hkv * p.s_qo
    split = max(1, 132 // columns) if persistent else max(1, min(16, 264 // (columns * p.batch)))
    return make_planned(p, kernel_name(p, tile, persistent), 1, split)


def make_ungrouped_persistent(p):
    return make_ungrouped(p, True)


make_ungrouped.layout = "HND"
make_ungrouped_persistent.layout = "HND"
