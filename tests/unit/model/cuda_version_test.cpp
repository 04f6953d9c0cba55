#include "model/cuda_version.h"

#include "support/catch.h"

using cubist::cuda_version_text;
using cubist::parse_cuda_version;

TEST_CASE("CUDA versions read back as they are written") {
  for (const int version : {1000, 11080, 12000, 12090, 13000, 25090}) {
    CHECK(parse_cuda_version(cuda_version_text(version)) == version);
  }
  CHECK(cuda_version_text(12080) == "12.8");
}

TEST_CASE("what is no CUDA version is none") {
  for (const char* text : {"", ".", "13", "13.", ".0", "13.00", "013.0", "0.9", "26.0", "-1.0",
                           "13.0 ", " 13.0", "13.x", "a.0", "13.0.1", "99999999999.0"}) {
    INFO(text);
    CHECK_FALSE(parse_cuda_version(text).has_value());
  }
}
