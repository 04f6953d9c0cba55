#include "model/sm_arch.h"

#include <fmt/format.h>

#include <charconv>

namespace cubist {

std::string to_string(SmArch arch) {
  const char* suffix = arch.kind == SmArch::Kind::kSpecific ? "a"
                       : arch.kind == SmArch::Kind::kFamily ? "f"
                                                            : "";
  return fmt::format("sm_{}{}", arch.sm, suffix);
}

std::optional<SmArch> parse_sm_arch(std::string_view text) {
  if (text.starts_with("sm_")) text.remove_prefix(3);
  SmArch arch;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), arch.sm);
  if (error != std::errc() || arch.sm < 10 || arch.sm > 999) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix == "a") {
    arch.kind = SmArch::Kind::kSpecific;
  } else if (suffix == "f") {
    arch.kind = SmArch::Kind::kFamily;
  } else if (!suffix.empty()) {
    return std::nullopt;
  }
  return arch;
}

bool runs_on(SmArch arch, std::uint32_t device_sm) {
  if (arch.kind == SmArch::Kind::kSpecific) return arch.sm == device_sm;
  return arch.sm / 10 == device_sm / 10 && arch.sm <= device_sm;
}

}  // namespace cubist
