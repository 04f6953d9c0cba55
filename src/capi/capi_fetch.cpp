#include <vector>

#include "capi/guard.h"
#include "capi/handles.h"
#include "cubist/cubist.h"

using namespace cubist;
using namespace cubist::capi;

namespace {

cubist_fetch_progress to_c(const FetchProgress& progress) {
  return {sizeof(cubist_fetch_progress),
          0,
          progress.files_total,
          progress.files_done,
          progress.files_failed,
          progress.bytes_total,
          progress.bytes_done,
          progress.received_bytes,
          progress.seconds};
}

}  // namespace

cubist_status cubist_runtime_fetch_many(cubist_runtime* runtime, const char* const* kernels,
                                        uint32_t num_kernels) {
  return guard([&]() -> Status {
    if ((kernels == nullptr) != (num_kernels == 0)) {
      return fail(StatusCode::kInvalidArgument, "kernels is {}, but num_kernels is {}",
                  kernels == nullptr ? "NULL" : "not NULL", num_kernels);
    }
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    std::vector<const KernelRecord*> records;
    for (uint32_t i = 0; i < num_kernels; ++i) {
      if (kernels[i] == nullptr) {
        return fail(StatusCode::kInvalidArgument, "kernels[{}] is NULL", i);
      }
      CUBIST_ASSIGN_OR_RETURN(const KernelRecord* record, object->runtime->find_kernel(kernels[i]));
      records.push_back(record);
    }
    return object->runtime->fetch(records);
  });
}

cubist_status cubist_runtime_set_progress_callback(cubist_runtime* runtime,
                                                   cubist_progress_callback callback,
                                                   void* user_data) {
  return guard([&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    if (callback == nullptr) {
      object->runtime->set_fetch_progress({});
      return {};
    }
    object->runtime->set_fetch_progress([callback, user_data](const FetchProgress& progress) {
      const cubist_fetch_progress now = to_c(progress);
      return callback(&now, user_data) != 0;
    });
    return {};
  });
}

cubist_status cubist_runtime_cancel(cubist_runtime* runtime) {
  return guard([&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    object->runtime->cancel_fetches();
    return {};
  });
}
