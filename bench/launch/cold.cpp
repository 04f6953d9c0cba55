// Loading kernels that are not loaded: one, beside hashing its bytes and the two bare driver calls;
// many, prepared by one call beside one after the other.

#include <span>

#include "bench.h"
#include "launcher/launcher.h"

namespace cubist::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A kernel whose bytes are in memory.
struct Held {
  KernelRecord record;
  Bytes bytes;
};

std::vector<Held> all_kernels(const runtime::Runtime& runtime) {
  std::vector<Held> kernels;
  for (const Manifest& manifest : runtime.manifests()) {
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& record : pack.kernels) {
        if (!runs_on(record.traits.arch, 90)) continue;
        const VerifiedCubin cubin = require(runtime.cubin(record));
        kernels.push_back({record, Bytes(cubin.bytes().begin(), cubin.bytes().end())});
      }
    }
  }
  return kernels;
}

/// More kernels of the same kind: copies with bytes appended, which are other artifacts.
void grow(std::vector<Held>& kernels, std::size_t count) {
  const std::size_t own = kernels.size();
  while (kernels.size() < count) {
    Held copy = kernels[(kernels.size() - own) % own];
    copy.bytes.resize(copy.bytes.size() + 16);
    copy.record.sha256 = sha256(copy.bytes);
    copy.record.size_bytes = copy.bytes.size();
    kernels.push_back(std::move(copy));
  }
}

/// What bare loads of kernels do, one after the other; they are unloaded outside of the time.
double load_bare(const Bench& bench, std::span<const Held> kernels) {
  const driver::DriverTable& table = bench.driver->table();
  std::vector<cuda::CUmodule> modules(kernels.size());
  const double us = microseconds([&] {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Held& kernel = kernels[i];
      cuda::CUfunction function = nullptr;
      if (sha256(kernel.bytes) != kernel.record.sha256) std::abort();
      require(table.cuModuleLoadData(&modules[i], kernel.bytes.data()), "cuModuleLoadData");
      require(table.cuModuleGetFunction(&function, modules[i], kernel.record.name.c_str()),
              "cuModuleGetFunction");
    }
  });
  for (const cuda::CUmodule module : modules) table.cuModuleUnload(module);
  return us;
}

launcher::CubinSource source_of(const std::vector<Held>& kernels) {
  return [&kernels](const KernelRecord& wanted) -> Result<VerifiedCubin> {
    for (const Held& kernel : kernels) {
      if (kernel.record.sha256 != wanted.sha256) continue;
      return VerifiedCubin::verify(kernel.bytes, wanted.sha256, wanted.size_bytes, wanted.name);
    }
    return fail(StatusCode::kNotFound, "{}", wanted.name);
  };
}

Selection selection_of(const KernelRecord& record) {
  Selection selection;
  selection.num_plans = 1;
  selection.plans[0].record = &record;
  selection.plans[0].block = {record.traits.threads, 1, 1};
  selection.plans[0].smem = record.traits.smem;
  return selection;
}

/// A launcher that has loaded nothing, for one measurement; it unloads outside of the time.
double load_by_launcher(const Bench& bench, const std::vector<Held>& kernels, const Held& kernel) {
  launcher::Launcher launcher(bench.driver, source_of(kernels));
  require(launcher.current_context());
  const Selection selection = selection_of(kernel.record);
  launcher::ReadyMemo memo;
  return microseconds([&] { require(launcher.ready(selection, memo, nullptr)); });
}

double load_by_runtime(const Bench& bench, const std::string& name) {
  const auto runtime = bench.open_runtime();
  const KernelRecord* record = require(runtime->find_kernel(name));
  require(require(runtime->launcher())->current_context());
  const std::vector<const KernelRecord*> records = {record};
  return microseconds([&] { require(require(runtime->prepare(records, 1)).status()); });
}

}  // namespace

Json bench_cold(const Bench& bench) {
  const auto runtime = bench.open_runtime();
  const std::vector<Held> kernels = all_kernels(*runtime);
  Json result = {{"kernels", kernels.size()}};
  std::vector<double> launcher_ratios;
  std::vector<double> runtime_ratios;
  std::vector<double> bare_us;
  for (const Held& kernel : kernels) {
    std::vector<Way> ways = {
        {"bare",
         [&] {
           return load_bare(bench, {&kernel, 1});
         },
         {}},
        {"launcher", [&] { return load_by_launcher(bench, kernels, kernel); }, {}},
        {"runtime", [&] { return load_by_runtime(bench, kernel.record.name); }, {}}};
    run_in_turns(ways, std::max(3, bench.rounds / 10));
    const double bare = median(ways[0].seen);
    bare_us.push_back(bare);
    launcher_ratios.push_back(median(ways[1].seen) / bare);
    runtime_ratios.push_back(median(ways[2].seen) / bare);
  }
  const auto put = [&](const char* name, const std::vector<double>& values) {
    result[name] = {{"least", *std::min_element(values.begin(), values.end())},
                    {"median", median(values)},
                    {"most", *std::max_element(values.begin(), values.end())}};
  };
  put("bare_us", bare_us);
  put("launcher_of_bare", launcher_ratios);
  put("runtime_with_file_of_bare", runtime_ratios);
  return result;
}

Json bench_prepare(const Bench& bench) {
  constexpr std::size_t kKernels = 64;
  const auto runtime = bench.open_runtime();
  std::vector<Held> kernels = all_kernels(*runtime);
  const std::size_t own = kernels.size();
  grow(kernels, kKernels);
  std::vector<const KernelRecord*> records;
  for (const Held& kernel : kernels) records.push_back(&kernel.record);

  std::vector<Way> ways = {{"bare loads in turn", [&] { return load_bare(bench, kernels); }, {}}};
  for (const unsigned threads : {1U, 2U, 4U, 8U}) {
    ways.push_back({fmt::format("prepare, {} threads", threads),
                    [&, threads] {
                      launcher::Launcher launcher(bench.driver, source_of(kernels));
                      require(launcher.current_context());
                      return microseconds(
                          [&] { require(require(launcher.prepare(records, threads)).status()); });
                    },
                    {}});
  }
  run_in_turns(ways, std::max(3, bench.rounds / 10));
  Json result = {{"kernels", kernels.size()}, {"of_them_copies", kernels.size() - own}};
  const double bare = median(ways[0].seen);
  for (const Way& way : ways) {
    result["ways"].push_back(
        {{"way", way.name}, {"ms", median(way.seen) / 1000}, {"of_bare", median(way.seen) / bare}});
  }
  return result;
}

/// From the store's files, as a runtime does it, beside one thread.
Json bench_prepare_store(const Bench& bench) {
  std::vector<Way> ways;
  std::size_t kernels = 0;
  for (const unsigned threads : {1U, 2U, 4U, 8U}) {
    ways.push_back({fmt::format("cubist_runtime_prepare's work, {} threads", threads),
                    [&bench, &kernels, threads] {
                      const auto runtime = bench.open_runtime();
                      require(require(runtime->launcher())->current_context());
                      return microseconds([&] {
                        const auto report = require(runtime->prepare({}, threads));
                        require(report.status());
                        kernels = report.num_loaded();
                      });
                    },
                    {}});
  }
  run_in_turns(ways, std::max(3, bench.rounds / 10));
  Json result = {{"kernels", kernels}};
  for (const Way& way : ways) {
    result["ways"].push_back({{"way", way.name},
                              {"ms", median(way.seen) / 1000},
                              {"of_one_thread", median(way.seen) / median(ways[0].seen)}});
  }
  return result;
}

}  // namespace cubist::bench
