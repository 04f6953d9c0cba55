#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "importer/file_tree.h"
#include "registry/http_client.h"

namespace cubist::tools {

/// What `cubist import` reads from, and the connection it needs for that.
struct ImportSource {
  std::unique_ptr<HttpClient> client;  ///< null for what lies on this machine
  std::unique_ptr<FileTree> tree;      ///< uses the client: destroyed first
};

/// text    a wheel file, a folder, the http(s) URL of a wheel (read by ranges), or
/// pip:NAME==VERSION
///         (the wheel that the user's pip would install, found in its index or find-links)
/// cancel  as for HttpClient; may be null
/// errors  kNotFound, kIo, kNetwork, kIntegrity, kInvalidArgument
Result<ImportSource> open_import_source(const std::string& text, const std::atomic<bool>* cancel);

}  // namespace cubist::tools
