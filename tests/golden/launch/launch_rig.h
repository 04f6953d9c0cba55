#pragma once

#include <memory>
#include <set>
#include <string>

#include "runtime/runtime.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"

namespace cubist::test {

/// A shipped manifest of published kernels over cubins made for the test: of the kernels named,
/// each has a file with its name, architecture, threads and parameter size, and no code. The
/// stand-in is libcuda, with one B200 whose context is current.
class LaunchRig {
 public:
  /// release      "0.6.13" or "0.6.8"
  /// kernels      those that may be launched; all others can only be selected
  /// param_bytes  what the files declare; 0: what the release's layout has
  LaunchRig(const std::string& release, const std::set<std::string>& kernels,
            std::uint32_t param_bytes = 0);

  runtime::Runtime& runtime() { return *runtime_; }
  /// The stream that launches go to.
  cuda::CUstream stream() const { return stream_; }
  const std::string& store() const { return store_.path(); }

 private:
  Scratch folder_;
  Scratch store_;
  Environment environment_;
  std::shared_ptr<runtime::Runtime> runtime_;
  cuda::CUstream stream_ = nullptr;
};

}  // namespace cubist::test
