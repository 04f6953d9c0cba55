#include "bundle_kept.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>

#include "bundle/kept_bundles.h"
#include "document/json_text.h"
#include "fetch_support.h"
#include "pin_digests.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

using bundle::KeptBundle;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownDigits = 12;
constexpr std::size_t kFewestDigits = 6;

std::string name_of(const KeptBundle& kept) {
  return kept.description ? kept.description->name : "";
}

std::vector<std::string> manifests_of(const KeptBundle& kept) {
  std::vector<std::string> names;
  if (!kept.description) return names;
  for (const bundle::ManifestPart& part : kept.description->manifests) names.push_back(part.name);
  return names;
}

/// "2026-12-01T09:30:00Z"
std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

Json kept_json(const KeptBundle& kept) {
  Json json = {{"identity", kept.identity.hex()},
               {"path", kept.path},
               {"layer", kept.layer},
               {"size", kept.file_bytes},
               {"used_at", time_text(kept.used_at)}};
  if (kept.error) {
    json["error"] = error_json(*kept.error);
    return json;
  }
  json["name"] = name_of(kept);
  json["manifests"] = manifests_of(kept);
  json["kernels"] = kept.description->kernels.size();
  return json;
}

void print_kept(const KeptBundle& kept) {
  const std::string digits = kept.identity.hex().substr(0, kShownDigits);
  if (kept.error) {
    std::printf("%s  BROKEN  %s\n", digits.c_str(), kept.path.c_str());
    return;
  }
  std::printf("%s  %s: %s kernels, %s bytes, used %s; manifests %s\n", digits.c_str(),
              name_of(kept).c_str(), with_commas(kept.description->kernels.size()).c_str(),
              with_commas(kept.file_bytes).c_str(), time_text(kept.used_at).c_str(),
              joined(manifests_of(kept)).c_str());
}

/// "none", or what there is to name.
std::string choice(const std::vector<KeptBundle>& all) {
  std::vector<std::string> words;
  words.reserve(all.size());
  for (const KeptBundle& kept : all) {
    words.push_back(fmt::format("{} ({})", kept.identity.hex().substr(0, kShownDigits),
                                kept.error ? "broken" : name_of(kept)));
  }
  return words.empty() ? "there are none" : "there are " + joined(words);
}

bool is_called(const KeptBundle& kept, const std::string& word) {
  const bool is_start = word.size() >= kFewestDigits && kept.identity.hex().starts_with(word);
  return is_start || word == kept.path || (kept.description && word == kept.description->name);
}

/// Of one bundle in several layers the store's own: no other can be removed.
const KeptBundle* own_copy(const std::vector<const KeptBundle*>& found, const std::string& root) {
  const KeptBundle* own = nullptr;
  for (const KeptBundle* kept : found) {
    if (kept->identity != found.front()->identity) return nullptr;
    if (kept->layer == root) own = kept;
  }
  return own;
}

Result<const KeptBundle*> find_one(const std::vector<KeptBundle>& all, const std::string& word,
                                   const std::string& root) {
  std::vector<const KeptBundle*> found;
  for (const KeptBundle& kept : all) {
    if (is_called(kept, word)) found.push_back(&kept);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(
        StatusCode::kNotFound,
        "no bundle in the store is called {}; name one by its identity (the first {} digits "
        "or more), its name or its path: {}",
        in_quotes(word), kFewestDigits, choice(all));
  }
  if (const KeptBundle* own = own_copy(found, root)) return own;
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (const KeptBundle* kept : found) paths.push_back(kept->path);
  return fail(StatusCode::kInvalidArgument,
              "{} bundles are called {}: {}; name one by its path or more digits of its identity",
              found.size(), in_quotes(word), joined(paths));
}

struct Removal {
  KeptBundle kept;
  bundle::RemovedBundle removed;
};

/// All are found before the first goes. What went before a failure is in `done`.
Status remove_all(const BundleRemoveArguments& arguments, std::vector<Removal>& done) {
  CUBIST_ASSIGN_OR_RETURN(const Store store, Store::open(arguments.store));
  CUBIST_ASSIGN_OR_RETURN(std::vector<KeptBundle> all, bundle::list_kept_bundles(store));
  bundle::RemoveOptions options;
  CUBIST_ASSIGN_OR_RETURN(options.pinned, read_pins(arguments.pins));
  options.manifests = arguments.manifests;
  options.dry_run = arguments.dry_run;
  std::vector<KeptBundle> wanted;
  for (const std::string& word : arguments.bundles) {
    CUBIST_ASSIGN_OR_RETURN(const KeptBundle* one, find_one(all, word, store.root()));
    const bool again = std::any_of(wanted.begin(), wanted.end(), [&](const KeptBundle& other) {
      return other.path == one->path;
    });
    if (!again) wanted.push_back(*one);
  }
  for (KeptBundle& one : wanted) {
    CUBIST_ASSIGN_OR_RETURN(bundle::RemovedBundle removed,
                            bundle::remove_kept_bundle(store, one, all, options));
    std::erase_if(all, [&](const KeptBundle& other) { return other.path == one.path; });
    done.push_back({std::move(one), std::move(removed)});
  }
  return {};
}

/// That it was broken is why it has no name here, and no failure of the run: no `error`.
Json removal_json(const Removal& one) {
  Json json = kept_json(one.kept);
  if (one.kept.error) {
    json.erase("error");
    json["problem"] = one.kept.error->message();
  }
  json["removed_manifests"] = one.removed.manifests;
  json["kernels_elsewhere"] = one.removed.kernels_elsewhere;
  return json;
}

void print_removal(const Removal& one, bool dry_run) {
  const char* verb = dry_run ? "would remove" : "removed";
  std::printf("%s %s: %s bytes", verb, one.kept.path.c_str(),
              with_commas(one.kept.file_bytes).c_str());
  if (const std::size_t kernels = one.kept.served.size(); kernels > 0) {
    std::printf("; %s of its %s kernels are still served by the rest of the store",
                with_commas(one.removed.kernels_elsewhere).c_str(), with_commas(kernels).c_str());
  }
  std::printf("\n");
  for (const std::string& path : one.removed.manifests) {
    std::printf("%s %s\n", verb, path.c_str());
  }
}

}  // namespace

ExitCode run_bundle_list(const std::string& store_override, const CommonOptions& common) {
  const auto store = Store::open(store_override);
  if (!store) return report_error(common, store.error());
  const auto all = bundle::list_kept_bundles(*store);
  if (!all) return report_error(common, all.error());
  Status outcome;
  Json list = Json::array();
  std::string layer;
  for (const KeptBundle& kept : *all) {
    if (kept.error && outcome) outcome = tl::unexpected<Error>(*kept.error);
    list.push_back(kept_json(kept));
    if (common.json) continue;
    if (kept.layer != layer) std::printf("%s\n", kept.layer.c_str());
    layer = kept.layer;
    print_kept(kept);
  }
  if (common.json) {
    print_json({{"layers", store->layers()}, {"bundles", std::move(list)}}, outcome);
  } else if (all->empty() && !common.quiet) {
    std::printf("no bundle is kept in %s ('cubist bundle install' and 'cubist pull' keep them)\n",
                joined(store->layers()).c_str());
  }
  return print_outcome(outcome);
}

ExitCode run_bundle_remove(const BundleRemoveArguments& arguments, const CommonOptions& common) {
  std::vector<Removal> done;
  const Status outcome = remove_all(arguments, done);
  if (common.json) {
    Json list = Json::array();
    for (const Removal& one : done) list.push_back(removal_json(one));
    print_json({{"dry_run", arguments.dry_run}, {"removed", std::move(list)}}, outcome);
  } else if (!common.quiet) {
    for (const Removal& one : done) print_removal(one, arguments.dry_run);
  }
  return print_outcome(outcome);
}

}  // namespace cubist::tools
