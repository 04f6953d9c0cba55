#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::oci {

/// Where a bundle lies in a registry.
struct Reference {
  std::string host;        ///< lower case, with ":port" if one was given; IPv6 in brackets
  std::string repository;  ///< "team/kernels/fmha"
  std::string tag;         ///< empty if only a digest was given
  std::optional<Sha256Digest> digest;  ///< of the image manifest; where it is set it counts

  /// What a registry is asked for: the digest if there is one, else the tag.
  std::string wanted() const;
  /// As parse_reference() reads it.
  std::string text() const;
  bool operator==(const Reference&) const = default;
};

bool looks_like_reference(std::string_view text);

/// oci://host[:port]/repository(:tag|@sha256:digest|:tag@sha256:digest)
///
///   host        a name, an IPv4 address or an IPv6 address in brackets; there is no default
///   repository  parts [a-z0-9]+((.|_|__|-+)[a-z0-9]+)* with "/" between, 255 characters at most
///   tag         [A-Za-z0-9_][A-Za-z0-9._-]*, 128 characters at most; there is no default
///   digest      64 lower-case hexadecimal digits
///
/// errors  kInvalidArgument: names the part that is wrong and what it should look like
Result<Reference> parse_reference(std::string_view text);

}  // namespace cubist::oci
