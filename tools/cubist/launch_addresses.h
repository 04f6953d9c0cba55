#pragma once

#include <string_view>

#include "base/result.h"
#include "launcher/call_args.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"

namespace cubist::tools {

/// The device addresses of a dry run's line. They come from the object "addresses" of the problem,
/// or beside its "in": names as in launcher/call_args.h, values numbers or hexadecimal text. What
/// it leaves out has a made-up address, the same as in the recordings of the published runtime, so
/// that a line can be compared with a recording as it is:
///
///   q 0x1000'0000'0000   k 0x2...   v 0x3...   o 0x4...   o_sf 0x5...   workspace 0x6...
///   block_table 0x7000'0000'0000   seq_lens_kv 0x71..   cum_seq_lens_q 0x72..
///   cum_seq_lens_kv 0x73..   sinks 0x74..   lse 0x75..   k_sf 0x76..   v_sf 0x77..
///   bmm1_scale_log2 0x78..   bmm2_scale 0x79..   sliding_pool 0x7a..   topk_lens 0x7b..
///   sage_scales 0x7c.., 0x7d.., 0x7e.., 0x7f..
///
/// v lies behind the first half of k's page with kv_combined, and is k itself with is_mla.
///
/// problem  with derived fields filled in
/// errors   kInvalidArgument: an unknown name, or a value that is no address
Result<trtllm_gen::Addresses> read_addresses(std::string_view line,
                                             const AttentionProblem& problem);

/// The same as the arguments of a decode call: what the problem does not have is left out.
launcher::CallArgs decode_args(const AttentionProblem& problem,
                               const trtllm_gen::Addresses& addresses);

}  // namespace cubist::tools
