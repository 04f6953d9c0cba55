#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cubist {

template <class T>
concept TextLike = std::convertible_to<const T&, std::string_view>;

/// A text that owns its bytes, or borrows them from a mapped file so that tens of thousands of
/// records open without an allocation each. Only the object that lend() was called on borrows, and
/// only as long as its Lender lives: whatever is copied or moved from it owns. Reads like a
/// std::string; always ends in a NUL. Below 4 GB.
class LentString {
 public:
  LentString() = default;
  template <TextLike T>
  LentString(const T& text) {  // NOLINT(google-explicit-constructor): stands in for std::string
    own(std::string_view(text));
  }
  LentString(const LentString& other) { own(other.view()); }
  LentString(LentString&& other) noexcept { take(other); }
  ~LentString() { release(); }
  LentString& operator=(const LentString& other) {
    if (this != &other) *this = LentString(other);
    return *this;
  }
  LentString& operator=(LentString&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }

  /// Makes this text stand for `text`, which a NUL follows and a Lender keeps.
  void lend(std::string_view text) {
    release();
    data_ = text.data();
    size_ = static_cast<std::uint32_t>(text.size());
    owned_ = false;
  }

  std::string_view view() const { return {data_, size_}; }
  const char* c_str() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t find(std::string_view part) const { return view().find(part); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string_view() const { return view(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string() const { return std::string(view()); }

  LentString& operator+=(std::string_view more) { return *this = LentString(*this + more); }

  template <TextLike T>
  friend bool operator==(const LentString& a, const T& b) {
    return a.view() == std::string_view(b);
  }
  template <TextLike T>
  friend std::strong_ordering operator<=>(const LentString& a, const T& b) {
    return a.view() <=> std::string_view(b);
  }
  friend std::string operator+(const LentString& a, std::string_view b) {
    return std::string(a.view()).append(b);
  }
  template <TextLike T>
  friend std::string operator+(const T& a, const LentString& b) {
    return std::string(std::string_view(a)).append(b.view());
  }
  template <class Stream>
  friend auto operator<<(Stream& stream, const LentString& text)
      -> decltype(stream << std::declval<std::string_view>()) {
    return stream << text.view();
  }

 private:
  void own(std::string_view text) {
    if (text.empty()) return;
    char* bytes = new char[text.size() + 1];
    text.copy(bytes, text.size());
    bytes[text.size()] = '\0';
    data_ = bytes;
    size_ = static_cast<std::uint32_t>(text.size());
    owned_ = true;
  }
  /// Without looking at what is here now.
  void take(LentString& other) {
    data_ = "";
    size_ = 0;
    owned_ = false;
    if (!other.owned_) return own(other.view());
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
  }
  void release() {
    if (owned_) delete[] data_;
  }

  const char* data_ = "";
  std::uint32_t size_ = 0;
  bool owned_ = false;
};

/// Keeps what the texts beside it have borrowed from.
struct Lender {
  std::shared_ptr<const void> bytes;
  /// No part of what is compared: equal texts are equal wherever they lie.
  bool operator==(const Lender&) const { return true; }
};

}  // namespace cubist
