#pragma once

#include <memory>
#include <string>

#include "base/sha256.h"
#include "registry/http_request.h"

namespace cubist {

/// What came of an artifact before its run was stopped, so that the next run asks for the rest
/// alone: <root>/tmp/<digest>.resume. A hint and no more: it is used only if the server confirms
/// its validator, and the artifact is hashed as a whole afterwards.
///
///   "cubist partial 1\n"
///   SHA-256 of the URL, a newline and the range asked for, 64 hexadecimal digits, '\n'
///   validator (ETag or Last-Modified), '\n'
///   the bytes, to the end of the file
std::string partial_path(const std::string& store_root, const Sha256Digest& digest);

/// What a partial body is of: another URL or range is another body.
std::string partial_key(const HttpRequest& request);

/// Keeps it; small ones are not worth a file, and where nothing can be written nothing is kept.
void save_partial(const std::string& store_root, const Sha256Digest& digest, const std::string& key,
                  const PartialBody& partial);

/// Takes the file away and hands out what it held; null if there is none for this key.
std::shared_ptr<const PartialBody> take_partial(const std::string& store_root,
                                                const Sha256Digest& digest, const std::string& key,
                                                std::uint64_t max_bytes);

}  // namespace cubist
