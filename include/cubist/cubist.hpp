#ifndef CUBIST_CUBIST_HPP_
#define CUBIST_CUBIST_HPP_

/// A thin C++17 layer over cubist.h: handles that destroy themselves and failures as exceptions.
/// Everything else (structs, fields, rules, threads) is cubist.h's.
///
///   cubist::Runtime runtime({"cubist-decode", "cubist-aux"});
///   runtime.prepare();
///   cubist::Selection selection = runtime.select(problem, cubist::query_device());
///   selection.launch(args, stream);

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cubist/cubist.h"

namespace cubist {

/// A failed call: its status and its message.
class Exception : public std::runtime_error {
 public:
  Exception(cubist_status status, const char* message)
      : std::runtime_error(message), status_(status) {}
  cubist_status status() const { return status_; }

 private:
  cubist_status status_;
};

/// Throws what the last call of this thread had to say, unless it succeeded.
inline void check(cubist_status status) {
  if (status != CUBIST_STATUS_OK) throw Exception(status, cubist_last_error_message());
}

/// Sole owner of a handle.
template <class Handle, cubist_status (*Destroy)(Handle*)>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(Handle* handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      Destroy(handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~UniqueHandle() { Destroy(handle_); }

  Handle* get() const { return handle_; }

 private:
  Handle* handle_ = nullptr;
};

inline cubist_device query_device(int32_t ordinal = 0) {
  cubist_device device = CUBIST_DEVICE_INIT;
  check(cubist_device_query(ordinal, &device));
  return device;
}

/// cubist_selection.
class Selection {
 public:
  explicit Selection(cubist_selection* handle) : handle_(handle) {}

  cubist_selection* get() const { return handle_.get(); }

  uint32_t num_plans() const {
    uint32_t count = 0;
    check(cubist_selection_get_num_plans(get(), &count));
    return count;
  }
  /// Its strings live as long as the selection.
  cubist_plan_info plan(uint32_t index = 0) const {
    cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
    check(cubist_selection_get_plan(get(), index, &plan));
    return plan;
  }
  std::string explain() const {
    const char* text = nullptr;
    check(cubist_selection_explain(get(), &text));
    return text;
  }
  void fetch() const { check(cubist_selection_fetch(get())); }
  cubist_workspace_info workspace() const {
    cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
    check(cubist_selection_get_workspace(get(), &workspace));
    return workspace;
  }
  void clear_workspace(void* workspace, uint64_t size, void* stream = nullptr) const {
    check(cubist_selection_clear_workspace(get(), workspace, size, stream));
  }
  /// The output to allocate.
  cubist_tensor_layout output() const {
    cubist_tensor_layout layout = CUBIST_TENSOR_LAYOUT_INIT;
    check(cubist_selection_get_output(get(), &layout));
    return layout;
  }
  /// The block scales of an nvfp4 output.
  cubist_output_scale_info output_scale() const {
    cubist_output_scale_info scale = CUBIST_OUTPUT_SCALE_INFO_INIT;
    check(cubist_selection_get_output_scale(get(), &scale));
    return scale;
  }
  void prepare() const { check(cubist_selection_prepare(get())); }
  void launch(const cubist_attention_args& args, void* stream = nullptr) const {
    check(cubist_selection_launch(get(), &args, stream));
  }
  /// Looks behind the addresses; launches nothing.
  void check_call(const cubist_attention_args& args, void* stream = nullptr) const {
    check(cubist_selection_check(get(), &args, stream));
  }

 private:
  UniqueHandle<cubist_selection, cubist_selection_destroy> handle_;
};

/// What Runtime::prepare made of one kernel.
struct PreparedKernel {
  std::string kernel;
  std::string sha256;
  std::string error;  ///< empty unless it failed
  int32_t state = CUBIST_PREPARED_FAILED;
  double milliseconds = 0.0;
};

struct Prepared {
  cubist_prepare_report report = CUBIST_PREPARE_REPORT_INIT;
  std::vector<PreparedKernel> kernels;
};

/// cubist_runtime.
class Runtime {
 public:
  /// `options.manifests` and `num_manifests` are taken from `manifests`.
  explicit Runtime(const std::vector<std::string>& manifests,
                   cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT) {
    std::vector<const char*> names;
    for (const std::string& manifest : manifests) names.push_back(manifest.c_str());
    options.manifests = names.data();
    options.num_manifests = static_cast<uint32_t>(names.size());
    cubist_runtime* handle = nullptr;
    check(cubist_runtime_open(&options, &handle));
    handle_ = UniqueHandle<cubist_runtime, cubist_runtime_destroy>(handle);
  }

  cubist_runtime* get() const { return handle_.get(); }

  cubist_runtime_info info() const {
    cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
    check(cubist_runtime_get_info(get(), &info));
    return info;
  }
  void fetch(const std::string& kernel) const {
    check(cubist_runtime_fetch(get(), kernel.c_str()));
  }
  /// All kernels, where none is named.
  void fetch(const std::vector<std::string>& kernels) const {
    std::vector<const char*> names;
    for (const std::string& kernel : kernels) names.push_back(kernel.c_str());
    check(cubist_runtime_fetch_many(get(), kernels.empty() ? nullptr : names.data(),
                                    static_cast<uint32_t>(names.size())));
  }
  void cancel() const { check(cubist_runtime_cancel(get())); }
  /// Loads what the options name into the current context; `on_kernel` is taken for the report.
  /// Throws where a kernel failed, once the others are loaded.
  Prepared prepare(cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT) const {
    Prepared prepared;
    options.user_data = &prepared.kernels;
    options.on_kernel = [](const cubist_prepared_kernel* kernel, void* kernels) {
      static_cast<std::vector<PreparedKernel>*>(kernels)->push_back(
          {kernel->kernel, kernel->sha256, kernel->error, kernel->state, kernel->milliseconds});
    };
    check(cubist_runtime_prepare(get(), &options, &prepared.report));
    return prepared;
  }
  /// The same for kernels by name or SHA-256.
  Prepared prepare(const std::vector<std::string>& kernels) const {
    std::vector<const char*> names;
    for (const std::string& kernel : kernels) names.push_back(kernel.c_str());
    cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
    options.kernels = names.empty() ? nullptr : names.data();
    options.num_kernels = static_cast<uint32_t>(names.size());
    return prepare(options);
  }
  Selection select(const cubist_attention_problem& problem, const cubist_device& device) const {
    cubist_selection* selection = nullptr;
    check(cubist_runtime_select(get(), &problem, &device, &selection));
    return Selection(selection);
  }
  /// All, or an exception that says which.
  std::vector<Selection> select(const std::vector<cubist_attention_problem>& problems,
                                const cubist_device& device) const {
    std::vector<cubist_selection*> handles(problems.size());
    check(cubist_runtime_select_many(get(), problems.data(), static_cast<uint32_t>(problems.size()),
                                     &device, handles.data(), nullptr));
    return std::vector<Selection>(handles.begin(), handles.end());
  }
  /// Enough for every decode problem up to `largest`.
  cubist_workspace_info workspace_bound(const cubist_attention_problem& largest,
                                        const cubist_device& device) const {
    cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
    check(cubist_runtime_get_workspace_bound(get(), &largest, &device, &workspace));
    return workspace;
  }
  /// Selects and launches on the current context's device.
  void launch(const cubist_attention_problem& problem, const cubist_attention_args& args,
              void* stream = nullptr) const {
    check(cubist_runtime_launch(get(), &problem, nullptr, &args, stream));
  }
  void fuse_scales(const cubist_attention_problem& problem, const cubist_scales& scales,
                   void* stream = nullptr) const {
    check(cubist_scales_fuse(get(), &problem, &scales, stream));
  }

 private:
  UniqueHandle<cubist_runtime, cubist_runtime_destroy> handle_;
};

}  // namespace cubist

#endif  // CUBIST_CUBIST_HPP_
