#include "registry/counters.h"

#include <array>
#include <atomic>

#include <fmt/format.h>

namespace cubist {
namespace {

struct Row {
  const char* name;
  const char* help;
  std::uint64_t RegistryCounters::*field;
};

constexpr std::array<Row, 10> kRows{{
    {"store_hits", "Store entries opened and verified.", &RegistryCounters::store_hits},
    {"store_misses", "Store entries that were not there.", &RegistryCounters::store_misses},
    {"store_broken", "Store entries refused as broken.", &RegistryCounters::store_broken},
    {"files_fetched", "Artifacts fetched into the store.", &RegistryCounters::files_fetched},
    {"files_failed", "Artifacts that no source gave.", &RegistryCounters::files_failed},
    {"files_in_memory", "Artifacts fetched but not kept.", &RegistryCounters::files_in_memory},
    {"bytes_fetched", "Bytes of artifacts fetched.", &RegistryCounters::bytes_fetched},
    {"http_requests", "HTTP requests sent.", &RegistryCounters::http_requests},
    {"http_retries", "HTTP requests tried again.", &RegistryCounters::http_retries},
    {"http_received_bytes", "Bytes of HTTP bodies.", &RegistryCounters::http_received_bytes},
}};

std::array<std::atomic<std::uint64_t>, kRows.size()> totals{};
std::atomic<std::uint64_t> total_microseconds{0};

double seconds(const RegistryCounters& counters) {
  return static_cast<double>(counters.fetch_microseconds) / 1e6;
}

}  // namespace

RegistryCounters registry_counters() {
  RegistryCounters now;
  for (std::size_t i = 0; i < kRows.size(); ++i) now.*kRows[i].field = totals[i].load();
  now.fetch_microseconds = total_microseconds.load();
  return now;
}

void add_to_counters(const RegistryCounters& more) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (const std::uint64_t value = more.*kRows[i].field; value != 0) totals[i].fetch_add(value);
  }
  if (more.fetch_microseconds != 0) total_microseconds.fetch_add(more.fetch_microseconds);
}

std::string to_json(const RegistryCounters& counters) {
  std::string text = "{";
  for (const Row& row : kRows) text += fmt::format("\"{}\":{},", row.name, counters.*row.field);
  return text + fmt::format("\"fetch_seconds\":{:.6f}}}", seconds(counters));
}

std::string to_prometheus(const RegistryCounters& counters) {
  std::string text;
  for (const Row& row : kRows) {
    text += fmt::format("# HELP cubist_{0}_total {1}\n# TYPE cubist_{0}_total counter\n", row.name,
                        row.help);
    text += fmt::format("cubist_{}_total {}\n", row.name, counters.*row.field);
  }
  return text +
         fmt::format(
             "# HELP cubist_fetch_seconds_total Time spent fetching.\n"
             "# TYPE cubist_fetch_seconds_total counter\ncubist_fetch_seconds_total {:.6f}\n",
             seconds(counters));
}

}  // namespace cubist
