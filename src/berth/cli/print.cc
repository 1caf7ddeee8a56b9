#include "berth/cli/print.h"

#include <cerrno>
#include <cstdio>

#include "berth/base/visible.h"

namespace berth::cli {
namespace {

int failed_print = 0;  // an errno

}  // namespace

void print(std::string_view text) {
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  print_exact(is_json ? visible_json(text) : visible_text(text));
}

void print_error(std::string_view text) {
  print_exact_error(visible_text(text));
}

void print_exact(std::string_view bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (!written || std::fflush(stdout) != 0) note_failed_print(errno);
}

void print_exact_error(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

void note_failed_print(int number) {
  if (number != EPIPE && number != EBADF) failed_print = number;
}

int print_errno() {
  return failed_print;
}

}  // namespace berth::cli
