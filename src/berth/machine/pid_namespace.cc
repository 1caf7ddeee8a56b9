#include "berth/machine/pid_namespace.h"

#include "berth/base/units.h"

namespace berth::machine {

std::uint64_t pid_namespace(os::Env& env) {
  constexpr std::string_view kBegin = "pid:[";
  const auto link = env.link_target("/proc/self/ns/pid");
  if (!link || !link->starts_with(kBegin) || !link->ends_with(']')) return 0;
  const auto inode = parse_integer(
      std::string_view(*link).substr(kBegin.size(), link->size() - kBegin.size() - 1));
  return inode && *inode > 0 ? static_cast<std::uint64_t>(*inode) : 0;
}

std::uint64_t container_namespace(os::Env& env) {
  constexpr std::uint64_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
  const std::uint64_t inode = pid_namespace(env);
  return inode == kFirst ? 0 : inode;
}

}  // namespace berth::machine
