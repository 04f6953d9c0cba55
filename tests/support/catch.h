#pragma once

// Catch2 v2 (one header) or v3 (a library), whichever is installed.
#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
#endif
