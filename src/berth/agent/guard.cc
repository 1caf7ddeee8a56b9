#include "berth/agent/guard.h"

#include <algorithm>
#include <array>

#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/os/child_process.h"

namespace berth::agent {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr Duration kLongest = std::chrono::minutes(5);
constexpr Backoff kEndAgain{std::chrono::seconds(1), kLongest};
constexpr Duration kTimeout = std::chrono::hours(24);

Result<bool> succeeds(os::Env& env, const std::vector<std::string>& command) {
  std::optional<bool> good;
  os::Loop loop(env);
  const os::ChildProcess child(
      env, loop, {.argv = command, .environment = env.environment(), .directory = "/"},
      [](auto, auto) {},
      [&](const auto& status) { good = status && status->signal == 0 && status->code == 0; });
  while (!good) BERTH_TRY(loop.turn());
  return *good;
}

}  // namespace

Status stand_guard(os::Env& env, const os::ProcessIdentity& whom,
                   const std::vector<std::string>& command) {
  while (env.alive(whom)) BERTH_TRY(env.wait({}, env.now() + kLook));
  int failures = 0;
  for (const Mono until = env.now() + kTimeout; env.now() < until;) {
    if (succeeds(env, command).value_or(false)) return {};
    BERTH_TRY(env.wait({}, env.now() + kEndAgain.pause(++failures, env.random())));
  }
  return fail(ErrorKind::busy, "{} did not succeed within a day", command.front());
}

machine::Block settle_in(os::Env& env, machine::Block block) {
  const auto bound = env.affinity();
  const std::int64_t cpu = block.resources.get(Known::cpu);
  if (block.cores.empty() && static_cast<std::int64_t>(bound.size()) * 1000 == cpu)
    for (const int core : bound) block.cores.push_back({core, 0, 1000});
  std::vector<std::string> names;
  bool amd = false;
  for (const char* variable : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_JOB_GPUS"}) {
    const auto value = env.variable(variable);
    if (!names.empty() || !value) continue;
    for (const auto name : split(*value, ','))
      if (!trim(name).empty()) names.emplace_back(trim(name));
    amd = std::string_view(variable).starts_with("ROCR");
  }
  for (std::size_t i = 0; i < block.devices.size(); ++i) {
    machine::DeviceShare& device = block.devices[i];
    if (!device.uuid.empty()) continue;
    device.uuid = i < names.size() ? names[i] : fmt::format("{}", device.index);
    if (amd) device.vendor = topology::Vendor::amd;
  }
  return block;
}

}  // namespace berth::agent
