#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "base/result.h"
#include "presets/library.h"
#include "workingset/classes.h"
#include "workingset/query.h"

namespace cubist::tools {

/// What the flags below describe, read and checked.
struct Deployment {
  workingset::Query query;
  std::string model;  ///< preset's name; empty where the shape was given in flags
};

/// --model, --presets and --tp, where a command has the other flags already.
struct ModelFlags {
  std::vector<std::string> models;
  std::vector<std::string> preset_files;
  std::string tp = "1";

  void add_to(CLI::App& command);
};

/// Flags of commands that look at a range of problems: a model (or a shape), a device, and the
/// limits. --batch, --max-q-len and --max-kv-len hold ranges, --phase, --tp, --dtype-q, --dtype-kv,
/// --dtype-o and --page-size lists; every other field of a problem is a flag, too.
class DeploymentFlags {
 public:
  void add_to(CLI::App& command);
  /// The same from flags that another command has read: fields and their texts.
  static DeploymentFlags from(ModelFlags model, std::string device, bool strict,
                              std::map<std::string, std::string, std::less<>> texts);

  /// errors  kInvalidArgument: the flag and what is wrong; kNotFound: a preset or file
  Result<Deployment> read() const { return read_for({}); }
  /// The same for a device that is named elsewhere; empty: --device.
  Result<Deployment> read_for(const std::string& device_name) const;
  /// What lists and ranges are where no flag gives them: "--phase decode, --max-q-len 1"; empty if
  /// all are given.
  std::string assumed() const;
  Result<presets::Library> presets() const;
  /// The named device, --sm and --num-sms applied.
  Result<DeviceProfile> device(const std::string& name) const;

 private:
  bool has(std::string_view field) const;
  std::string text(std::string_view field) const;
  Status read_lists(workingset::ClassOptions& options) const;
  Status read_rest(AttentionProblem& problem) const;
  Status read_ranges(std::int32_t longest, workingset::Query& query) const;
  Status check_shape_flags() const;

  ModelFlags model_;
  std::string device_;
  bool strict_ = false;
  std::map<std::string, std::string, std::less<>> texts_;  ///< by field
};

}  // namespace cubist::tools
