#include "select_jsonl.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "exit_code.h"

namespace cubist::tools {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kBatchBytes = std::size_t{8} << 20;     // read on while more is waiting
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;  // without a newline: not JSON lines
constexpr std::size_t kBytesPerTask = std::size_t{64} << 10;

/// Lines of one stretch of input and what they were answered with.
struct Task {
  std::string_view input;
  std::uint64_t first_line = 0;
  std::string output;
  JsonlCounts counts;
};

class LineAnswerer {
 public:
  LineAnswerer(const RuledSelection& ruled, const DeviceProfile& device,
               const selector::SelectOptions& options, AppendAnswer append)
      : ruled_(ruled), device_(device), options_(options), append_(append) {}

  void answer(Task& task) {
    std::string_view rest = task.input;
    for (std::uint64_t number = task.first_line; !rest.empty(); ++number) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      answer_line(rest.substr(0, end), number, task);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

 private:
  static void append_error(Task& task, std::string_view in_text, const Error& error) {
    append_error_json(in_text, error, static_cast<int>(exit_code_for(error.code())), task.output);
  }

  void answer_line(std::string_view line, std::uint64_t number, Task& task) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    Status status = read_problem(line, device_, problem_);
    if (!status) {
      ++task.counts.malformed;
      Error error = std::move(status.error()).with_context(fmt::format("line {}", number));
      append_error(task, {}, error);
    } else {
      status =
          ruled_.select_into(problem_.value.problem, problem_.value.device, options_, selection_);
      if (status) status = append_(line, problem_, selection_, task.output);
      if (status) {
        ++task.counts.plans;
        if (selection_.best().fallback != FallbackReason::kNone) ++task.counts.fallbacks;
      } else {
        ++task.counts.refused;
        append_error(task, problem_.in_text, status.error());
      }
    }
    task.output.push_back('\n');
  }

  const RuledSelection& ruled_;
  const DeviceProfile& device_;
  const selector::SelectOptions& options_;
  AppendAnswer append_;
  ProblemLine problem_;
  Selection selection_;
};

/// Cuts at line ends.
std::vector<Task> split_tasks(std::string_view text, std::uint64_t first_line) {
  std::vector<Task> tasks;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kBytesPerTask) {
      const std::size_t newline = text.find('\n', kBytesPerTask);
      if (newline != std::string_view::npos) end = newline + 1;
    }
    Task& task = tasks.emplace_back();
    task.input = text.substr(0, end);
    task.first_line = first_line;
    first_line +=
        static_cast<std::uint64_t>(std::count(task.input.begin(), task.input.end(), '\n'));
    text.remove_prefix(end);
  }
  return tasks;
}

Status write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(output, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return fail(StatusCode::kIo, "cannot write the answers: {}", std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

class JsonlRun {
 public:
  JsonlRun(const RuledSelection& ruled, const DeviceProfile& device,
           const selector::SelectOptions& options, int output, AppendAnswer append)
      : ruled_(ruled),
        device_(device),
        options_(options),
        output_(output),
        append_(append),
        threads_(std::clamp(std::thread::hardware_concurrency(), 1U, 16U)) {}

  Status answer(std::string_view lines) {
    std::vector<Task> tasks = split_tasks(lines, line_);
    line_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    std::atomic<std::size_t> next{0};
    on_threads(std::min<std::size_t>(threads_, tasks.size()), [&](unsigned) {
      LineAnswerer answerer(ruled_, device_, options_, append_);
      for (std::size_t i = next++; i < tasks.size(); i = next++) answerer.answer(tasks[i]);
    });
    for (const Task& task : tasks) {
      CUBIST_RETURN_IF_ERROR(write_all(output_, task.output));
      counts_.plans += task.counts.plans;
      counts_.fallbacks += task.counts.fallbacks;
      counts_.refused += task.counts.refused;
      counts_.malformed += task.counts.malformed;
    }
    return {};
  }

  const JsonlCounts& counts() const { return counts_; }

 private:
  const RuledSelection& ruled_;
  const DeviceProfile& device_;
  const selector::SelectOptions& options_;
  int output_;
  AppendAnswer append_;
  unsigned threads_;
  std::uint64_t line_ = 1;
  JsonlCounts counts_;
};

bool more_is_waiting(int input) {
  pollfd descriptor{input, POLLIN, 0};
  return ::poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLIN) != 0;
}

}  // namespace

void print_counts(const JsonlCounts& counts) {
  std::fputs(fmt::format("{} plans ({} of them fallbacks), {} refused, {} malformed lines\n",
                         counts.plans, counts.fallbacks, counts.refused, counts.malformed)
                 .c_str(),
             stderr);
}

Status append_plan_answer(std::string_view /*line*/, const ProblemLine& problem,
                          const Selection& selection, std::string& out) {
  append_answer_json(problem.in_text, problem.value.problem, selection, out);
  return {};
}

Result<JsonlCounts> run_jsonl(const RuledSelection& ruled, const DeviceProfile& device,
                              const selector::SelectOptions& options, int input, int output,
                              AppendAnswer append) {
  JsonlRun run(ruled, device, options, output, append);
  std::string buffer;
  while (true) {
    const std::size_t filled = buffer.size();
    buffer.resize(filled + kReadBytes);
    const ssize_t got = ::read(input, buffer.data() + filled, kReadBytes);
    buffer.resize(filled + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(StatusCode::kIo, "cannot read the problems: {}", std::strerror(errno));
    if (got == 0) break;
    if (buffer.size() < kBatchBytes && more_is_waiting(input)) continue;
    const std::size_t newline = buffer.rfind('\n');
    if (newline == std::string::npos) {
      if (buffer.size() <= kMaxLineBytes) continue;
      return fail(StatusCode::kInvalidArgument,
                  "{} bytes of input without a newline: expected one JSON object a line",
                  buffer.size());
    }
    CUBIST_RETURN_IF_ERROR(run.answer(std::string_view(buffer).substr(0, newline + 1)));
    buffer.erase(0, newline + 1);
  }
  CUBIST_RETURN_IF_ERROR(run.answer(buffer));
  return run.counts();
}

}  // namespace cubist::tools
