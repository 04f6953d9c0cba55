#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "manifest/filter.h"

namespace cubist::tools {

/// Flags that say which kernels of a manifest are meant.
struct FilterArguments {
  std::vector<std::string> archs;
  std::vector<std::string> dtypes_q;
  std::vector<std::string> dtypes_kv;
  std::vector<std::string> dtypes_o;
  std::vector<std::string> head_dims;
  std::vector<std::string> phases;
  std::vector<std::string> names;
  std::vector<std::string> digests;
};

void add_filter_options(CLI::App& command, FilterArguments& arguments);

/// errors  kInvalidArgument: a word that is none, with those that are
Result<KernelFilter> read_filter(const FilterArguments& arguments);

}  // namespace cubist::tools
