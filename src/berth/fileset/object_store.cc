// Opening the store, and looking after it: sizes, damage, garbage.
#include <algorithm>
#include <map>

#include "berth/fileset/objects.h"

namespace berth::fileset {
namespace {

/// What the living need, by the directory in work/ that says so; those are read once.
using Needs = std::map<std::string, std::unordered_set<Digest>>;

/// Brings `needs` up to date and sweeps what the dead left. Under the exclusive lock.
Status look_at_work(os::Env& env, const std::string& store, Needs& needs) {
  BERTH_ASSIGN(const auto names, env.list(store + "/work"));
  Needs present;
  for (const auto& name : names) {
    const std::string directory = store + "/work/" + name;
    const auto dead = env.lock(directory, false);
    if (dead) {
      BERTH_TRY(remove_all(env, directory));
      continue;
    }
    if (dead.error().kind == ErrorKind::not_found) continue;  // just released
    if (dead.error().kind != ErrorKind::busy) return std::unexpected(dead.error());
    if (const auto known = needs.find(name); known != needs.end() && !known->second.empty()) {
      present[name] = std::move(known->second);
      continue;
    }
    const auto text = env.read_file(directory + std::string(kNeeds), kMostText);
    if (!text && text.error().kind == ErrorKind::not_found) continue;  // needs nothing yet
    if (!text) return std::unexpected(text.error());
    BERTH_ASSIGN(const Fileset fileset, parse_fileset(*text));
    add_live(present[name], fileset);
  }
  needs = std::move(present);
  return {};
}

}  // namespace

Hold& Hold::operator=(Hold&& other) noexcept {
  std::swap(env_, other.env_);
  directory_.swap(other.directory_);
  std::swap(lock_, other.lock_);
  return *this;
}

Hold::~Hold() {
  // What cannot be removed is swept by the next collect().
  if (env_ != nullptr) (void)remove_all(*env_, directory_);
}

Result<ObjectStore> ObjectStore::open(os::Env& env, std::string directory) {
  for (const std::string_view part : {"", "/objects", "/work", "/damaged"})
    BERTH_TRY(env.make_directory(directory + std::string(part), 0700));
  return ObjectStore(env, std::move(directory));
}

Result<Hold> ObjectStore::hold(const Fileset& fileset) {
  BERTH_ASSIGN(Hold work, begin_work(*env_, directory_));
  std::vector<Entry> missing;
  BERTH_TRY(declare_needs(*env_, directory_, work, fileset, missing));
  if (missing.empty()) return work;
  return fail(ErrorKind::not_found, "object {} of {} is not in the store (any more)",
              to_hex(missing[0].digest), missing[0].path);
}

Result<Usage> ObjectStore::usage() {
  Usage usage;
  BERTH_ASSIGN(const auto fans, env_->list(directory_ + "/objects"));
  for (const auto& fan : fans) {
    BERTH_ASSIGN(const auto names, env_->list(fmt::format("{}/objects/{}", directory_, fan)));
    for (const auto& name : names) {
      const auto status = env_->status(fmt::format("{}/objects/{}/{}", directory_, fan, name));
      if (!status) continue;  // just collected
      ++usage.objects;
      usage.bytes += status->size;
    }
  }
  BERTH_ASSIGN(const auto damaged, env_->list(directory_ + "/damaged"));
  usage.damaged = static_cast<std::int64_t>(damaged.size());
  return usage;
}

Status ObjectStore::sweep() {
  BERTH_ASSIGN(const os::Fd alone, env_->lock(directory_ + "/lock", true));
  Needs needs;
  return look_at_work(*env_, directory_, needs);
}

Result<std::vector<Damage>> ObjectStore::verify() {
  std::vector<Damage> damage;
  BERTH_ASSIGN(const auto fans, env_->list(directory_ + "/objects"));
  for (const auto& fan : fans) {
    BERTH_ASSIGN(const auto names, env_->list(fmt::format("{}/objects/{}", directory_, fan)));
    for (const auto& name : names) {
      const auto digest = object_digest(fan, name);
      if (!digest) continue;
      const auto well = verify_object(*env_, directory_, *digest, name.ends_with(".x"));
      if (well || well.error().kind == ErrorKind::not_found) continue;
      if (well.error().kind != ErrorKind::corrupt) return std::unexpected(well.error());
      damage.push_back({to_hex(*digest), well.error().message});
    }
  }
  return damage;
}

Result<Usage> ObjectStore::collect(const AddLive& add_live) {
  Usage freed;
  Needs needs;
  std::unordered_set<Digest> live;
  BERTH_ASSIGN(const auto fans, env_->list(directory_ + "/objects"));
  for (const auto& fan : fans) {
    // A 256th at a time: whoever waits for the lock waits for that long.
    BERTH_ASSIGN(const os::Fd alone, env_->lock(directory_ + "/lock", true));
    BERTH_TRY(look_at_work(*env_, directory_, needs));
    BERTH_TRY(add_live(live));
    const std::string folder = fmt::format("{}/objects/{}", directory_, fan);
    BERTH_ASSIGN(const auto names, env_->list(folder));
    for (const auto& name : names) {
      const auto digest = object_digest(fan, name);
      const auto needed = [&](const auto& need) { return need.second.contains(*digest); };
      if (!digest || live.contains(*digest) || std::ranges::any_of(needs, needed)) continue;
      const std::string path = fmt::format("{}/{}", folder, name);
      BERTH_ASSIGN(const auto status, env_->status(path));
      BERTH_TRY(env_->remove_file(path));
      ++freed.objects;
      freed.bytes += status.size;
    }
  }
  return freed;
}

}  // namespace berth::fileset
