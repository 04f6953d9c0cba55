#include "cubin/kernel_info.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "cubin/nv_info.h"

// The records of a kernel's .nv.info section that are used here (others are skipped):
//
//   id    format, payload
//   0x05  4: u32 x, y, z                    most threads a CTA may be launched with
//   0x0a  4: u32 symbol, u16 offset,        where the parameters lie in constant bank 0
//            u16 bytes
//   0x17  4: u32 index, u16 ordinal,        one parameter: size in bits 18 to 31
//            u16 offset, u32 size and flags
//   0x19  3: bytes                          all parameters together; absent if there are none
//   0x3d  4: u32 x, y, z                    cluster fixed at compile time
//   0x45  4: u32 index, u16 ordinal,        one parameter whose size does not fit 14 bits
//            u16 offset, u32 size and flags  size in bits 0 to 23
//   0x51  1: -                              tensor MMAs of single CTAs are used
//   0x52  1: -                              tensor MMAs of CTA pairs are used
//
// and of the whole file's:
//
//   0x2f  4: u32 symbol, u32 registers
//
// Ids and meanings are no documented format; they agree with names, metadata and cuobjdump wherever
// these could be compared (docs/results/cubin-inspect.md).

namespace cubist {
namespace {

enum Id : std::uint8_t {
  kMaxThreads = 0x05,
  kParamBank = 0x0a,
  kParam = 0x17,
  kParamBytes = 0x19,
  kRegisters = 0x2f,
  kCluster = 0x3d,
  kLargeParam = 0x45,
  kOneCta = 0x51,
  kTwoCta = 0x52,
};

constexpr std::uint64_t kMaxThreadsPerCta = 1024;
constexpr std::uint64_t kMaxCtasPerCluster = 1024;  // far above hardware; keeps products small

/// Reads one section's records into an entry.
class KernelInfoReader {
 public:
  KernelInfoReader(const ElfSection& section, std::string_view file, CubinEntry& entry)
      : section_(section), file_(file), entry_(entry) {}

  Status run();

 private:
  Status take(const NvInfoRecord& record);
  Status take_param(const NvInfoRecord& record);
  Status take_dim3(const NvInfoRecord& record, std::uint64_t most,
                   std::optional<std::array<std::uint32_t, 3>>& out);
  Status take_two_cta(bool two_cta);
  Status check_params();

  template <class... Args>
  tl::unexpected<Error> broken(fmt::format_string<Args...> text, Args&&... args) {
    return broken_cubin(file_, "{}: {}", section_.name,
                        fmt::format(text, std::forward<Args>(args)...));
  }

  const ElfSection& section_;
  std::string_view file_;
  CubinEntry& entry_;
  std::optional<std::uint32_t> param_bytes_;
  std::optional<std::uint32_t> bank_bytes_;
};

Status KernelInfoReader::run() {
  NvInfoReader records(section_.bytes, file_, section_.name);
  while (true) {
    CUBIST_ASSIGN_OR_RETURN(const std::optional<NvInfoRecord> record, records.next());
    if (!record) break;
    CUBIST_RETURN_IF_ERROR(take(*record));
  }
  return check_params();
}

Status KernelInfoReader::take(const NvInfoRecord& record) {
  switch (record.id) {
    case kMaxThreads:
      return take_dim3(record, kMaxThreadsPerCta, entry_.max_threads);
    case kCluster:
      return take_dim3(record, kMaxCtasPerCluster, entry_.cluster);
    case kParam:
    case kLargeParam:
      return take_param(record);
    case kOneCta:
      return take_two_cta(false);
    case kTwoCta:
      return take_two_cta(true);
    case kParamBytes:
      if (record.format != 3) return broken("record 0x19 has format {}, not 3", record.format);
      if (param_bytes_) return broken("the parameters' size is there twice");
      param_bytes_ = record.value;
      return {};
    case kParamBank: {
      const auto payload = ByteReader(record.payload).record<8>(0);
      if (!payload || record.payload.size() != 8) {
        return broken("record 0x0a has {} bytes, not 8", record.payload.size());
      }
      if (bank_bytes_) return broken("the parameters' place is there twice");
      bank_bytes_ = payload->get<std::uint16_t, 6>();
      return {};
    }
    default:
      return {};
  }
}

Status KernelInfoReader::take_param(const NvInfoRecord& record) {
  const auto payload = ByteReader(record.payload).record<12>(0);
  if (!payload || record.payload.size() != 12) {
    return broken("record {:#04x} has {} bytes, not 12", record.id, record.payload.size());
  }
  const std::uint32_t size = payload->get<std::uint32_t, 8>();
  entry_.params.push_back({payload->get<std::uint16_t, 4>(), payload->get<std::uint16_t, 6>(),
                           record.id == kLargeParam ? size & 0xffffff : size >> 18});
  return {};
}

Status KernelInfoReader::take_dim3(const NvInfoRecord& record, std::uint64_t most,
                                   std::optional<std::array<std::uint32_t, 3>>& out) {
  const auto payload = ByteReader(record.payload).record<12>(0);
  if (!payload || record.payload.size() != 12) {
    return broken("record {:#04x} has {} bytes, not 12", record.id, record.payload.size());
  }
  if (out) return broken("record {:#04x} is there twice", record.id);
  const std::array<std::uint32_t, 3> dim = {payload->get<std::uint32_t, 0>(),
                                            payload->get<std::uint32_t, 4>(),
                                            payload->get<std::uint32_t, 8>()};
  std::uint64_t product = 1;
  for (const std::uint32_t d : dim) {
    if (d == 0 || d > most) product = 0;
    product *= d;
  }
  if (product == 0 || product > most) {
    return broken("record {:#04x} says {} x {} x {}, which is not 1 to {}", record.id, dim[0],
                  dim[1], dim[2], most);
  }
  out = dim;
  return {};
}

Status KernelInfoReader::take_two_cta(bool two_cta) {
  if (entry_.two_cta_mma && *entry_.two_cta_mma != two_cta) {
    return broken("it is marked for one-CTA and for two-CTA tensor MMAs");
  }
  entry_.two_cta_mma = two_cta;
  return {};
}

Status KernelInfoReader::check_params() {
  entry_.param_bytes = param_bytes_.value_or(0);
  if (bank_bytes_ && *bank_bytes_ != entry_.param_bytes) {
    return broken("the parameters have {} bytes by one record and {} by another",
                  entry_.param_bytes, *bank_bytes_);
  }
  std::vector<CubinParam>& params = entry_.params;
  std::sort(params.begin(), params.end(),
            [](const CubinParam& a, const CubinParam& b) { return a.ordinal < b.ordinal; });
  for (std::size_t i = 0; i < params.size(); ++i) {
    const CubinParam& param = params[i];
    if (param.ordinal != i) return broken("parameter {} is missing or there twice", i);
    if (param.offset > entry_.param_bytes || entry_.param_bytes - param.offset < param.size) {
      return broken("parameter {} ({} bytes at {}) runs past the {} bytes of all parameters",
                    param.ordinal, param.size, param.offset, entry_.param_bytes);
    }
    if (i > 0 && params[i - 1].offset + params[i - 1].size > param.offset) {
      return broken("parameters {} and {} overlap", i - 1, i);
    }
  }
  return {};
}

}  // namespace

Status read_kernel_info(const ElfSection& info, std::string_view file, CubinEntry& entry) {
  return KernelInfoReader(info, file, entry).run();
}

Result<std::unordered_map<std::uint32_t, std::uint32_t>> read_register_counts(
    const ElfFile& elf, std::string_view file) {
  std::unordered_map<std::uint32_t, std::uint32_t> registers;
  for (const ElfSection& section : elf.sections) {
    if (section.type != kElfCudaInfo || section.name != ".nv.info") continue;
    NvInfoReader records(section.bytes, file, section.name);
    while (true) {
      CUBIST_ASSIGN_OR_RETURN(const std::optional<NvInfoRecord> record, records.next());
      if (!record) break;
      if (record->id != kRegisters) continue;
      const auto payload = ByteReader(record->payload).record<8>(0);
      if (!payload || record->payload.size() != 8) {
        return broken_cubin(file, "record 0x2f of .nv.info has {} bytes, not 8",
                            record->payload.size());
      }
      const auto symbol = payload->get<std::uint32_t, 0>();
      if (symbol >= elf.symbols.size()) {
        return broken_cubin(file, ".nv.info counts registers of symbol {} of {}", symbol,
                            elf.symbols.size());
      }
      if (!registers.emplace(symbol, payload->get<std::uint32_t, 4>()).second) {
        return broken_cubin(file, ".nv.info counts the registers of symbol {} twice", symbol);
      }
    }
  }
  return registers;
}

}  // namespace cubist
