#include "launch_addresses.h"

#include <charconv>

#include "codec/json_reader.h"

namespace cubist::tools {
namespace {

using trtllm_gen::Addresses;

constexpr std::string_view kKey = "addresses";

constexpr std::uint64_t at_16_tib(std::uint64_t n) { return n << 44; }
constexpr std::uint64_t at_tib(std::uint64_t n) { return n << 40; }

Addresses made_up(const AttentionProblem& p) {
  Addresses a;
  a.q = at_16_tib(1);
  a.k = at_16_tib(2);
  a.v = at_16_tib(3);
  a.o = at_16_tib(4);
  a.o_sf = at_16_tib(5);
  a.workspace = at_16_tib(6);
  a.block_table = at_16_tib(7);
  a.seq_lens_kv = at_tib(0x71);
  a.cum_seq_lens_q = at_tib(0x72);
  a.cum_seq_lens_kv = at_tib(0x73);
  a.sinks = at_tib(0x74);
  a.lse = at_tib(0x75);
  a.k_sf = at_tib(0x76);
  a.v_sf = at_tib(0x77);
  a.bmm1_scale = at_tib(0x78);
  a.bmm2_scale = at_tib(0x79);
  a.sliding_pool = p.sparse_dynamic ? at_tib(0x7a) : 0;
  a.topk_lens = at_tib(0x7b);
  a.sage_scales = {at_tib(0x7c), at_tib(0x7d), at_tib(0x7e), at_tib(0x7f)};
  return a;
}

/// Where V lies if nobody says so, once K's place is known.
std::uint64_t v_beside_k(const AttentionProblem& p, const Addresses& a) {
  if (p.is_mla) return a.k;
  if (!p.kv_combined) return a.v;
  const std::uint64_t elements = static_cast<std::uint64_t>(p.num_kv_heads) *
                                 static_cast<std::uint64_t>(p.page_size) *
                                 static_cast<std::uint64_t>(p.head_dim_qk);
  return a.k + elements * dtype_bits(p.dtype_k) / 8;
}

struct Name {
  std::string_view name;
  std::uint64_t Addresses::*member;
};
constexpr Name kNames[] = {{"q", &Addresses::q},
                           {"k", &Addresses::k},
                           {"v", &Addresses::v},
                           {"o", &Addresses::o},
                           {"o_sf", &Addresses::o_sf},
                           {"workspace", &Addresses::workspace},
                           {"block_table", &Addresses::block_table},
                           {"seq_lens_kv", &Addresses::seq_lens_kv},
                           {"cum_seq_lens_q", &Addresses::cum_seq_lens_q},
                           {"cum_seq_lens_kv", &Addresses::cum_seq_lens_kv},
                           {"sinks", &Addresses::sinks},
                           {"lse", &Addresses::lse},
                           {"k_sf", &Addresses::k_sf},
                           {"v_sf", &Addresses::v_sf},
                           {"bmm1_scale_log2", &Addresses::bmm1_scale},
                           {"bmm2_scale", &Addresses::bmm2_scale},
                           {"sliding_pool", &Addresses::sliding_pool},
                           {"topk_lens", &Addresses::topk_lens}};

class AddressReader {
 public:
  AddressReader(std::string_view line, const AttentionProblem& problem)
      : reader_(line), addresses_(made_up(problem)) {}

  Result<Addresses> run(const AttentionProblem& problem) {
    // A line that was read as a problem before: only what is in "addresses" can be wrong.
    if (!read_object()) {
      Status status = reader_.status();
      return forward_error(status,
                           name_.empty() ? std::string(kKey) : fmt::format("{}: {}", kKey, name_));
    }
    if (!has_v_) addresses_.v = v_beside_k(problem, addresses_);
    return addresses_;
  }

 private:
  /// A problem, or an object whose "in" is one.
  bool read_object() {
    std::string_view key;
    std::string_view raw;
    if (!reader_.begin_object()) return false;
    while (reader_.next_key(key)) {
      if (key == kKey) {
        if (!read_addresses_object()) return false;
      } else if (key == "in") {
        if (!read_object()) return false;
      } else if (!reader_.skip_value(raw)) {
        return false;
      }
    }
    return !reader_.failed();
  }

  bool read_addresses_object() {
    std::string_view key;
    if (!reader_.begin_object()) return false;
    while (reader_.next_key(key)) {
      name_.assign(key);
      if (!read_named(key)) return false;
    }
    return !reader_.failed();
  }

  bool read_named(std::string_view key) {
    if (key == "sage_scales") return read_sage_scales();
    for (const Name& name : kNames) {
      if (name.name != key) continue;
      has_v_ = has_v_ || name.member == &Addresses::v;
      return read_address(addresses_.*name.member);
    }
    return reader_.fault("unknown name");
  }

  bool read_sage_scales() {
    std::size_t count = 0;
    if (!reader_.begin_array()) return false;
    while (reader_.next_element()) {
      if (count == addresses_.sage_scales.size()) break;
      if (!read_address(addresses_.sage_scales[count++])) return false;
    }
    if (reader_.failed()) return false;
    return count == addresses_.sage_scales.size() ||
           reader_.fault("expected four addresses: [q, k, p, v]");
  }

  bool read_address(std::uint64_t& address) {
    constexpr std::string_view kExpected =
        "expected an address: a number of at least 0, or hexadecimal text like \"0x10000000\"";
    if (reader_.peek() != JsonReader::Type::kString) {
      std::int64_t value = 0;
      if (!reader_.read_integer(value)) return false;
      if (value < 0) return reader_.fault(kExpected);
      address = static_cast<std::uint64_t>(value);
      return true;
    }
    std::string_view text;
    if (!reader_.read_string(text)) return false;
    if (!text.starts_with("0x")) return reader_.fault(kExpected);
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + 2, end, address, 16);
    return (error == std::errc() && stop == end) || reader_.fault(kExpected);
  }

  JsonReader reader_;
  Addresses addresses_;
  bool has_v_ = false;
  std::string name_;
};

}  // namespace

Result<Addresses> read_addresses(std::string_view line, const AttentionProblem& problem) {
  if (line.find("\"addresses\"") != std::string_view::npos) {
    return AddressReader(line, problem).run(problem);
  }
  Addresses addresses = made_up(problem);
  addresses.v = v_beside_k(problem, addresses);
  return addresses;
}

launcher::CallArgs decode_args(const AttentionProblem& p, const Addresses& a) {
  launcher::CallArgs args;
  args.q = a.q;
  args.k = a.k;
  args.v = a.v;
  args.o = a.o;
  args.o_sf = p.dtype_o == Dtype::kE2m1 ? a.o_sf : 0;
  args.block_table = a.block_table;
  args.seq_lens_kv = a.seq_lens_kv;
  args.cum_seq_lens_q = p.varlen_q ? a.cum_seq_lens_q : 0;
  args.sinks = p.sinks ? a.sinks : 0;
  args.lse = p.lse ? a.lse : 0;
  args.workspace = a.workspace;
  args.workspace_size = static_cast<std::uint64_t>(p.workspace_size);
  if (p.bmm1_scale.on_device) {
    args.bmm1_scale_log2 = a.bmm1_scale;
  } else {
    args.scales.sm_scale = static_cast<float>(p.bmm1_scale.value);
  }
  if (p.bmm2_scale.on_device) {
    args.bmm2_scale = a.bmm2_scale;
  } else {
    args.scales.o_scale = static_cast<float>(p.bmm2_scale.value);
  }
  return args;
}

}  // namespace cubist::tools
