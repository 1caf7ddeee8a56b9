#include "berth/cli/program.h"
#include "berth/base/url.h"
#include "berth/cli/print.h"

#include <cstdio>
#include <cstring>
#include <exception>

#include "berth/os/log.h"

namespace berth::cli {
namespace {

Result<int> dispatch(std::span<const Command> commands, int count, char** values) {
  BERTH_ASSIGN(const auto read, read_command_line(commands, count, values, terminal_width()));
  if (const auto* printout = std::get_if<Printout>(&read)) {
    std::fputs(printout->text.c_str(), stdout);
    return 0;
  }
  os::ignore_file_size_signal();
  const auto env = os::posix_env();
  BERTH_TRY(os::open_log(*env));
  return std::get<Action>(read)(*env);
}

}  // namespace

int run_program(std::span<const Command> commands, int count, char** values) {
  try {
    const auto code = dispatch(commands, count, values);
    if (code && *code == 0 && print_errno() != 0) {
      print_error(fmt::format("berth: standard output: {}\n", std::strerror(print_errno())));
      return exit_code(ErrorKind::full);
    }
    if (code) return *code;
    print_error(fmt::format("berth: {}\n", without_secrets(code.error().message)));
    return exit_code(code.error().kind);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: %s\n", error.what());  // out of memory, say
    return 3;
  }
}

}  // namespace berth::cli
