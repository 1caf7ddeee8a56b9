#include "berth/engine/process.h"

#include <array>
#include <csignal>

#include "berth/base/text.h"

namespace berth::engine {

Result<std::string> run_process(os::Env& env, const os::SpawnSpec& spec, const Print& print) {
  BERTH_ASSIGN(os::Child child, env.spawn(spec));
  const int stops = env.stop_signals();
  os::ReadBuffer buffer;
  const auto pass_on = [&](os::Fd& fd) {
    while (fd) {
      const auto got = env.read_some(fd, buffer);
      if (got && !*got) return;
      if (!got || **got == 0) return fd.reset();
      print({buffer.data(), **got});
    }
  };
  for (;;) {
    std::array watches{os::Watch{.fd = child.exited.number()}, os::Watch{.fd = child.out.number()},
                       os::Watch{.fd = child.err.number()}};
    const auto waited = env.wait(watches, std::nullopt);
    pass_on(child.out);
    pass_on(child.err);
    BERTH_ASSIGN(const auto status, env.reap(child));
    if (status && status->signal != 0) return fmt::format("ended by signal {}", status->signal);
    if (status) return status->code == 0 ? std::string() : fmt::format("exit {}", status->code);
    if (waited && env.stop_signals() == stops) continue;
    (void)env.signal_group(child.pid, SIGKILL);
    if (!waited) return std::unexpected(waited.error());
    return fail(ErrorKind::interrupted, "stopped");
  }
}

}  // namespace berth::engine
