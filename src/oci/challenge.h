#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubist::oci {

/// One way to prove who one is, out of WWW-Authenticate (RFC 9110 11.6.1).
struct Challenge {
  std::string scheme;                             ///< lower case: "bearer", "basic"
  std::map<std::string, std::string> parameters;  ///< names in lower case

  /// Empty if it is not there.
  std::string parameter(const std::string& name) const;
};

/// All that the values of the headers offer, in order. What makes no sense ends the value it is in.
std::vector<Challenge> parse_challenges(std::span<const std::string> values);

}  // namespace cubist::oci
