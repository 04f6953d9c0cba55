#include "cubin/min_driver.h"

#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

TEST_CASE("a cubin runs on drivers from the first release of its tools' major one on") {
  test::SyntheticCubin cubin;
  CHECK(min_driver_of(*parse_cubin(make_cubin(cubin).bytes, "12.9.cubin")) == 12000);
  cubin.release_13 = true;
  CHECK(min_driver_of(*parse_cubin(make_cubin(cubin).bytes, "13.0.cubin")) == 13000);
}

TEST_CASE("where tools are not named, or are older than the rule, nothing is said") {
  test::SyntheticCubin cubin;
  cubin.tool_note = false;
  CHECK_FALSE(min_driver_of(*parse_cubin(make_cubin(cubin).bytes, "none.cubin")).has_value());
  CubinFile old;
  old.tool_release = "10.2";
  CHECK_FALSE(min_driver_of(old).has_value());
  old.tool_release = "eleven";
  CHECK_FALSE(min_driver_of(old).has_value());
  old.tool_release = "11.8";
  CHECK(min_driver_of(old) == 11000);
}

}  // namespace
}  // namespace cubist
