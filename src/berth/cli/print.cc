#include "berth/cli/print.h"

#include <cerrno>
#include <cstdio>

namespace berth::cli {
namespace {

int failed_print = 0;  // an errno

}  // namespace

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) note_failed_print(errno);
}

void note_failed_print(int number) {
  if (number != EPIPE && number != EBADF) failed_print = number;
}

int print_errno() {
  return failed_print;
}

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace berth::cli
