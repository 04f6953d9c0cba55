#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "manifest/manifest.h"

namespace cubist {

// The rules of single parts of a manifest; validate.cpp puts them together.

/// "/packs/0/name: what is wrong" with code kManifestInvalid.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> invalid(std::string_view pointer,
                                            fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(
      Error(StatusCode::kManifestInvalid,
            fmt::format("{}: {}", pointer, fmt::format(text, std::forward<Args>(args)...))));
}

/// A letter, a digit or one of "_.-$+".
bool is_name_character(char character);

/// A text for people: any UTF-8, but nothing that steers a terminal.
Status check_text(std::string_view text, std::size_t max_length, std::string_view pointer);

/// A name: letters, digits and "_.-$+", the first none of ".-+".
Status check_name(std::string_view name, std::string_view pointer);

/// `pointer` is the source's own.
Status check_source(const Source& source, const std::string& pointer);

/// Traits that can be launched, in a pack of this family and revision. Messages start with the key.
Status check_traits(const KernelTraits& traits, const Pack& pack);

}  // namespace cubist
