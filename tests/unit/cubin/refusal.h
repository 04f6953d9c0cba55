#pragma once

#include <vector>

#include "cubin/cubin_file.h"
#include "support/catch.h"
#include "support/liar.h"
#include "support/synthetic_cubin.h"

namespace cubist::test {

/// Each lie told by a copy of `good` is refused, with a sentence that names the file and the lie.
inline void check_refused(const CubinImage& good, const std::vector<Liar<CubinImage>>& liars) {
  for (const Liar<CubinImage>& liar : liars) {
    CAPTURE(liar.what);
    CubinImage image = good;
    liar.lie(image);
    const auto cubin = parse_cubin(image.bytes, "x.cubin");
    REQUIRE_FALSE(cubin);
    CHECK(cubin.error().code() == StatusCode::kIntegrity);
    CHECK_THAT(cubin.error().message(), Catch::StartsWith("'x.cubin' is no usable cubin: "));
    CHECK_THAT(cubin.error().message(), Catch::Contains(liar.says));
  }
}

}  // namespace cubist::test
