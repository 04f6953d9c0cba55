#include <optional>
#include <type_traits>

#include "base/hex.h"
#include "manifest/manifest_keys.h"
#include "manifest/manifest_reader.h"
#include "manifest/text.h"
#include "manifest/validate.h"
#include "manifest/words.h"
#include "model/cuda_version.h"

// The half of ManifestReader that takes in strings, numbers and flags.

namespace cubist {

template <class Text>
bool ManifestReader::read_text(const Scalar& value, Text& out) {
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  out = value.text;
  return true;
}

template <class Enum>
bool ManifestReader::read_word(const Scalar& value, Enum& out) {
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  const std::optional<Enum> word = parse_word<Enum>(value.text);
  if (!word) return reject("unknown word {}; allowed are {}", shown(value.text), word_list<Enum>());
  out = *word;
  return true;
}

template <class Number>
bool ManifestReader::read_number(const Scalar& value, std::uint64_t min, std::uint64_t max,
                                 Number& out) {
  if (value.type == ScalarType::kNegative)
    return reject("negative; allowed are {} to {}", min, max);
  if (value.type != ScalarType::kUnsigned) return reject_type(type_name(value.type));
  if (value.number < min || value.number > max) {
    return reject("{} is out of range; allowed are {} to {}", value.number, min, max);
  }
  out = static_cast<Number>(value.number);
  return true;
}

bool ManifestReader::root_value(const Scalar& value) {
  switch (root_.field) {
    case kSchema: {
      std::string schema;
      if (!read_text(value, schema)) return false;
      if (schema == kSchemaName) return true;
      return reject("{} is not '{}': this is no Cubist manifest", shown(schema), kSchemaName);
    }
    case kSchemaVersion:
      if (value.type != ScalarType::kUnsigned) return reject_type(type_name(value.type));
      schema_version_ = value.number;
      if (schema_version_ >= 1 && schema_version_ <= Manifest::kSchemaVersion) return true;
      return reject(
          "version {}; this program reads versions 1 to {} (a newer program may be needed)",
          value.number, Manifest::kSchemaVersion);
    case kManifestName:
      return read_text(value, manifest_.name);
    case kDescription:
      return read_text(value, manifest_.description);
    case kSerial:
      return read_number(value, 1, Manifest::kMaxSerial, manifest_.serial);
    case kExpires:
      if (!read_text(value, manifest_.expires)) return false;
      return manifest_.expires.empty() ? reject("is empty; leave the key out") : true;
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::pack_value(const Scalar& value) {
  switch (pack_.field) {
    case kPackName:
      return read_text(value, pack().name);
    case kVersion:
      return read_text(value, pack().version);
    case kLicense:
      return read_text(value, pack().license);
    case kFamily:
      return read_word(value, pack().family);
    case kRevision:
      return read_word(value, pack().revision);
    case kParamLayout:
      return read_word(value, pack().param_layout);
    case kMinDriver:
      return min_driver_value(value);
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::min_driver_value(const Scalar& value) {
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  const std::optional<std::int32_t> version = parse_cuda_version(value.text);
  if (!version) return reject("{} is no CUDA version such as 13.0", shown(value.text));
  pack().min_driver = *version;
  return true;
}

bool ManifestReader::source_value(const Scalar& value) {
  Source& source = pack().sources.back();
  if (item_.field == kLocation) return read_text(value, source.location);
  if (item_.field == kPrefix) return read_text(value, source.prefix);
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  for (std::size_t i = 0; i < kSourceTypes.size(); ++i) {
    if (value.text != kSourceTypes[i]) continue;
    source.kind = static_cast<Source::Kind>(i);
    return true;
  }
  return reject("unknown word {}; allowed are http, folder, zip or pip", shown(value.text));
}

bool ManifestReader::digest_value(const Scalar& value) {
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  if (parse_hex(value.text, kernel().sha256.bytes)) return true;
  return reject("{} is no SHA-256 ({} characters; 64 hexadecimal digits are needed)",
                shown(value.text), value.text.size());
}

bool ManifestReader::arch_value(const Scalar& value) {
  if (value.type != ScalarType::kString) return reject_type(type_name(value.type));
  const std::optional<SmArch> arch = parse_sm_arch(value.text);
  if (!arch || !value.text.starts_with("sm_")) {
    return reject("{} is no architecture such as sm_90a, sm_100f or sm_120", shown(value.text));
  }
  kernel().traits.arch = *arch;
  return true;
}

bool ManifestReader::kernel_value(const Scalar& value) {
  switch (item_.field) {
    case kKernelName:
      return read_text(value, kernel().name);
    case kPath:
      if (!read_text(value, kernel().path)) return false;
      return kernel().path.empty() ? reject("is empty; leave the key out") : true;
    case kSha256:
      return digest_value(value);
    case kSize:
      return read_number(value, 1, kMaxKernelBytes, kernel().size_bytes);
    case kArch:
      return arch_value(value);
    default:
      return reject_type(type_name(value.type));
  }
}

bool ManifestReader::trait_value(const Scalar& value) {
  const TraitField& field = trait_fields()[traits_.field];
  KernelTraits& traits = kernel().traits;
  return std::visit(
      [&](auto member) {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, BothKv>) {
          if (!read_word(value, traits.dtype_k)) return false;
          traits.dtype_v = traits.dtype_k;
          return true;
        } else {
          using Type = std::remove_cvref_t<decltype(traits.*member)>;
          if constexpr (std::is_enum_v<Type>) {
            return read_word(value, traits.*member);
          } else if constexpr (std::is_same_v<Type, bool>) {
            if (value.type != ScalarType::kBool) return reject_type(type_name(value.type));
            traits.*member = value.boolean;
            return true;
          } else {
            return read_number(value, field.min, field.max, traits.*member);
          }
        }
      },
      field.member);
}

bool ManifestReader::scalar(const Scalar& value) {
  switch (place_) {
    case Place::kRoot:
      return root_value(value);
    case Place::kPack:
      return pack_value(value);
    case Place::kSource:
      return source_value(value);
    case Place::kKernel:
      return kernel_value(value);
    case Place::kTraits:
      return trait_value(value);
    default:
      return reject_type(type_name(value.type));
  }
}

}  // namespace cubist
