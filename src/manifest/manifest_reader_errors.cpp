#include <fmt/format.h>

#include "manifest/manifest_keys.h"
#include "manifest/manifest_reader.h"
#include "manifest/text.h"

// Where a reader is, in words: the half of ManifestReader that runs when something is wrong.

namespace cubist {

std::string_view ManifestReader::type_name(ScalarType type) {
  switch (type) {
    case ScalarType::kNull:
      return "null";
    case ScalarType::kBool:
      return "true or false";
    case ScalarType::kUnsigned:
      return "a number";
    case ScalarType::kNegative:
      return "a negative number";
    case ScalarType::kFloat:
      return "a number with a fraction or exponent";
    case ScalarType::kString:
      return "a string";
  }
  return "something else";
}

bool ManifestReader::reject_at(std::string_view pointer, std::string_view message) {
  error_ = Error(
      StatusCode::kManifestInvalid,
      fmt::format("{}: {}: {}", file_name_, pointer.empty() ? "(document)" : pointer, message));
  return false;
}

std::string_view ManifestReader::current_key() const {
  switch (place_) {
    case Place::kRoot:
      return kRootKeys[root_.field];
    case Place::kPack:
      return kPackKeys[pack_.field];
    case Place::kSource:
      return kSourceKeys[item_.field];
    case Place::kKernel:
      return kKernelKeys[item_.field];
    case Place::kTraits:
      return trait_fields()[traits_.field].key;
    default:
      return {};
  }
}

std::string ManifestReader::pointer(bool with_key) const {
  std::string out;
  if (place_ >= Place::kPacks) out = "/packs";
  const bool in_list =
      place_ == Place::kPacks || place_ == Place::kSources || place_ == Place::kKernels;
  const std::size_t packs = manifest_.packs.size();
  if (place_ == Place::kPacks) {
    out += fmt::format("/{}", packs);
  } else if (place_ > Place::kPacks) {
    const Pack& last = manifest_.packs.back();
    out += fmt::format("/{}", packs - 1);
    if (place_ == Place::kSources) out += fmt::format("/sources/{}", last.sources.size());
    if (place_ == Place::kSource) out += fmt::format("/sources/{}", last.sources.size() - 1);
    if (place_ == Place::kKernels) out += fmt::format("/kernels/{}", last.kernels.size());
    if (place_ >= Place::kKernel) out += fmt::format("/kernels/{}", last.kernels.size() - 1);
    if (place_ == Place::kTraits) out += "/traits";
  }
  if (with_key && !in_list && place_ != Place::kDocument) out += fmt::format("/{}", current_key());
  return out;
}

std::string_view ManifestReader::expected_type() const {
  switch (place_) {
    case Place::kDocument:
    case Place::kPacks:
    case Place::kSources:
    case Place::kKernels:
      return "an object";
    case Place::kRoot:
      if (root_.field == kPackList) return "an array";
      return root_.field == kSchemaVersion || root_.field == kSerial ? "a whole number"
                                                                     : "a string";
    case Place::kPack:
      return pack_.field == kSourceList || pack_.field == kKernelList ? "an array" : "a string";
    case Place::kSource:
      return "a string";
    case Place::kKernel:
      if (item_.field == kTraitObject) return "an object";
      return item_.field == kSize ? "a whole number" : "a string";
    case Place::kTraits:
      break;
  }
  const TraitField& field = trait_fields()[traits_.field];
  if (field.max != 0) return "a whole number";
  return std::holds_alternative<bool KernelTraits::*>(field.member) ? "true or false" : "a string";
}

bool ManifestReader::reject_type(std::string_view found) {
  return reject("found {}, expected {}", found, expected_type());
}

bool ManifestReader::reject_key(std::string_view name, std::string_view known) {
  return reject_at(pointer(false) + "/" + pointer_step(name),
                   fmt::format("unknown key {}; known here are {}", shown(name), known));
}

bool ManifestReader::reject_text(std::string_view message) {
  // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": the tag is noise.
  if (const std::size_t end = message.find("] "); end != std::string_view::npos) {
    message.remove_prefix(end + 2);
  }
  constexpr std::size_t kMaxShown = 300;
  error_ = Error(StatusCode::kManifestInvalid,
                 fmt::format("{}: not a JSON text: {}", file_name_, visible(message, kMaxShown)));
  return false;
}

}  // namespace cubist
