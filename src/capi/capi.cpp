#include "cubist/cubist.h"

#include "base/log.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"

using namespace cubist;
using namespace cubist::capi;

#define CUBIST_SAME_CODE(c_name, code) \
  static_assert(c_name == static_cast<cubist_status>(StatusCode::code))
CUBIST_SAME_CODE(CUBIST_STATUS_OK, kOk);
CUBIST_SAME_CODE(CUBIST_STATUS_INVALID_ARGUMENT, kInvalidArgument);
CUBIST_SAME_CODE(CUBIST_STATUS_NOT_FOUND, kNotFound);
CUBIST_SAME_CODE(CUBIST_STATUS_UNSUPPORTED, kUnsupported);
CUBIST_SAME_CODE(CUBIST_STATUS_OUT_OF_MEMORY, kOutOfMemory);
CUBIST_SAME_CODE(CUBIST_STATUS_MANIFEST_INVALID, kManifestInvalid);
CUBIST_SAME_CODE(CUBIST_STATUS_INTEGRITY, kIntegrity);
CUBIST_SAME_CODE(CUBIST_STATUS_NETWORK, kNetwork);
CUBIST_SAME_CODE(CUBIST_STATUS_IO, kIo);
CUBIST_SAME_CODE(CUBIST_STATUS_OFFLINE, kOffline);
CUBIST_SAME_CODE(CUBIST_STATUS_UNTRUSTED, kUntrusted);
CUBIST_SAME_CODE(CUBIST_STATUS_DRIVER_UNAVAILABLE, kDriverUnavailable);
CUBIST_SAME_CODE(CUBIST_STATUS_DRIVER_ERROR, kDriverError);
CUBIST_SAME_CODE(CUBIST_STATUS_DEVICE_MISMATCH, kDeviceMismatch);
CUBIST_SAME_CODE(CUBIST_STATUS_CAPTURE, kCapture);
CUBIST_SAME_CODE(CUBIST_STATUS_FORKED, kForked);
CUBIST_SAME_CODE(CUBIST_STATUS_INTERRUPTED, kInterrupted);
CUBIST_SAME_CODE(CUBIST_STATUS_INTERNAL, kInternal);

static_assert(CUBIST_LOG_OFF == static_cast<int>(LogLevel::kOff));

const char* cubist_status_string(cubist_status status) {
  return to_string(static_cast<StatusCode>(status)).data();  // a literal, so it ends in NUL
}

const char* cubist_last_error_message(void) { return last_error_message(); }

uint32_t cubist_version_number(void) { return CUBIST_VERSION_NUMBER; }
const char* cubist_version_string(void) { return CUBIST_VERSION_STRING; }

cubist_status cubist_log_set_callback(cubist_log_callback callback, void* user_data,
                                      int32_t min_level) {
  return guard([&]() -> Status {
    if (min_level < CUBIST_LOG_DEBUG || min_level > CUBIST_LOG_OFF) {
      return fail(StatusCode::kInvalidArgument, "min_level is {}; it must be {}..{}", min_level,
                  int{CUBIST_LOG_DEBUG}, int{CUBIST_LOG_OFF});
    }
    set_log_level(static_cast<LogLevel>(min_level));
    if (callback == nullptr) {
      set_log_sink({});
      return {};
    }
    set_log_sink([callback, user_data](LogLevel level, std::string_view text) {
      callback(static_cast<int32_t>(level), std::string(text).c_str(), user_data);
    });
    return {};
  });
}

cubist_status cubist_runtime_open(const cubist_runtime_options* options,
                                  cubist_runtime** out_runtime) {
  if (out_runtime != nullptr) *out_runtime = nullptr;
  return guard([&]() -> Status {
    if (out_runtime == nullptr) return fail(StatusCode::kInvalidArgument, "out_runtime is NULL");
    CUBIST_RETURN_IF_ERROR(check_struct(options, "options"));
    CUBIST_ASSIGN_OR_RETURN(const runtime::RuntimeOptions opened, from_c(*options));
    auto object = std::make_unique<RuntimeObject>();
    CUBIST_ASSIGN_OR_RETURN(object->runtime, runtime::Runtime::open(opened));
    CUBIST_ASSIGN_OR_RETURN(*out_runtime, runtimes().add(std::move(object)));
    return {};
  });
}

cubist_status cubist_runtime_destroy(cubist_runtime* runtime) {
  return guard([&]() -> Status {
    if (runtime == nullptr) return {};
    auto removed = runtimes().remove(runtime);
    return removed ? Status{} : forward_error(removed);
  });
}

cubist_status cubist_runtime_get_info(cubist_runtime* runtime, cubist_runtime_info* out_info) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_info, "out_info"));
    *out_info = CUBIST_RUNTIME_INFO_INIT;
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    const launcher::LoadCounters counters = object->runtime->load_counters();
    out_info->num_kernels = static_cast<uint32_t>(object->runtime->num_kernels());
    out_info->loads = counters.loads;
    out_info->failed_loads = counters.failed_loads;
    out_info->load_nanoseconds = counters.nanoseconds;
    out_info->store_dir = object->runtime->store().root().c_str();
    const runtime::SelectionCounters selections = object->runtime->selection_counters();
    out_info->selections = selections.selections;
    out_info->fallbacks = selections.fallbacks;
    return {};
  });
}

cubist_status cubist_runtime_fetch(cubist_runtime* runtime, const char* kernel) {
  return guard([&]() -> Status {
    if (kernel == nullptr) return fail(StatusCode::kInvalidArgument, "kernel is NULL");
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const KernelRecord* record, object->runtime->find_kernel(kernel));
    auto cubin = object->runtime->cubin(*record);
    return cubin ? Status{} : forward_error(cubin);
  });
}
