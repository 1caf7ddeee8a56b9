#include "berth/machine/ledger/ledger_holders.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/pid_namespace.h"

namespace berth::machine {
namespace {

constexpr std::string_view kHolderBegin = "holder.";

std::string begin_of(const os::ProcessIdentity& holder) {
  return fmt::format("{}{}.{}.", kHolderBegin, holder.pid, holder.started_at);
}

std::optional<os::ProcessIdentity> holder_of(std::string_view name) {
  constexpr std::size_t kParts = 5;
  const auto parts = split(name, '.');
  if (parts.size() != kParts) return std::nullopt;
  const auto pid = parse_integer(parts[1]), started = parse_integer(parts[2]);
  if (!pid || !started) return std::nullopt;
  return os::ProcessIdentity{static_cast<pid_t>(*pid), *started};
}

}  // namespace

Result<os::Fd> lock_as_holder(os::Env& env, const std::string& directory) {
  const std::uint64_t place = pid_namespace(env);
  if (place == 0) return os::Fd();
  const std::string path =
      fmt::format("{}/{}{}.{}", directory, begin_of(env.self()), place, env.user());
  BERTH_ASSIGN(os::Fd lock, env.lock_shared(path));
  // Other users have to be able to see that it is locked.
  BERTH_TRY(env.stamp(path, 0644, env.wall()));
  return lock;
}

const std::vector<std::string>& Holders::names() {
  if (!names_) names_ = env_->list(*directory_).value_or(std::vector<std::string>());
  return *names_;
}

bool Holders::alive(const os::ProcessIdentity& holder) {
  if (env_->alive(holder)) return true;
  const std::string begin = begin_of(holder);
  return std::ranges::any_of(names(), [&](const std::string& name) {
    if (!name.starts_with(begin)) return false;
    const auto lock = env_->lock_existing(*directory_ + "/" + name);
    return !lock && lock.error().kind != ErrorKind::not_found;
  });
}

void Holders::sweep_one() {
  const std::string end = fmt::format(".{}", env_->user());
  std::vector<const std::string*> files;
  for (const auto& name : names())
    if (name.starts_with(kHolderBegin) && name.ends_with(end)) files.push_back(&name);
  if (files.empty()) return;
  const std::string& name = *files[env_->random() % files.size()];
  const auto holder = holder_of(name);
  if (!holder || env_->alive(*holder)) return;
  const std::string path = *directory_ + "/" + name;
  if (const auto unused = env_->lock_existing(path)) (void)env_->remove_file(path);
}

}  // namespace berth::machine
