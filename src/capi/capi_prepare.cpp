#include <algorithm>
#include <vector>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "workingset/set_file.h"

using namespace cubist;
using namespace cubist::capi;

namespace {

/// What is to be prepared, each kernel once.
struct Wanted {
  std::vector<const KernelRecord*> records;
  std::vector<runtime::Selected*> selections;

  void add(const KernelRecord* record) {
    if (std::find(records.begin(), records.end(), record) == records.end()) {
      records.push_back(record);
    }
  }
};

Status add_kernels(const runtime::Runtime& runtime, const cubist_prepare_options& options,
                   Wanted& wanted) {
  if ((options.kernels == nullptr) != (options.num_kernels == 0)) {
    return fail(StatusCode::kInvalidArgument, "options.kernels is {}, but num_kernels is {}",
                options.kernels == nullptr ? "NULL" : "not NULL", options.num_kernels);
  }
  for (uint32_t i = 0; i < options.num_kernels; ++i) {
    if (options.kernels[i] == nullptr) {
      return fail(StatusCode::kInvalidArgument, "options.kernels[{}] is NULL", i);
    }
    CUBIST_ASSIGN_OR_RETURN(const KernelRecord* record, runtime.find_kernel(options.kernels[i]));
    wanted.add(record);
  }
  return {};
}

Status add_working_set(const runtime::Runtime& runtime, const char* path, Wanted& wanted) {
  if (path == nullptr) return {};
  CUBIST_ASSIGN_OR_RETURN(const workingset::SetFile set, workingset::load_set(path));
  for (const workingset::SetEntry& entry : set.kernels) {
    auto record = runtime.find_kernel(entry.sha256.hex());
    if (!record) {
      return forward_error(record, fmt::format("working set '{}', kernel '{}'", path, entry.name));
    }
    wanted.add(*record);
  }
  return {};
}

Status add_selections(const runtime::Runtime& runtime, const cubist_prepare_options& options,
                      Wanted& wanted) {
  if ((options.selections == nullptr) != (options.num_selections == 0)) {
    return fail(StatusCode::kInvalidArgument, "options.selections is {}, but num_selections is {}",
                options.selections == nullptr ? "NULL" : "not NULL", options.num_selections);
  }
  for (uint32_t i = 0; i < options.num_selections; ++i) {
    auto object = selections().find(options.selections[i]);
    if (!object) return forward_error(object, fmt::format("options.selections[{}]", i));
    runtime::Selected& selected = *(*object)->selected;
    if (&selected.runtime() != &runtime) {
      return fail(StatusCode::kInvalidArgument, "options.selections[{}] is of another runtime", i);
    }
    wanted.selections.push_back(&selected);
    wanted.add(selected.selection().best().record);
  }
  return {};
}

Result<Wanted> wanted_of(const runtime::Runtime& runtime, const cubist_prepare_options& options) {
  Wanted wanted;
  CUBIST_RETURN_IF_ERROR(add_kernels(runtime, options, wanted));
  CUBIST_RETURN_IF_ERROR(add_working_set(runtime, options.working_set, wanted));
  CUBIST_RETURN_IF_ERROR(add_selections(runtime, options, wanted));
  return wanted;
}

void tell(const launcher::PrepareReport& report, const cubist_prepare_options& options) {
  if (options.on_kernel == nullptr) return;
  for (const launcher::PreparedKernel& kernel : report.kernels) {
    const std::string sha256 = kernel.record->sha256.hex();
    cubist_prepared_kernel told = {};
    told.struct_size = sizeof(told);
    told.state = kernel.error        ? CUBIST_PREPARED_FAILED
                 : kernel.was_loaded ? CUBIST_PREPARED_PRESENT
                                     : CUBIST_PREPARED_LOADED;
    told.kernel = kernel.record->name.c_str();
    told.sha256 = sha256.c_str();
    told.error = kernel.error ? kernel.error->message().c_str() : "";
    told.status =
        kernel.error ? static_cast<cubist_status>(kernel.error->code()) : CUBIST_STATUS_OK;
    told.milliseconds = kernel.milliseconds;
    options.on_kernel(&told, options.user_data);
  }
}

void fill(const launcher::PrepareReport& report, cubist_prepare_report* out) {
  if (out == nullptr) return;
  out->num_kernels = static_cast<uint32_t>(report.kernels.size());
  out->num_loaded = static_cast<uint32_t>(report.num_loaded());
  out->num_present = static_cast<uint32_t>(report.num_present());
  out->num_failed = static_cast<uint32_t>(report.num_failed());
  out->num_threads = report.num_threads;
  out->milliseconds = report.milliseconds;
  out->fetch_milliseconds = report.bring_milliseconds;
}

}  // namespace

cubist_status cubist_runtime_prepare(cubist_runtime* runtime, const cubist_prepare_options* options,
                                     cubist_prepare_report* out_report) {
  return guard([&]() -> Status {
    if (out_report != nullptr) {
      CUBIST_RETURN_IF_ERROR(check_struct(out_report, "out_report"));
      *out_report = CUBIST_PREPARE_REPORT_INIT;
    }
    CUBIST_RETURN_IF_ERROR(check_struct(options, "options"));
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const Wanted wanted, wanted_of(*object->runtime, *options));
    CUBIST_ASSIGN_OR_RETURN(const launcher::PrepareReport report,
                            object->runtime->prepare(wanted.records, options->num_threads));
    fill(report, out_report);
    tell(report, *options);
    CUBIST_RETURN_IF_ERROR(report.status());
    // What only a selection knows: clusters that must fit, and kernels that follow the main one.
    for (runtime::Selected* selected : wanted.selections) {
      CUBIST_RETURN_IF_ERROR(selected->prepare());
    }
    return {};
  });
}
