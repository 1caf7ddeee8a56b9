#include "berth/run/state/exclusive.h"

#include "berth/fileset/fileset.h"
#include "berth/os/loop.h"
#include "berth/run/state/layout.h"

namespace berth::run {
namespace {

constexpr Duration kExitsWithin = std::chrono::seconds(2);
constexpr Duration kPause = std::chrono::milliseconds(5);

/// A killed runner keeps its lock until its last thread has returned from the kernel.
Result<os::Fd> lock_run(os::Env& env, const store::RunRecord& record, const std::string& file) {
  const os::ProcessIdentity earlier{static_cast<pid_t>(record.runner_pid),
                                    record.runner_started_at};
  for (const Mono until = env.now() + kExitsWithin;;) {
    auto lock = env.lock(file, false);
    if (lock || lock.error().kind != ErrorKind::busy) return lock;
    const bool is_exiting = record.runner_pid > 0 && !env.alive(earlier);
    if (!is_exiting || env.now() >= until)
      return fail(ErrorKind::busy,
                  "{} is running already, under process {}; to stop it: berth stop {}", record.name,
                  record.runner_pid, record.name);
    BERTH_TRY(env.loop().turn(env.now() + kPause));
  }
}

}  // namespace

Result<Exclusive> take_run(Context& context, const std::string& run_name) {
  BERTH_ASSIGN(const auto before, context.store->find_run(run_name));
  const std::string directory = run_directory(context, before.name);
  BERTH_TRY(context.env->make_directory(directory, 0700));
  BERTH_ASSIGN(auto lock, lock_run(*context.env, before, lock_file(directory)));
  auto claim = store::claim(*context.store, before.id);
  if (!claim && claim.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy,
                "{} is running already, on another machine; stop it on that machine first",
                before.name);
  if (!claim) return std::unexpected(claim.error());
  auto now = context.store->find_run(before.name);
  if (!now) {
    if (now.error().kind == ErrorKind::not_found)  // removed a moment ago, with its directory
      BERTH_TRY(fileset::remove_all(*context.env, directory));
    return std::unexpected(now.error());
  }
  return Exclusive{*std::move(now), std::move(lock), *std::move(claim)};
}

}  // namespace berth::run
