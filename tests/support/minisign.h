#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/file.h"
#include "support/scratch.h"

namespace cubist::test {

/// A key pair made by the minisign program, without a password, gone after the test. Throws where
/// the program fails.
class Signer {
 public:
  Signer() { run("-G -W -p " + folder_ / "k.pub" + " -s " + folder_ / "k.key"); }

  /// The two lines of the .pub file.
  std::string public_file() const { return read(folder_ / "k.pub"); }
  std::string public_path() const { return folder_ / "k.pub"; }
  std::string secret_file() const { return read(folder_ / "k.key"); }
  /// The line that counts.
  std::string public_line() const {
    const std::string text = public_file();
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  /// The .minisig text for these bytes.
  std::string sign(std::string_view bytes, const std::string& trusted_comment = "a test",
                   const std::string& options = "") const {
    const std::string file = folder_ / "m";
    if (!write_file_atomically(file, bytes)) throw std::runtime_error("no scratch file");
    run("-S -W " + options + " -s " + folder_ / "k.key" + " -m " + file + " -x " +
        folder_ / "m.minisig" + " -t '" + trusted_comment + "'");
    return read(folder_ / "m.minisig");
  }

  /// Writes FILE.minisig beside a file.
  void sign_file(const std::string& file, const std::string& trusted_comment = "a test") const {
    if (!write_file_atomically(file + ".minisig", sign(read(file), trusted_comment))) {
      throw std::runtime_error("no signature file");
    }
  }

 private:
  static std::string read(const std::string& path) {
    const auto text = read_text_file(path, 1ULL << 30);
    if (!text) throw std::runtime_error(text.error().message());
    return *text;
  }
  static void run(const std::string& arguments) {
    if (std::system(("minisign " + arguments + " >/dev/null </dev/null").c_str()) != 0) {
      throw std::runtime_error("minisign failed; scripts/setup installs it");
    }
  }

  Scratch folder_;
};

}  // namespace cubist::test
