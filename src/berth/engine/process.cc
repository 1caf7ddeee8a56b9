#include "berth/engine/process.h"

#include "berth/base/text.h"
#include "berth/os/child_process.h"

namespace berth::engine {

Result<std::string> run_process(os::Env& env, const os::SpawnSpec& spec, const Print& print) {
  BERTH_ASSIGN(const auto status,
               os::run_child(env, spec, [&](os::ChildProcess::Stream, std::string_view text) {
                 print(text);
               }));
  if (status.signal != 0) return fmt::format("ended by signal {}", status.signal);
  return status.code == 0 ? std::string() : fmt::format("exit {}", status.code);
}

}  // namespace berth::engine
