#include "registry/counters.h"

#include "registry/store.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/synthetic.h"

using cubist::registry_counters;
using cubist::RegistryCounters;
using cubist::test::record_of;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;
using cubist::test::verified;

TEST_CASE("hits and misses of the store are counted") {
  const RegistryCounters before = registry_counters();
  const Scratch scratch;
  const cubist::Store store({scratch / "store", {}});
  const auto bytes = synthetic_bytes(1, 100);
  REQUIRE_FALSE(store.open_verified(record_of("k", bytes)).value());
  REQUIRE(store.install(verified(bytes)));
  REQUIRE(store.open_verified(record_of("k", bytes)).value());
  const RegistryCounters after = registry_counters();
  CHECK(after.store_misses == before.store_misses + 1);
  CHECK(after.store_hits == before.store_hits + 1);
}

TEST_CASE("counters are written as JSON and as Prometheus text") {
  RegistryCounters counters;
  counters.http_requests = 7;
  counters.fetch_microseconds = 1'500'000;
  CHECK(to_json(counters) ==
        R"({"store_hits":0,"store_misses":0,"store_broken":0,"files_fetched":0,"files_failed":0,)"
        R"("files_in_memory":0,"bytes_fetched":0,"http_requests":7,"http_retries":0,)"
        R"("http_received_bytes":0,"fetch_seconds":1.500000})");
  CHECK_THAT(to_prometheus(counters), Catch::Contains("# TYPE cubist_http_requests_total counter\n"
                                                      "cubist_http_requests_total 7\n") &&
                                          Catch::EndsWith("cubist_fetch_seconds_total 1.500000\n"));
}
