#ifndef CUBIST_CUBIST_H_
#define CUBIST_CUBIST_H_

/* Cubist: precompiled GPU kernels for inference runtimes. Opens manifests, chooses a kernel and its
 * launch for an attention problem, fetches and verifies the cubin, launches it through libcuda.
 * This header is the whole promise; it needs neither a CUDA toolkit nor cuda.h.
 *
 *   cubist_runtime_open           manifests, store
 *     cubist_runtime_prepare      kernels that will be needed: fetch, verify, load
 *     cubist_runtime_select       problem, device -> selection
 *       cubist_selection_prepare  the same for one selection
 *       cubist_selection_launch   tensors, scales, stream
 *     cubist_runtime_launch       select and launch in one call
 *
 * Conventions
 *
 *  1. Every call returns a cubist_status, but for cubist_version_*, cubist_status_string and
 *     cubist_last_error_message. Results go to out_* parameters, which come last. When the call
 *     fails, handles, strings and counts are set to NULL or 0; structs are not to be read.
 *  2. Handles are opaque, made by _open or _select, freed by _destroy, which accepts NULL. A handle
 *     is a number in the shape of a pointer, with a generation: destroying it twice or using it
 *     afterwards is CUBIST_STATUS_INVALID_ARGUMENT, never a crash.
 *  3. Structs start with struct_size. Fill them with their CUBIST_*_INIT, then change what you
 *     need. They grow at the end only, and a later library goes on taking the sizes of earlier
 *     headers; a size that this library does not know is refused.
 *  4. Strings are UTF-8 and NUL-terminated. Those passed in are read during the call alone; those
 *     handed out belong to the handle they came from (or to the library) and die with it.
 *  5. cubist_last_error_message() is what the last failed call of the same thread had to say. It
 *     stays valid until that thread's next call.
 *  6. Any number of threads may use one handle at once, whatever its kind. Destroying a handle
 * while another thread uses it is the caller's fault. A runtime lives on until its last selection
 * is destroyed.
 *  7. A stream is a void* that holds a CUstream (or cudaStream_t); NULL is the legacy default
 *     stream. Device queries, _prepare, _clear_workspace, _fuse, _check and _launch call the driver
 *     (and cuInit, if nobody did); nothing else does. All but the queries use the CUDA context that
 *     is current on the calling thread, be it primary, created or green; the stream must belong to
 *     it.
 *  8. Callbacks carry a void* user_data and may come from any thread, one call at a time. Replacing
 *     one waits for a call of it that is running: after that it is not called again, and what
 *     user_data points to may go. So it must not be replaced from within itself.
 *  9. Booleans are int32_t, 0 or 1. Lengths are in tokens, strides in elements, sizes in bytes.
 *     In a field that says "derived", -1 means: work it out.
 * 10. Nothing throws, and nothing is printed but warnings on standard error, which a log callback
 *     takes instead.
 */

#include <stddef.h>
#include <stdint.h>

#include "cubist/export.h"
#include "cubist/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pinned values, in groups with gaps; new ones may come, old ones never change their meaning. */
typedef int32_t cubist_status;
enum {
  CUBIST_STATUS_OK = 0,
  CUBIST_STATUS_INVALID_ARGUMENT = 1,  /* a field out of range or contradictory */
  CUBIST_STATUS_NOT_FOUND = 2,         /* a name, hash or file that is not there */
  CUBIST_STATUS_UNSUPPORTED = 3,       /* no kernel serves the problem */
  CUBIST_STATUS_OUT_OF_MEMORY = 4,     /* host memory */
  CUBIST_STATUS_MANIFEST_INVALID = 10, /* a manifest breaks its own rules */
  CUBIST_STATUS_INTEGRITY = 20,        /* bytes differ from their digest, size or structure */
  CUBIST_STATUS_NETWORK = 21,          /* a source could not be reached or answered with an error */
  CUBIST_STATUS_IO = 22,               /* disk or permission */
  CUBIST_STATUS_OFFLINE = 23,          /* missing here, and fetching was not allowed */
  CUBIST_STATUS_UNTRUSTED = 24,        /* signature, serial, revocation or ownership refused */
  CUBIST_STATUS_DRIVER_UNAVAILABLE = 30, /* no libcuda, or no device */
  CUBIST_STATUS_DRIVER_ERROR = 31,       /* a driver call failed; the message has name and number */
  CUBIST_STATUS_DEVICE_MISMATCH = 32,    /* the kernel cannot run on this device or driver */
  CUBIST_STATUS_CAPTURE = 33,            /* a load would be needed while the stream is captured */
  CUBIST_STATUS_FORKED = 34,             /* the driver was initialised before fork() */
  CUBIST_STATUS_INTERRUPTED = 90,        /* the caller or a signal asked to stop */
  CUBIST_STATUS_INTERNAL = 99            /* a fault of the library */
};

/* "integrity", "network", ...; "unknown" for other values. Never NULL. */
CUBIST_API const char* cubist_status_string(cubist_status status);
/* The calling thread's last failure in words, "" if its last call succeeded. Never NULL. */
CUBIST_API const char* cubist_last_error_message(void);

/* CUBIST_VERSION_NUMBER and CUBIST_VERSION_STRING of the library itself. */
CUBIST_API uint32_t cubist_version_number(void);
CUBIST_API const char* cubist_version_string(void);

enum {
  CUBIST_LOG_DEBUG = 0,
  CUBIST_LOG_INFO = 1,
  CUBIST_LOG_WARNING = 2,
  CUBIST_LOG_ERROR = 3,
  CUBIST_LOG_OFF = 4
};
typedef void (*cubist_log_callback)(int32_t level, const char* message, void* user_data);

/* Where messages of at least `min_level` go, for the whole process. NULL: standard error again.
 * The callback must not call the library. */
CUBIST_API cubist_status cubist_log_set_callback(cubist_log_callback callback, void* user_data,
                                                 int32_t min_level);

/* What selection needs to know of a GPU. Asked of the driver, or filled in by hand to select for a
 * machine that is not this one. */
typedef struct cubist_device {
  uint32_t struct_size;
  uint32_t sm;             /* compute capability: 90, 100, 103 */
  int32_t num_sms;         /* streaming multiprocessors */
  uint32_t max_smem_optin; /* shared memory one block may have */
  /* Clusters of [size] CTAs that fit at once; -1 = unknown. Entries 0 and 1 are not used. */
  int32_t max_active_clusters[17];
  char name[68]; /* for people */
} cubist_device;

/* An H100 or H200: 132 SMs of compute capability 9.0. */
#define CUBIST_DEVICE_INIT                                                       \
  {                                                                              \
    sizeof(cubist_device), 90, 132, 232448,                                      \
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, "" \
  }

/* Devices the driver shows; 0 and CUBIST_STATUS_DRIVER_UNAVAILABLE where there is no driver. */
CUBIST_API cubist_status cubist_device_count(int32_t* out_count);
/* Makes no context. `out_device` needs its struct_size. */
CUBIST_API cubist_status cubist_device_query(int32_t ordinal, cubist_device* out_device);

typedef struct cubist_runtime cubist_runtime;
typedef struct cubist_selection cubist_selection;

/* What is done about something that is not vouched for. */
enum {
  CUBIST_POLICY_DEFAULT = 0, /* the environment's, else the library's own */
  CUBIST_POLICY_ALLOW = 1,
  CUBIST_POLICY_WARN = 2,  /* says so in the log */
  CUBIST_POLICY_REFUSE = 3 /* CUBIST_STATUS_UNTRUSTED */
};

typedef struct cubist_runtime_options {
  uint32_t struct_size;
  int32_t offline; /* 1: sources on this machine only, no network */
  /* Files, or names: of shipped manifests, or of those that bundles installed in this store;
   * tried in this order. */
  const char* const* manifests;
  uint32_t num_manifests; /* at least 1 */
  int32_t strict;         /* 1: refuse where the published rules refuse */
  const char* store_dir;  /* NULL: CUBIST_STORE, else the XDG cache folder */
  /* Whom to trust (docs/signing.md). A list that is NULL: the environment's (CUBIST_TRUSTED_KEYS,
   * CUBIST_KEY_STATEMENTS, CUBIST_REVOCATIONS); one that is not, be it of 0, stands alone. */
  const char* const* trusted_keys;   /* minisign public keys "RW...", or .pub files */
  const char* const* key_statements; /* files, each with its .minisig */
  const char* const* revocations;    /* files, each with its .minisig: kernels that never run */
  uint32_t num_trusted_keys;
  uint32_t num_key_statements;
  uint32_t num_revocations;
  int32_t manifest_signatures; /* CUBIST_POLICY_* for manifests that nobody signed */
  int32_t foreign_store;       /* CUBIST_POLICY_* for stores that others can write */
  int32_t accept_older_serial; /* 1: manifests and lists older than those seen before, too */
  const char* overrides; /* a rule file (docs/overrides.md), such as cubist tune writes; or NULL */
} cubist_runtime_options;

#define CUBIST_RUNTIME_OPTIONS_INIT \
  { sizeof(cubist_runtime_options), 0, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL }

/* Reads the manifests; touches neither network nor driver. What has no field here comes from the
 * environment: CUBIST_STORE_BASE (read-only stores below this one), CUBIST_SOURCES (in place of the
 * manifests' own sources), CUBIST_MANIFESTS (where names are looked for first). */
CUBIST_API cubist_status cubist_runtime_open(const cubist_runtime_options* options,
                                             cubist_runtime** out_runtime);
/* Unloads what was loaded, once the last selection is gone too: in each context it was loaded in,
 * on the thread that destroys last, which need have no context current. No launch may be running
 * then, and no graph that holds one may be launched later (docs/design/launch.md). Contexts that
 * are gone by then took their modules with them. */
CUBIST_API cubist_status cubist_runtime_destroy(cubist_runtime* runtime);

typedef struct cubist_runtime_info {
  uint32_t struct_size;
  uint32_t num_kernels; /* of all manifests */
  uint64_t loads;       /* modules loaded so far */
  uint64_t failed_loads;
  uint64_t load_nanoseconds; /* spent loading, all threads added up */
  const char* store_dir;     /* belongs to the runtime */
  uint64_t selections;       /* made so far */
  uint64_t fallbacks;        /* among them: best plan is not the published rule's own choice */
} cubist_runtime_info;

#define CUBIST_RUNTIME_INFO_INIT \
  { sizeof(cubist_runtime_info), 0, 0, 0, 0, NULL, 0, 0 }

CUBIST_API cubist_status cubist_runtime_get_info(cubist_runtime* runtime,
                                                 cubist_runtime_info* out_info);

/* Brings one kernel into the store: `kernel` is its name or the 64 hexadecimal digits of its
 * SHA-256. Does nothing where the store has it. Needs no GPU. */
CUBIST_API cubist_status cubist_runtime_fetch(cubist_runtime* runtime, const char* kernel);
/* The same for many at once, over several connections. `kernels` NULL with `num_kernels` 0: all
 * kernels of the runtime's manifests. What came before a failure stays in the store. */
CUBIST_API cubist_status cubist_runtime_fetch_many(cubist_runtime* runtime,
                                                   const char* const* kernels,
                                                   uint32_t num_kernels);

/* How far one fetch has come; bytes are those of cubins, but for received_bytes. */
typedef struct cubist_fetch_progress {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  uint64_t files_total;
  uint64_t files_done; /* present, fetched or failed */
  uint64_t files_failed;
  uint64_t bytes_total;
  uint64_t bytes_done;
  uint64_t received_bytes; /* of answers, by the network */
  double seconds;
} cubist_fetch_progress;

/* 0: stop, the fetch ends with CUBIST_STATUS_INTERRUPTED; anything else: go on. Called from the
 * thread that fetches, ten times a second at most and at the end; must not call the library but for
 * cubist_runtime_cancel. `progress` is valid during the call. */
typedef int32_t (*cubist_progress_callback)(const cubist_fetch_progress* progress, void* user_data);

/* Who is told of this runtime's fetches, launches' own included. NULL: nobody. */
CUBIST_API cubist_status cubist_runtime_set_progress_callback(cubist_runtime* runtime,
                                                              cubist_progress_callback callback,
                                                              void* user_data);
/* Ends the fetches of this runtime that are under way in other threads, soon, with
 * CUBIST_STATUS_INTERRUPTED. What is complete stays, of the rest the next fetch resumes where the
 * server lets it. Later fetches are not concerned. Not for signal handlers. */
CUBIST_API cubist_status cubist_runtime_cancel(cubist_runtime* runtime);

enum { CUBIST_PHASE_DECODE = 0, CUBIST_PHASE_CONTEXT = 1, CUBIST_PHASE_RAGGED = 2 };
enum {
  CUBIST_DTYPE_FP16 = 0,
  CUBIST_DTYPE_BF16 = 1,
  CUBIST_DTYPE_FP32 = 2,
  CUBIST_DTYPE_INT8 = 3,
  CUBIST_DTYPE_INT32 = 4,
  CUBIST_DTYPE_E4M3 = 5,
  CUBIST_DTYPE_E5M2 = 6,
  CUBIST_DTYPE_E2M1 = 7
};
enum { CUBIST_KV_LAYOUT_HND = 0, CUBIST_KV_LAYOUT_NHD = 1 };

/* One attention call.
 *
 *   q         [sum_seq_q, num_q_heads, head_dim_qk]
 *   paged kv  [num_pages, num_kv_heads, page_size, head_dim] (HND)
 *             [num_pages, page_size, num_kv_heads, head_dim] (NHD)
 *   o         [sum_seq_q, num_q_heads, head_dim_vo] */
typedef struct cubist_attention_problem {
  uint32_t struct_size;
  int32_t phase;
  int32_t dtype_q;
  int32_t dtype_k;
  int32_t dtype_v;
  int32_t dtype_o;
  int32_t head_dim_qk;
  int32_t head_dim_vo; /* derived: head_dim_qk */
  int32_t num_q_heads;
  int32_t num_kv_heads;
  int32_t batch;             /* sequences */
  int32_t max_q_len;         /* new tokens of the longest sequence */
  int32_t max_kv_len;        /* KV tokens of the longest sequence, the new ones included */
  int32_t page_size;         /* tokens of a KV page */
  int32_t max_pages_per_seq; /* derived: ceil(max_kv_len / page_size) */
  int32_t kv_layout;
  int64_t sum_seq_q;       /* derived: batch * max_q_len */
  int64_t sum_seq_kv;      /* derived: batch * max_kv_len */
  int64_t num_pages;       /* derived: batch * max_pages_per_seq */
  int64_t q_stride_tokens; /* derived: dense; so are all strides */
  int64_t q_stride_heads;
  int64_t kv_stride_batch; /* paged: from page to page */
  int64_t kv_stride_heads;
  int64_t kv_stride_tokens;
  int64_t k_stride_tokens; /* ragged */
  int64_t k_stride_heads;
  int64_t v_stride_tokens;
  int64_t v_stride_heads;
  int64_t lse_stride_tokens;
  int64_t lse_stride_heads;
  int64_t workspace_size; /* what will be given at launch, at most */
  /* K and V are the two halves of each page of one tensor: [num_pages, 2, ...]. At launch v is the
   * address of the first page's second half; derived page strides are those of the whole pages. */
  int32_t kv_combined;
  int32_t is_mla;      /* one-copy KV: the V tensor is the K tensor */
  int32_t window_left; /* tokens left of the query's own; -1 = no window */
  int32_t chunk_size;  /* chunked attention; 0 = off */
  int32_t causal;
  int32_t custom_mask; /* refused by name: no kernel is asked for it */
  int32_t packed_qkv;  /* refused by name */
  int32_t varlen_q;    /* decode: cumulative query lengths are given */
  int32_t sinks;       /* one attention sink a query head is given */
  int32_t lse;         /* log-sum-exp is wanted, base 2 */
  int32_t sparse_mla_topk;
  int32_t sparse_dynamic;           /* per-token top-k lengths are given */
  int32_t uses_shared_paged_kv_idx; /* one page table for K and V */
  int32_t o_sf_start_index;
  float o_sf_scale;       /* nvfp4 output: global scale; -1 = unused */
  float skip_softmax;     /* threshold scale factor; 0 = off */
  int32_t sage_blocks[4]; /* q, k, p, v; 0 = off */
  /* Programmatic dependent launch: the kernel may start before the preceding one of the stream has
   * ended. It waits for that one's writes before it reads q, sinks, scales and the KV of the newest
   * max_q_len tokens; block_table, lengths and older KV it may read earlier, so those must have
   * been written before the preceding kernel was launched. INIT turns it on: set 0 where the
   * preceding kernel writes any of these. 0: nothing is read early. */
  int32_t enable_pdl;
  int32_t max_active_clusters; /* cluster-occupancy answer to use; -1 = the device's */
  /* 1: a sequence's o and lse are the same bits whatever other sequences are in the batch, how
   * many, where it stands among them, and whatever GPU of one compute capability runs it. What
   * stays the sequence's own: its tokens, lengths, heads and types, and max_q_len unless varlen_q.
   * Decode without MLA; kernels of the cubist_decode family alone. docs/design/selection.md has the
   * cost. */
  int32_t batch_invariant;
  int32_t reserved; /* 0 */
} cubist_attention_problem;

/* bf16, head_dim 128, one sequence with 1 new and 1024 KV tokens, 8 KV heads, pages of 64;
 * enable_pdl 1 (see there what the preceding kernel may then not write); num_q_heads must be set.
 */
#define CUBIST_ATTENTION_PROBLEM_INIT                                                            \
  {                                                                                              \
    sizeof(cubist_attention_problem), CUBIST_PHASE_DECODE, CUBIST_DTYPE_BF16, CUBIST_DTYPE_BF16, \
        CUBIST_DTYPE_BF16, CUBIST_DTYPE_BF16, 128, -1, 0, 8, 1, 1, 1024, 64, -1,                 \
        CUBIST_KV_LAYOUT_HND, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 268435456, \
        0, 0, -1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, -1.0f, 0.0f, {0, 0, 0, 0}, 1, -1, 0, 0        \
  }

/* Chooses kernels. Pure: no file, network or driver. The selection keeps a copy of the problem. */
CUBIST_API cubist_status cubist_runtime_select(cubist_runtime* runtime,
                                               const cubist_attention_problem* problem,
                                               const cubist_device* device,
                                               cubist_selection** out_selection);
/* The same for an array of problems. out_selections has num_problems places.
 *
 * out_statuses NULL: all or none; the message says which problem failed. Else it has num_problems
 * places too, each gets its problem's status, a failed one's selection is NULL, and the call itself
 * fails for its other arguments alone. */
CUBIST_API cubist_status cubist_runtime_select_many(
    cubist_runtime* runtime, const cubist_attention_problem* problems, uint32_t num_problems,
    const cubist_device* device, cubist_selection** out_selections, cubist_status* out_statuses);
CUBIST_API cubist_status cubist_selection_destroy(cubist_selection* selection);

enum { CUBIST_FAMILY_TRTLLM_GEN_FMHA = 0, CUBIST_FAMILY_CUBIST_DECODE = 1 };

enum {
  CUBIST_MULTI_CTAS_KV_OFF = 0,
  CUBIST_MULTI_CTAS_KV_GLOBAL_MEMORY = 1,
  CUBIST_MULTI_CTAS_KV_SEPARATE_REDUCTION = 2,
  CUBIST_MULTI_CTAS_KV_CLUSTER_SHARED_MEMORY = 3
};

/* One way to launch. Strings belong to the selection. */
typedef struct cubist_plan_info {
  uint32_t struct_size;
  int32_t family;
  const char* kernel;   /* function name */
  const char* sha256;   /* of the cubin, 64 hexadecimal digits */
  const char* arch;     /* "sm_90a" */
  const char* revision; /* which rules chose: "cubist-decode-1" */
  const char* fallback; /* why it is not the published rule's own choice; "" if it is */
  uint64_t size_bytes;  /* of the cubin */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t smem;                 /* dynamic shared memory */
  uint32_t cluster_sched_policy; /* 0 default, 1 spread */
  int32_t pdl;
  int32_t tile_q;
  int32_t tile_kv;
  int32_t multi_ctas_kv_mode; /* CUBIST_MULTI_CTAS_KV_*: how CTAs that share a query's KV join */
  int32_t num_ctas_q;
  int32_t num_ctas_kv;
  int32_t num_tokens_per_cta_q;
  int32_t num_heads_per_cta;
  int32_t min_active_clusters; /* launched only if so many clusters fit at once; 0 = always */
  int32_t needs_reduction;     /* a separate reduction kernel follows */
  int32_t needs_lse;           /* a separate log-sum-exp kernel follows */
} cubist_plan_info;

#define CUBIST_PLAN_INFO_INIT                                                                      \
  {                                                                                                \
    sizeof(cubist_plan_info), 0, NULL, NULL, NULL, NULL, NULL, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                      \
  }

/* Plans, best first; at least 1. A launch takes the first whose precondition holds. */
CUBIST_API cubist_status cubist_selection_get_num_plans(cubist_selection* selection,
                                                        uint32_t* out_num_plans);
CUBIST_API cubist_status cubist_selection_get_plan(cubist_selection* selection, uint32_t index,
                                                   cubist_plan_info* out_plan);
/* Why this kernel, and why not others, for people; belongs to the selection. */
CUBIST_API cubist_status cubist_selection_explain(cubist_selection* selection,
                                                  const char** out_text);
/* Brings the plans' cubins into the store. Needs no GPU. */
CUBIST_API cubist_status cubist_selection_fetch(cubist_selection* selection);

typedef struct cubist_workspace_info {
  uint32_t struct_size;
  uint32_t alignment;
  uint64_t size_bytes; /* enough for every plan of the selection; 0: none is needed */
  /* The first zero_bytes must be zero before the first launch; every launch leaves them zero. */
  uint64_t zero_bytes;
} cubist_workspace_info;

#define CUBIST_WORKSPACE_INFO_INIT \
  { sizeof(cubist_workspace_info), 0, 0, 0 }

/* Device memory that launches of this selection need. Launches that may overlap must not share it;
 * those that follow each other may, also of other selections with the same zero_bytes. */
CUBIST_API cubist_status cubist_selection_get_workspace(cubist_selection* selection,
                                                        cubist_workspace_info* out_workspace);
/* A bound for buffers that launches of several shapes share (CUDA graphs): enough for every
 * problem of at most `largest`'s batch, max_q_len and max_kv_len and else like it. */
CUBIST_API cubist_status cubist_runtime_get_workspace_bound(cubist_runtime* runtime,
                                                            const cubist_attention_problem* largest,
                                                            const cubist_device* device,
                                                            cubist_workspace_info* out_workspace);
/* Zeroes what must be zero, in stream order. May be captured. */
CUBIST_API cubist_status cubist_selection_clear_workspace(cubist_selection* selection,
                                                          void* workspace, uint64_t workspace_size,
                                                          void* stream);

/* Makes the selection ready in the current context: fetches, loads, sets attributes. A launch does
 * so itself when it must, but not while its stream is captured. */
CUBIST_API cubist_status cubist_selection_prepare(cubist_selection* selection);

enum {
  CUBIST_PREPARED_LOADED = 0,  /* by this call */
  CUBIST_PREPARED_PRESENT = 1, /* before */
  CUBIST_PREPARED_FAILED = 2
};

/* What became of one kernel. Valid during the callback. */
typedef struct cubist_prepared_kernel {
  uint32_t struct_size;
  int32_t state;        /* CUBIST_PREPARED_* */
  const char* kernel;   /* function name */
  const char* sha256;   /* of the cubin, 64 hexadecimal digits */
  const char* error;    /* "" unless it failed */
  cubist_status status; /* of this kernel */
  int32_t reserved;     /* 0 */
  double milliseconds;  /* reading, hashing and loading it, on its thread */
} cubist_prepared_kernel;

/* Called from the preparing thread once all is done, kernel by kernel in the order they were named;
 * must not call the library. */
typedef void (*cubist_prepare_callback)(const cubist_prepared_kernel* kernel, void* user_data);

/* What to prepare; the lists may be combined. None given: every kernel of the runtime's manifests
 * that the current context's device can run. */
typedef struct cubist_prepare_options {
  uint32_t struct_size;
  uint32_t num_threads;       /* at most; 0: as many as suits the machine */
  const char* const* kernels; /* names, or the 64 hexadecimal digits of their SHA-256 */
  uint32_t num_kernels;
  uint32_t num_selections;
  cubist_selection* const* selections; /* of this runtime; what they will launch */
  const char* working_set;             /* file written by `cubist working-set`; or NULL */
  cubist_prepare_callback on_kernel;   /* or NULL */
  void* user_data;
} cubist_prepare_options;

#define CUBIST_PREPARE_OPTIONS_INIT \
  { sizeof(cubist_prepare_options), 0, NULL, 0, 0, NULL, NULL, NULL, NULL }

typedef struct cubist_prepare_report {
  uint32_t struct_size;
  uint32_t num_kernels; /* asked for, each once */
  uint32_t num_loaded;  /* by this call */
  uint32_t num_present; /* before */
  uint32_t num_failed;
  uint32_t num_threads;      /* that loaded */
  double milliseconds;       /* of the call */
  double fetch_milliseconds; /* among them: for what was not in the store */
} cubist_prepare_report;

#define CUBIST_PREPARE_REPORT_INIT \
  { sizeof(cubist_prepare_report), 0, 0, 0, 0, 0, 0.0, 0.0 }

/* Makes kernels ready in the current context: fetches what the store lacks, verifies, loads on
 * several threads, sets attributes. Afterwards launches of them load nothing, so they may be
 * captured. Doing it again costs a look-up a kernel.
 *
 * A kernel that fails does not keep the others from being loaded: the call then ends with the first
 * failure's status, and out_report (which may be NULL) counts all the same. */
CUBIST_API cubist_status cubist_runtime_prepare(cubist_runtime* runtime,
                                                const cubist_prepare_options* options,
                                                cubist_prepare_report* out_report);

/* A tensor's shape and strides, outermost dimension first; e2m1 counts single elements too. */
typedef struct cubist_tensor_layout {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank;     /* at most 4 */
  int32_t reserved; /* 0 */
  int64_t shape[4];
  int64_t strides[4]; /* elements */
} cubist_tensor_layout;

#define CUBIST_TENSOR_LAYOUT_INIT                                       \
  {                                                                     \
    sizeof(cubist_tensor_layout), 0, 0, 0, {0, 0, 0, 0}, { 0, 0, 0, 0 } \
  }

/* The output to allocate: [sum_seq_q, num_q_heads, head_dim_vo], dense. */
CUBIST_API cubist_status cubist_selection_get_output(cubist_selection* selection,
                                                     cubist_tensor_layout* out_layout);

/* The block scales of an nvfp4 output (dtype_o e2m1): e4m3, one for 16 columns of a token, in tiles
 * of 128 rows and 4 columns. The scale of (row, column) is the byte
 *
 *   ((row / 128) * (columns / 4) + column / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4
 *   + column % 4
 *
 * where row = token + o_sf_start_index and column = element of the token's row / 16. */
typedef struct cubist_output_scale_info {
  uint32_t struct_size;
  uint32_t alignment;
  int64_t rows;    /* padded to a multiple of 128 */
  int64_t columns; /* padded to a multiple of 4 */
  uint64_t size_bytes;
} cubist_output_scale_info;

#define CUBIST_OUTPUT_SCALE_INFO_INIT \
  { sizeof(cubist_output_scale_info), 0, 0, 0, 0 }

CUBIST_API cubist_status cubist_selection_get_output_scale(cubist_selection* selection,
                                                           cubist_output_scale_info* out_scale);

/* Device addresses and scales of one launch; what they point at must stay until it has run. What
 * the problem does not have is NULL.
 *
 *            k, v                  block_table  seq_lens_kv  cum_seq_lens_q      cum_seq_lens_kv
 *   GQA      both                  yes          yes          if varlen_q         no
 *   MLA      k; v NULL or equal k  yes          yes          if varlen_q         no
 *   context  as GQA or MLA         yes          yes          yes                 yes
 *   ragged   both                  no           yes          yes                 yes
 *
 * Alignment: 16 bytes for q, k, v, o and block scales (32 for FP4 K and V); the workspace's own; 4
 * for all others.
 *
 * Scales. Each has one meaning: q, k and v are what stored numbers must be multiplied with to be
 * the real ones, o_scale is what the real output is multiplied with to be stored, sm_scale is that
 * of the softmax.
 *
 *   bmm1 = q_scale * k_scale * sm_scale      bmm2 = v_scale * o_scale      (float32, in that order)
 *   out  = bmm2 * softmax(bmm1 * q k^T) v
 *
 * sm_scale 0 means 1/sqrt(head size before MLA's absorption): head_dim_qk, but 192 for MLA with 576
 * and 512. k_scale and v_scale belong to a quantised KV cache; with another they must be 1. Where
 * bmm1_scale_log2 is given it replaces q_scale, k_scale and sm_scale: the device address of one
 * float, already times log2(e). bmm2_scale likewise replaces v_scale and o_scale.
 * cubist_scales_fuse makes both of device scalars; results do not depend on the way, to the bit. */
typedef struct cubist_attention_args {
  uint32_t struct_size;
  float q_scale;
  float k_scale;
  float v_scale;
  float sm_scale;
  float o_scale;
  const void* q;
  const void* k;
  const void* v;
  void* o;
  /* [batch, max_pages_per_seq] page numbers; [batch, 2, max_pages_per_seq] (K's, then V's) without
   * uses_shared_paged_kv_idx; a top-k call: [sum_seq_q, sparse_mla_topk] token indices */
  const int32_t* block_table;
  const int32_t* seq_lens_kv;    /* [batch] KV tokens, the new ones included; at most max_kv_len */
  const int32_t* cum_seq_lens_q; /* [batch + 1] */
  const float* sinks;            /* [num_q_heads]; exactly if the problem says sinks */
  float* lse;                    /* [sum_seq_q, num_q_heads]; exactly if the problem says lse */
  const float* bmm1_scale_log2;
  const float* bmm2_scale;
  void* workspace;
  uint64_t workspace_size;
  int64_t o_stride_tokens; /* derived: dense */
  int64_t o_stride_heads;
  const int32_t* cum_seq_lens_kv; /* [batch + 1] */
  /* FP4 KV: e4m3 block scales, one for 16 elements, each dense
   * [num_pages, num_kv_heads, page_size, head_dim / 16] whatever the strides of K and V */
  const void* k_sf;
  const void* v_sf;
  void* o_sf;               /* nvfp4 output: see cubist_selection_get_output_scale */
  const void* sliding_pool; /* sparse_dynamic: the second KV pool, dense rows [.., head_dim_qk] */
  const int32_t* topk_lens; /* sparse_dynamic: [sum_seq_q] */
  /* q, k, p, v; where sage_blocks is not 0. Handed to the kernel unread: their layout is its own.
   */
  const float* sage_scales[4];
  const cubist_tensor_layout* o_layout; /* what `o` is, to be checked; NULL: not known */
  float o_sf_scale;                     /* nvfp4 output: global scale; 0: the problem's */
  int32_t o_sf_start_index;             /* nvfp4 output; -1: the problem's */
} cubist_attention_args;

#define CUBIST_ATTENTION_ARGS_INIT                                                               \
  {                                                                                              \
    sizeof(cubist_attention_args), 1.0f, 1.0f, 1.0f, 0.0f, 1.0f, NULL, NULL, NULL, NULL, NULL,   \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, -1, -1, NULL, NULL, NULL, NULL, NULL, NULL, \
        {NULL, NULL, NULL, NULL}, NULL, 0.0f, -1                                                 \
  }

/* Queues the launch on `stream`. Every field is checked first; if one is wrong nothing is launched.
 * After the first launch (or prepare) in a context this allocates nothing and takes no lock. */
CUBIST_API cubist_status cubist_selection_launch(cubist_selection* selection,
                                                 const cubist_attention_args* args, void* stream);

/* Select and launch in one call, for callers that would rather not keep selections. The runtime
 * remembers what it selected: a problem asked again, field for field, allocates nothing and waits
 * for no other thread. `device` NULL: the device of the current context. */
CUBIST_API cubist_status cubist_runtime_launch(cubist_runtime* runtime,
                                               const cubist_attention_problem* problem,
                                               const cubist_device* device,
                                               const cubist_attention_args* args, void* stream);

/* Looks behind the addresses of a call, which a launch never does: whether each is memory of the
 * current context's device (mixed devices), long enough for its tensor, and whether the lengths and
 * page numbers on the device are within the problem's limits. For debugging: waits for the stream
 * and copies the integer tensors; not while it is captured. Launches nothing. */
CUBIST_API cubist_status cubist_selection_check(cubist_selection* selection,
                                                const cubist_attention_args* args, void* stream);

/* Five scales, each on the device (the address of one float) or, where that is NULL, on the host,
 * and where to write the two factors that a launch reads. The meaning is that of
 * cubist_attention_args; a scale may not be given both ways. */
typedef struct cubist_scales {
  uint32_t struct_size;
  float q_scale;
  float k_scale;
  float v_scale;
  float sm_scale;
  float o_scale;
  const float* q_scale_device;
  const float* k_scale_device;
  const float* v_scale_device;
  const float* sm_scale_device;
  const float* o_scale_device;
  float* out_bmm1_scale_log2; /* device address of one float */
  float* out_bmm2_scale;
} cubist_scales;

#define CUBIST_SCALES_INIT \
  { sizeof(cubist_scales), 1.0f, 1.0f, 1.0f, 0.0f, 1.0f, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Queues a kernel of one block that writes q * k * sm * log2(e) and v * o. The kernel is of
 * the shipped manifest cubist-aux, which a runtime opens by itself. `problem` is that of the
 * launches that will read them: its KV type says whether k and v may be given, its head size what a
 * missing sm_scale is. */
CUBIST_API cubist_status cubist_scales_fuse(cubist_runtime* runtime,
                                            const cubist_attention_problem* problem,
                                            const cubist_scales* scales, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CUBIST_CUBIST_H_ */
