// For tests: what a real shell makes of a text, and values that would be glad to escape it.
#pragma once

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/rng.h"
#include "berth/base/text.h"

namespace berth {

/// What `script` prints, run by `shell` -c where no file can be made, should a value escape.
inline std::string shell_output(const std::string& script, const std::string& shell = "/bin/sh") {
  std::string output;
  const std::string command = "cd /proc/self || exit\nexec " + shell + " -c " + shell_quote(script);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  for (;;) {
    const int c = std::getc(pipe);
    if (c != EOF) {
      output += static_cast<char>(c);
    } else if (std::ferror(pipe) != 0 && errno == EINTR) {
      std::clearerr(pipe);  // libFuzzer's alarm, say
    } else {
      break;
    }
  }
  pclose(pipe);
  return output;
}

/// The words that `script` prints, each with a NUL behind it.
inline std::vector<std::string> shell_words(const std::string& script,
                                            const std::string& shell = "/bin/sh") {
  const std::string output = shell_output(script, shell);
  std::vector<std::string> result;
  for (const auto word : split(output, '\0')) result.emplace_back(word);
  result.pop_back();
  return result;
}

/// Up to 12 bytes, most of which mean something to a shell. No NUL.
inline std::string hostile_value(Rng& rng) {
  constexpr std::string_view kBytes = "''\"\"``$$\\\\ \t\n;&|<>(){}[]*?#~!=%^-a1é\x80\xff\x01";
  constexpr std::string_view kWords[] = {"$(false)", "`false`", "$HOME", "; false", "EOF", "esac"};
  std::string value;
  for (std::uint64_t left = rng.below(13); left > 0; --left) {
    if (rng.below(8) == 0)
      value += kWords[rng.below(std::size(kWords))];
    else
      value += kBytes[rng.below(kBytes.size())];
  }
  return value;
}

}  // namespace berth
