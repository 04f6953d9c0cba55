#include "manifest/manifest_reader.h"

#include <fmt/format.h>

#include "manifest/manifest_keys.h"

// { "schema": "cubist.manifest", "schema_version": 2, "name", "description",
//   "serial", "expires",
//   "packs": [ { "name", "version", "license", "family", "revision", "param_layout",
//                "min_driver",
//                "sources": [ { "type", "location", "prefix" } ],
//                "kernels": [ { "name", "path", "sha256", "size", "arch",
//                               "traits": { see trait_fields.cpp } } ] } ] }

namespace cubist {

bool ManifestReader::enter_key(ObjectState& state, std::size_t field, std::string_view name) {
  const std::uint64_t bit = std::uint64_t{1} << field;
  if (state.seen & bit) {
    return reject_at(pointer(false) + "/" + std::string(name), "the key occurs twice");
  }
  state.seen |= bit;
  state.field = field;
  return true;
}

template <std::size_t N>
bool ManifestReader::find_key(const std::array<std::string_view, N>& keys, ObjectState& state,
                              std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (keys[i] == name) return enter_key(state, i, name);
  }
  return reject_key(name, fmt::format("{}", fmt::join(keys, ", ")));
}

bool ManifestReader::find_trait_key(std::string_view name) {
  // The writer keeps the table's order, so the key is most often one of the next few.
  const auto& fields = trait_fields();
  for (std::size_t step = 0; step < fields.size(); ++step) {
    std::size_t i = traits_.field + step;
    if (i >= fields.size()) i -= fields.size();
    if (fields[i].key == name) return enter_key(traits_, i, name);
  }
  std::string known;
  for (const TraitField& field : fields) known.append(known.empty() ? "" : ", ").append(field.key);
  return reject_key(name, known);
}

bool ManifestReader::key(std::string_view name) {
  switch (place_) {
    case Place::kRoot:
      return find_key(kRootKeys, root_, name);
    case Place::kPack:
      return find_key(kPackKeys, pack_, name);
    case Place::kSource:
      return find_key(kSourceKeys, item_, name);
    case Place::kKernel:
      return find_key(kKernelKeys, item_, name);
    default:
      return find_trait_key(name);
  }
}

bool ManifestReader::start_object(std::size_t) {
  switch (place_) {
    case Place::kDocument:
      place_ = Place::kRoot;
      return true;
    case Place::kPacks:
      manifest_.packs.emplace_back();
      pack_ = {};
      incomplete_.reset();
      place_ = Place::kPack;
      return true;
    case Place::kSources:
      pack().sources.emplace_back();
      item_ = {};
      place_ = Place::kSource;
      return true;
    case Place::kKernels:
      pack().kernels.emplace_back();
      item_ = {};
      place_ = Place::kKernel;
      return true;
    case Place::kKernel:
      if (item_.field != kTraitObject) break;
      traits_ = {};
      place_ = Place::kTraits;
      return true;
    default:
      break;
  }
  return reject_type("an object");
}

bool ManifestReader::start_array(std::size_t) {
  if (place_ == Place::kRoot && root_.field == kPackList) {
    place_ = Place::kPacks;
  } else if (place_ == Place::kPack && pack_.field == kSourceList) {
    place_ = Place::kSources;
  } else if (place_ == Place::kPack && pack_.field == kKernelList) {
    place_ = Place::kKernels;
  } else {
    return reject_type("an array");
  }
  return true;
}

bool ManifestReader::end_array() {
  place_ = place_ == Place::kPacks ? Place::kRoot : Place::kPack;
  return true;
}

template <std::size_t N>
bool ManifestReader::require(const std::array<std::string_view, N>& keys, std::uint64_t optional,
                             const ObjectState& state) {
  for (std::size_t i = 0; i < N; ++i) {
    if (((state.seen | optional) >> i & 1U) == 0) {
      return reject_at(fmt::format("{}/{}", pointer(false), keys[i]), "the key is missing");
    }
  }
  return true;
}

bool ManifestReader::end_pack() {
  if (!require(kPackKeys, 1U << kVersion | 1U << kLicense | 1U << kMinDriver | 1U << kSourceList,
               pack_)) {
    return false;
  }
  if (incomplete_) {
    const auto& [kernel, seen] = *incomplete_;
    const std::string_view missing = missing_trait(seen, pack().family);
    if (!missing.empty()) {
      return reject_at(fmt::format("{}/kernels/{}/traits/{}", pointer(false), kernel, missing),
                       "the key is missing");
    }
  }
  place_ = Place::kPacks;
  return true;
}

bool ManifestReader::end_kernel() {
  if (!require(kKernelKeys, 1U << kPath, item_)) return false;
  place_ = Place::kKernels;
  return true;
}

bool ManifestReader::end_traits() {
  if (!incomplete_ && !missing_trait(traits_.seen, KernelFamily::kTrtllmGenFmha).empty()) {
    incomplete_ = {pack().kernels.size() - 1, traits_.seen};
  }
  if (says_kv_twice(traits_.seen)) {
    return reject_at(pointer(false) + "/dtype_kv",
                     "stands for dtype_k and dtype_v; give it or the two, not both");
  }
  apply_trait_defaults(kernel().traits, traits_.seen);
  place_ = Place::kKernel;
  return true;
}

bool ManifestReader::end_root() {
  if (!require(kRootKeys, 1U << kDescription | 1U << kSerial | 1U << kExpires, root_)) return false;
  // Known here at the latest: a document may say its version behind its packs.
  for (std::size_t i = 0; i < manifest_.packs.size(); ++i) {
    if (manifest_.packs[i].min_driver == 0 || schema_version_ >= kVersionWithMinDriver) continue;
    return reject_at(fmt::format("/packs/{}/min_driver", i),
                     fmt::format("schema_version {} has no such key; {} has it", schema_version_,
                                 kVersionWithMinDriver));
  }
  return true;
}

bool ManifestReader::end_object() {
  switch (place_) {
    case Place::kRoot:
      return end_root();
    case Place::kPack:
      return end_pack();
    case Place::kSource:
      if (!require(kSourceKeys, 1U << kPrefix, item_)) return false;
      place_ = Place::kSources;
      return true;
    case Place::kKernel:
      return end_kernel();
    default:
      return end_traits();
  }
}

}  // namespace cubist
