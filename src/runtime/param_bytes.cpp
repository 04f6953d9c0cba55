#include "runtime/param_bytes.h"

#include "cubin/cubin_file.h"

namespace cubist::runtime {

Status check_param_bytes(const VerifiedCubin& cubin, const KernelRecord& record,
                         ParamLayout layout) {
  CUBIST_ASSIGN_OR_RETURN(const CubinFile file, parse_cubin(cubin.bytes(), record.name));
  const CubinEntry* entry = file.find(record.name);
  if (entry == nullptr) return {};  // loading says what the manifest named in vain
  const std::uint32_t expected = param_layout_bytes(layout);
  if (entry->param_bytes == expected && expected != 0) return {};
  return fail(
      StatusCode::kManifestInvalid,
      "kernel '{}' declares {} bytes of parameters, but the manifest's layout {} has {}; it "
      "is not launched. The manifest describes another release of this kernel: import it "
      "again",
      record.name, entry->param_bytes, to_string(layout), expected);
}

}  // namespace cubist::runtime
