#pragma once

#include <cstdint>
#include <string>

namespace cubist {

/// What the stores and fetches of this process have done so far. Safe from any thread.
struct RegistryCounters {
  std::uint64_t store_hits = 0;    ///< entries opened and found good
  std::uint64_t store_misses = 0;  ///< entries that were not there
  std::uint64_t store_broken = 0;  ///< entries that were refused
  std::uint64_t files_fetched = 0;
  std::uint64_t files_failed = 0;
  std::uint64_t files_in_memory = 0;  ///< fetched, but the store could not be written
  std::uint64_t bytes_fetched = 0;    ///< of artifacts
  std::uint64_t http_requests = 0;
  std::uint64_t http_retries = 0;
  std::uint64_t http_received_bytes = 0;
  std::uint64_t fetch_microseconds = 0;  ///< in fetch(), all calls together
};

RegistryCounters registry_counters();
/// Adds to them; fields that are zero cost nothing.
void add_to_counters(const RegistryCounters& more);

/// One object with the fields above; fetch time in seconds.
std::string to_json(const RegistryCounters& counters);
/// Text exposition format 0.0.4: cubist_store_hits_total, ...; for a scraper's text file folder.
std::string to_prometheus(const RegistryCounters& counters);

}  // namespace cubist
