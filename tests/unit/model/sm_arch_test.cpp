#include "model/sm_arch.h"

#include "support/catch.h"

using cubist::parse_sm_arch;
using cubist::runs_on;

TEST_CASE("architectures read back as they are written") {
  for (const char* text : {"sm_80", "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_120"}) {
    CHECK(cubist::to_string(parse_sm_arch(text).value()) == text);
  }
  CHECK(parse_sm_arch("100f") == parse_sm_arch("sm_100f"));
  for (const char* text :
       {"", "sm_", "sm_9", "sm_90b", "sm_90aa", "sm_-90", "compute_90", "sm_99999"}) {
    CHECK_FALSE(parse_sm_arch(text).has_value());
  }
}

TEST_CASE("a specific cubin runs on its own device alone, a family one on its family") {
  CHECK(runs_on(*parse_sm_arch("sm_100a"), 100));
  CHECK_FALSE(runs_on(*parse_sm_arch("sm_100a"), 103));
  CHECK(runs_on(*parse_sm_arch("sm_100f"), 100));
  CHECK(runs_on(*parse_sm_arch("sm_100f"), 103));
  CHECK_FALSE(runs_on(*parse_sm_arch("sm_103f"), 100));
  CHECK_FALSE(runs_on(*parse_sm_arch("sm_100f"), 120));
  CHECK_FALSE(runs_on(*parse_sm_arch("sm_90a"), 89));
  CHECK(runs_on(*parse_sm_arch("sm_80"), 89));
  CHECK_FALSE(runs_on(*parse_sm_arch("sm_90"), 100));
}
