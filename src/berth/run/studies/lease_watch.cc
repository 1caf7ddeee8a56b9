#include "berth/run/studies/lease_watch.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;  // bytes

/// Names the boot clock: the boot, and the time namespace, which may shift the clock.
std::string clock_of(os::Env& env) {
  const std::string boot = env.boot_id();
  if (boot.empty() || boot == "unknown") return "";
  const auto shifted = env.link_target("/proc/self/ns/time");
  return boot + (shifted ? "/" + *shifted : "");
}

}  // namespace

LeaseWatch::LeaseWatch(os::Env& env, std::string file)
    : env_(&env), file_(std::move(file)), clock_(clock_of(env)) {
  if (clock_.empty()) file_.clear();
  read();
}

void LeaseWatch::see(const store::TaskRecord& trial) {
  const Mono now = env_->boot_clock();
  const std::int64_t lease = trial.lease.value_or(0);
  ended_.erase(trial.number);
  const auto [at, is_new] = seen_.try_emplace(trial.number);
  Sighting& seen = at->second;
  const bool claimed = is_new || seen.token != trial.token || seen.claimed > now;
  const bool changed = claimed || seen.lease != lease || seen.changed > now;
  if (!changed) return;
  seen = {trial.token, lease, claimed ? now : seen.claimed, now};
  is_new_ = true;
}

Duration LeaseWatch::unchanged(TaskNumber number) const {
  const auto at = seen_.find(number);
  return at == seen_.end() ? Duration(0) : env_->boot_clock() - at->second.changed;
}

Duration LeaseWatch::age(TaskNumber number) const {
  const auto at = seen_.find(number);
  return at == seen_.end() ? Duration(0) : env_->boot_clock() - at->second.claimed;
}

void LeaseWatch::forget(TaskNumber number) {
  if (seen_.erase(number) == 0) return;
  ended_.insert(number);
  is_new_ = true;
}

/// Of two sightings the later claim counts; of the same one the higher lease, seen first.
void LeaseWatch::merge(TaskNumber number, const Sighting& sighting) {
  const auto [at, is_new] = seen_.try_emplace(number, sighting);
  if (is_new) return;
  Sighting& seen = at->second;
  if (seen.token != sighting.token) {
    if (seen.token < sighting.token) seen = sighting;
    return;
  }
  seen.claimed = std::min(seen.claimed, sighting.claimed);
  if (seen.lease < sighting.lease) {
    seen.lease = sighting.lease;
    seen.changed = sighting.changed;
  } else if (seen.lease == sighting.lease) {
    seen.changed = std::min(seen.changed, sighting.changed);
  }
}

void LeaseWatch::read() {
  constexpr std::size_t kFields = 6;
  others_.clear();
  const auto text = file_.empty() ? Result<std::string>("") : env_->read_file(file_, kMostBytes);
  if (!text) return;
  const Mono now = env_->boot_clock();
  for (const auto line : split(*text, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() != kFields) continue;
    if (fields[0] != clock_) {
      (others_ += line) += '\n';
      continue;
    }
    const auto task = parse_integer(fields[1]), token = parse_integer(fields[2]),
               lease = parse_integer(fields[3]), claimed = parse_integer(fields[4]),
               changed = parse_integer(fields[5]);
    if (!task || !token || !lease || !claimed || !changed) continue;
    const Sighting seen{{*token}, *lease, Mono(Duration(*claimed)), Mono(Duration(*changed))};
    if (seen.claimed <= now && seen.changed <= now) merge({*task}, seen);
  }
}

void LeaseWatch::exchange() {
  if (!is_new_ || file_.empty()) return;
  read();
  std::erase_if(seen_, [&](const auto& each) { return ended_.contains(each.first); });
  std::string text = others_;
  for (const auto& [number, seen] : seen_)
    text += fmt::format("{} {} {} {} {} {}\n", clock_, number.value, seen.token.value, seen.lease,
                        seen.claimed.time_since_epoch().count(),
                        seen.changed.time_since_epoch().count());
  const std::string directory = file_.substr(0, file_.rfind('/'));
  if (env_->make_directory(directory, 0700) && env_->replace_file(file_, text, 0600))
    is_new_ = false;
}

}  // namespace berth::run
