#include "manifest/diff.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>

#include <fmt/format.h>

#include "manifest/trait_fields.h"
#include "model/cuda_version.h"

namespace cubist {
namespace {

std::vector<DiffEntry> entries_of(const Manifest& manifest) {
  std::vector<DiffEntry> entries;
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& record : pack.kernels) entries.push_back({&pack, &record});
  }
  return entries;
}

/// Pairs each of `before` with the first unpaired of `after` that has the same key and passes
/// `equal`; calls paired(before, after) and takes both out of the lists.
template <class KeyOf, class Equal, class Paired>
void take_pairs(std::vector<DiffEntry>& before, std::vector<DiffEntry>& after, KeyOf key_of,
                Equal equal, Paired paired) {
  using Key = std::decay_t<decltype(key_of(*before.front().record))>;
  std::unordered_map<Key, std::vector<std::size_t>> places;  // in `after`, last one first
  for (std::size_t i = after.size(); i-- > 0;) places[key_of(*after[i].record)].push_back(i);
  std::vector<bool> taken(after.size(), false);
  const auto pair_up = [&](const DiffEntry& entry) {
    const auto found = places.find(key_of(*entry.record));
    if (found == places.end()) return false;
    std::vector<std::size_t>& list = found->second;
    for (std::size_t i = list.size(); i-- > 0;) {
      if (!equal(*entry.record, *after[list[i]].record)) continue;
      taken[list[i]] = true;
      paired(entry, after[list[i]]);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  };
  std::vector<DiffEntry> left;
  for (const DiffEntry& entry : before) {
    if (!pair_up(entry)) left.push_back(entry);
  }
  before = std::move(left);
  std::size_t index = 0;
  after.erase(
      std::remove_if(after.begin(), after.end(), [&](const DiffEntry&) { return taken[index++]; }),
      after.end());
}

std::string value_text(const KernelTraits& traits, const TraitField& field) {
  return std::visit(
      [&](auto member) -> std::string {
        if constexpr (std::is_same_v<decltype(member), BothKv>) {
          return {};
        } else {
          using Value = std::remove_cvref_t<decltype(traits.*member)>;
          if constexpr (std::is_enum_v<Value>) return std::string(to_string(traits.*member));
          if constexpr (std::is_same_v<Value, bool>) return traits.*member ? "true" : "false";
          return fmt::format("{}", static_cast<std::uint32_t>(traits.*member));
        }
      },
      field.member);
}

}  // namespace

ManifestDiff diff_manifests(const Manifest& before, const Manifest& after) {
  ManifestDiff diff;
  diff.removed = entries_of(before);
  diff.added = entries_of(after);
  if (diff.removed.empty() || diff.added.empty()) return diff;
  const auto digest = [](const KernelRecord& record) { return record.sha256; };
  const auto name = [](const KernelRecord& record) { return record.name.view(); };
  const auto any = [](const KernelRecord&, const KernelRecord&) { return true; };
  const auto same_traits = [](const KernelRecord& a, const KernelRecord& b) {
    return a.traits == b.traits;
  };
  take_pairs(diff.removed, diff.added, digest, same_traits,
             [&](const DiffEntry& a, const DiffEntry& b) {
               if (a.pack->min_driver == b.pack->min_driver) {
                 ++diff.unchanged;
               } else {
                 diff.other_min_driver.push_back({a, b});
               }
             });
  take_pairs(
      diff.removed, diff.added, name,
      [](const KernelRecord& a, const KernelRecord& b) { return a.sha256 == b.sha256; },
      [&](const DiffEntry& a, const DiffEntry& b) {
        diff.other_traits.push_back({a, b});
      });
  take_pairs(diff.removed, diff.added, name, any, [&](const DiffEntry& a, const DiffEntry& b) {
    diff.other_bytes.push_back({a, b});
  });
  return diff;
}

std::string trait_differences(const KernelTraits& before, const KernelTraits& after) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& old_value,
                       const std::string& new_value) {
    if (old_value == new_value) return;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", key, old_value, new_value);
  };
  add("arch", to_string(before.arch), to_string(after.arch));
  for (const TraitField& field : trait_fields()) {
    add(field.key, value_text(before, field), value_text(after, field));
  }
  return text;
}

std::string min_driver_difference(const DiffPair& pair) {
  const auto text = [](std::int32_t version) {
    return version == 0 ? std::string("none") : cuda_version_text(version);
  };
  const std::int32_t before = pair.before.pack->min_driver;
  const std::int32_t after = pair.after.pack->min_driver;
  return before == after ? "" : fmt::format("min_driver {} -> {}", text(before), text(after));
}

}  // namespace cubist
