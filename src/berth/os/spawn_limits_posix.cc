#include "berth/os/spawn_limits_posix.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "berth/base/units.h"

namespace berth::os {

std::size_t most_of_one_argument() {
  constexpr std::size_t kPages = 32;  // MAX_ARG_STRLEN of Linux
  return kPages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t most_of_all_arguments() {
  constexpr std::size_t kLeast = 128 * 1024, kMost = 6 * 1024 * 1024;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0) return kLeast;
  const auto quarter = stack.rlim_cur == RLIM_INFINITY ? kMost : std::size_t{stack.rlim_cur / 4};
  return std::clamp(quarter, kLeast, kMost);
}

std::string why_no_program(Env& env, const std::string& path) {
  constexpr std::size_t kBegin = 256;
  const auto file = env.open_read(path);
  const auto begin = file ? env.read_at(*file, 0, kBegin) : std::unexpected(file.error());
  if (!begin) return "";  // it may be run and not read: the shell says so
  if (begin->empty()) return "the file is empty";
  if (begin->starts_with("\x7f"
                         "ELF"))
    return "the program was built for another kind of machine (processor or word size)";
  // As bash has it: the first line of a script has no NUL.
  if (begin->substr(0, begin->find('\n')).find('\0') != std::string::npos)
    return "it is neither a program of this machine nor a script";
  return {};
}

Error too_long(const SpawnSpec& spec) {
  std::size_t words = 0, variables = 0, longest = 0;
  std::string what;
  const auto consider = [&](std::size_t size, std::string name) {
    if (size <= longest) return;
    longest = size;
    what = std::move(name);
  };
  for (std::size_t i = 0; i < spec.argv.size(); ++i) {
    words += spec.argv[i].size() + 1 + sizeof(char*);
    consider(spec.argv[i].size() + 1, fmt::format("argument {}", i));
  }
  for (const auto& [name, value] : spec.environment) {
    const auto size = name.size() + value.size() + 2;
    variables += size + sizeof(char*);
    consider(size, "the variable " + name);
  }
  const auto bytes = [](std::size_t size) { return format_bytes(static_cast<std::int64_t>(size)); };
  const std::string& program = spec.argv.front();
  if (longest > most_of_one_argument())
    return Error{
        ErrorKind::invalid,
        fmt::format("{}: {} has {}, and Linux takes at most {} in one argument or variable; "
                    "give long values in a file",
                    program, what, bytes(longest), bytes(most_of_one_argument()))};
  return Error{ErrorKind::invalid,
               fmt::format("{}: the arguments have {} and the environment {}, more than a process "
                           "can be started with (a quarter of the stack limit, at most 6 MiB); "
                           "give long lists in a file, or use a script that reads them",
                           program, bytes(words), bytes(variables))};
}

}  // namespace berth::os
