// Fetching through the C interface: progress, cancelling, log.
#include <atomic>
#include <chrono>
#include <thread>

#include "cubist/cubist.h"
#include "support/catch.h"
#include "support/made_release.h"
#include "support/server.h"

using cubist::Source;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;

namespace {

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> files_done{0};
  cubist_fetch_progress last = {};
  int32_t answer = 1;                   ///< what the callback returns
  cubist_runtime* to_cancel = nullptr;  ///< cancelled from the callback
};

int32_t on_progress(const cubist_fetch_progress* progress, void* user_data) {
  auto& seen = *static_cast<Seen*>(user_data);
  CHECK(progress->struct_size == sizeof(cubist_fetch_progress));
  CHECK(progress->files_done <= progress->files_total);
  CHECK(progress->bytes_done <= progress->bytes_total);
  seen.last = *progress;
  seen.files_done = progress->files_done;
  ++seen.calls;
  if (seen.to_cancel != nullptr) CHECK(cubist_runtime_cancel(seen.to_cancel) == CUBIST_STATUS_OK);
  return seen.answer;
}

struct Opened {
  MadeRelease release{12, 40'000};
  MischiefServer server{release.tree()};
  cubist_runtime* runtime = nullptr;
  Seen seen;

  explicit Opened(const std::string& behaviour = "ok") {
    release.set_sources({{Source::Kind::kHttp, server.url(behaviour), MadeRelease::kPrefix}});
    const std::string manifest = release.write_manifest_file();
    const std::string store = release.store_root();
    const char* manifests[] = {manifest.c_str()};
    cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
    options.manifests = manifests;
    options.num_manifests = 1;
    options.store_dir = store.c_str();
    REQUIRE(cubist_runtime_open(&options, &runtime) == CUBIST_STATUS_OK);
    REQUIRE(cubist_runtime_set_progress_callback(runtime, &on_progress, &seen) == CUBIST_STATUS_OK);
  }
  ~Opened() { cubist_runtime_destroy(runtime); }

  cubist_status fetch_all() const { return cubist_runtime_fetch_many(runtime, nullptr, 0); }
};

}  // namespace

TEST_CASE("fetching many tells how far it is, to the end") {
  const Opened opened;
  CHECK(opened.fetch_all() == CUBIST_STATUS_OK);
  CHECK(opened.seen.calls >= 1);
  CHECK(opened.seen.last.files_total == 12);
  CHECK(opened.seen.last.files_done == 12);
  CHECK(opened.seen.last.files_failed == 0);
  CHECK(opened.seen.last.bytes_done == opened.seen.last.bytes_total);
  CHECK(opened.seen.last.received_bytes >= opened.seen.last.bytes_total);
  CHECK(opened.release.count_store_files() == 12);
  const char* names[] = {"kernel_00003", "kernel_00004"};
  CHECK(cubist_runtime_fetch_many(opened.runtime, names, 2) == CUBIST_STATUS_OK);
  CHECK(opened.seen.last.files_total == 2);
  CHECK(opened.server.count_requests() == 12);
}

TEST_CASE("what is asked for wrongly is refused before anything is fetched") {
  const Opened opened;
  const char* unknown[] = {"kernel_00003", "nobody"};
  const char* null_name[] = {nullptr};
  CHECK(cubist_runtime_fetch_many(opened.runtime, unknown, 2) == CUBIST_STATUS_NOT_FOUND);
  CHECK(cubist_runtime_fetch_many(opened.runtime, null_name, 1) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(cubist_runtime_fetch_many(opened.runtime, unknown, 0) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(cubist_runtime_fetch_many(opened.runtime, nullptr, 1) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(cubist_runtime_fetch_many(nullptr, nullptr, 0) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(cubist_runtime_cancel(nullptr) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(cubist_runtime_set_progress_callback(nullptr, nullptr, nullptr) ==
        CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK(opened.server.count_requests() == 0);
}

TEST_CASE("a callback that says stop ends its fetch, and the next one goes on") {
  Opened opened("pace");
  SECTION("by its answer") { opened.seen.answer = 0; }
  SECTION("by cancelling") { opened.seen.to_cancel = opened.runtime; }
  CHECK(opened.fetch_all() == CUBIST_STATUS_INTERRUPTED);
  CHECK(std::string(cubist_last_error_message()).find("run the same") != std::string::npos);
  CHECK(opened.release.count_store_files() < 12);
  opened.seen.answer = 1;
  opened.seen.to_cancel = nullptr;
  CHECK(opened.fetch_all() == CUBIST_STATUS_OK);
  CHECK(opened.release.count_store_files() == 12);
  CHECK(opened.release.count_store_files("tmp") == 0);
}

TEST_CASE("another thread cancels a fetch that hangs, soon, and later fetches are not concerned") {
  const Opened opened("stall-once");
  std::atomic<cubist_status> status{-1};
  std::thread fetching([&] { status = opened.fetch_all(); });
  // One answer that hangs does not keep the others from being asked for.
  for (int i = 0; i < 500 && opened.server.count_requests() < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(opened.server.count_requests() == 8);
  CHECK(status == -1);
  const auto begun = std::chrono::steady_clock::now();
  CHECK(cubist_runtime_cancel(opened.runtime) == CUBIST_STATUS_OK);
  fetching.join();
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
  CHECK(status == CUBIST_STATUS_INTERRUPTED);
  CHECK(cubist_runtime_cancel(opened.runtime) == CUBIST_STATUS_OK);  // nothing is under way
  const char* first[] = {"kernel_00000"};
  CHECK(cubist_runtime_fetch_many(opened.runtime, first, 1) == CUBIST_STATUS_OK);
}

TEST_CASE("a log callback hears what a fetch has to say, and no progress callback hears nothing") {
  Opened opened("ok");
  REQUIRE(cubist_runtime_set_progress_callback(opened.runtime, nullptr, nullptr) ==
          CUBIST_STATUS_OK);
  std::string heard;
  REQUIRE(cubist_log_set_callback(
              [](int32_t level, const char* message, void* user_data) {
                if (level == CUBIST_LOG_DEBUG) *static_cast<std::string*>(user_data) += message;
              },
              &heard, CUBIST_LOG_DEBUG) == CUBIST_STATUS_OK);
  CHECK(cubist_runtime_fetch(opened.runtime, "kernel_00000") == CUBIST_STATUS_OK);
  REQUIRE(cubist_log_set_callback(nullptr, nullptr, CUBIST_LOG_WARNING) == CUBIST_STATUS_OK);
  CHECK(heard.find("GET http://127.0.0.1") != std::string::npos);
  CHECK(opened.seen.calls == 0);
}
