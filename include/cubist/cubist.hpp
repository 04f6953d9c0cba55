#ifndef CUBIST_CUBIST_HPP_
#define CUBIST_CUBIST_HPP_

/// A thin C++17 layer over cubist.h: handles that destroy themselves and failures as exceptions.
/// Everything else (structs, fields, rules, threads) is cubist.h's.

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
  void prepare() const { check(cubist_selection_prepare(get())); }
  void launch(const cubist_decode_args& args, void* stream = nullptr) const {
    check(cubist_selection_launch(get(), &args, stream));
  }

 private:
  UniqueHandle<cubist_selection, cubist_selection_destroy> handle_;
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
  Selection select(const cubist_attention_problem& problem, const cubist_device& device) const {
    cubist_selection* selection = nullptr;
    check(cubist_runtime_select(get(), &problem, &device, &selection));
    return Selection(selection);
  }

 private:
  UniqueHandle<cubist_runtime, cubist_runtime_destroy> handle_;
};

}  // namespace cubist

#endif  // CUBIST_CUBIST_HPP_
