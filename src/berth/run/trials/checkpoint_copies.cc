#include "berth/run/trials/checkpoint_copies.h"

#include <utility>

#include "berth/os/failpoint.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostEntries = 1'000'000;

Result<bool> exists(os::Env& env, const std::string& path) {
  const auto status = env.status(path);
  if (status) return true;
  if (status.error().kind == ErrorKind::not_found) return false;
  return std::unexpected(status.error());
}

}  // namespace

Status copy_directory(os::Env& env, const std::string& from, const std::string& to) {
  const std::string partial = to + ".partial";
  BERTH_TRY(env.remove_tree(partial));
  BERTH_TRY(env.make_directory(partial, 0700));
  std::vector<std::string> made{partial};
  BERTH_ASSIGN(const auto entries, env.tree(from, kMostEntries));
  for (const auto& [path, kind, size, executable, mode, target] : entries) {
    const std::string there = partial + "/" + path;
    switch (kind) {
      case os::TreeEntry::Kind::directory: BERTH_TRY(env.make_directory(there, 0700)); break;
      case os::TreeEntry::Kind::link: BERTH_TRY(env.symbolic_link(target, there)); continue;
      case os::TreeEntry::Kind::file:
        BERTH_TRY(env.copy_file(from + "/" + path, there, executable ? 0700 : 0600));
        break;
      case os::TreeEntry::Kind::other: continue;
    }
    made.push_back(there);
  }
  BERTH_TRY(env.sync_all(made));
  BERTH_TRY(env.rename(partial, to));
  return env.sync(to.substr(0, to.rfind('/')));
}

Result<bool> CheckpointCopies::there(const std::string& from, const std::string& to) {
  BERTH_TRY(std::exchange(failed_, {}));
  if (copying_.contains(to)) return false;
  BERTH_ASSIGN(const bool made, exists(env_, to));
  if (made) return true;
  BERTH_TRY(threads_.start("copying the checkpoint " + from,
                           [this, from, to](os::Env& there) -> std::move_only_function<void()> {
                             return [this, to, copied = copy_directory(there, from, to)] {
                               os::failpoint("checkpoint copied");
                               copying_.erase(to);
                               if (!copied) failed_ = copied;
                             };
                           }));
  copying_.insert(to);
  return false;
}

void CheckpointCopies::remove(const std::string& path) {
  // A thread that cannot be had leaves it there until the run is removed.
  (void)threads_.start("removing the checkpoint " + path, [path](os::Env& there) {
    (void)there.remove_tree(path);
    return [] {};
  });
}

}  // namespace berth::run
