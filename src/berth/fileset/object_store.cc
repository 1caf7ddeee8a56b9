// Opening the store, and looking after it: sizes, damage, garbage.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "berth/fileset/objects.h"
#include "berth/fileset/seen.h"

namespace berth::fileset {
namespace {

/// Above so many new objects, one sync of the volume costs less than one for each, though it waits
/// for what others have written too.
constexpr std::size_t kSyncsOneByOne = 256;

bool is_executable(std::string_view object) {
  return object.ends_with(".x");
}

/// What the living need, by the directory in work/ that says so: it is read again where it grew.
struct Need {
  std::int64_t size = 0;  // of the text
  std::unordered_set<Digest> objects;
};
using Needs = std::map<std::string, Need>;

/// Of a work whose process is gone.
Status sweep_work(os::Env& env, const std::string& directory) {
  std::string making, place;
  if (const auto left = env.tree(directory, 2 * kMostEntries))
    for (const auto& entry : *left) {
      if (entry.path == kMaking) making = entry.target;
      if (entry.path == kPlace) place = entry.target;
    }
  if (!making.empty()) sweep_making(env, making, place);
  const auto text = env.read_file(directory + std::string(kPublishes), kMostText);
  for (const auto& [made, to] : parse_publishes(text.value_or(""))) sweep_making(env, made, to);
  return remove_all(env, directory);
}

/// What the works of the caller needed when it began, which their texts do not tell so well.
struct Own {
  std::set<std::string> directories;
  std::unordered_set<Digest> objects;
};

/// Brings `needs` up to date, and `sweeps` what the dead left. Under the exclusive lock.
Status look_at_work(os::Env& env, const std::string& store, const Own& own, Needs& needs,
                    bool sweeps = true) {
  BERTH_ASSIGN(const auto names, env.list(store + "/work"));
  Needs present;
  for (const auto& name : names) {
    const std::string directory = store + "/work/" + name;
    if (own.directories.contains(directory)) continue;
    const auto dead = env.lock_existing(directory);
    if (dead) {
      if (sweeps) BERTH_TRY(sweep_work(env, directory));
      continue;
    }
    if (dead.error().kind == ErrorKind::not_found) continue;  // just released
    if (dead.error().kind != ErrorKind::busy) return std::unexpected(dead.error());
    const std::string file = directory + std::string(kNeeds);
    const auto status = env.status(file);
    if (!status && status.error().kind == ErrorKind::not_found) continue;  // needs nothing yet
    if (!status) return std::unexpected(status.error());
    if (const auto known = needs.find(name);
        known != needs.end() && known->second.size == status->size) {
      present[name] = std::move(known->second);
      continue;
    }
    const auto text = env.read_file(file, kMostText);
    if (!text && text.error().kind == ErrorKind::not_found) continue;
    if (!text) return std::unexpected(text.error());
    present[name] = {status->size, parse_needs(*text)};
  }
  needs = std::move(present);
  return {};
}

}  // namespace

Result<ObjectStore> ObjectStore::open(os::Env& env, std::string directory) {
  for (const std::string_view part : {"", "/objects", "/work", "/damaged", "/seen", "/published"})
    BERTH_TRY(env.make_directory(directory + std::string(part), 0700));
  return ObjectStore(env, std::move(directory));
}

/// Shared with the holds that live now: a work costs twenty calls of the system.
Result<Hold> ObjectStore::begin() {
  std::erase_if(works_, [](const auto& work) { return work.expired(); });
  if (!works_.empty())
    if (auto shared = works_.back().lock(); !shared->is_full()) return Hold(std::move(shared));
  BERTH_ASSIGN(Hold work, begin_work(*env_, directory_));
  works_.push_back(work.work());
  return work;
}

Result<Hold> ObjectStore::reserve(const Fileset& fileset) {
  BERTH_ASSIGN(Hold work, begin());
  BERTH_TRY(missing(work, fileset));
  return work;
}

Result<Hold> ObjectStore::hold(const Fileset& fileset) {
  BERTH_ASSIGN(Hold work, begin());
  BERTH_ASSIGN(const auto missing, this->missing(work, fileset));
  if (missing.empty()) return work;
  return fail(ErrorKind::not_found, "object {} of {} is not in the store (any more)",
              to_hex(missing[0].digest), missing[0].path);
}

Result<std::vector<Entry>> ObjectStore::missing(Hold& work, const Fileset& fileset) {
  os::Fd shared;
  if (!kept_lock_) {
    BERTH_ASSIGN(shared, env_->lock_shared(directory_ + "/lock"));
  }
  BERTH_ASSIGN(auto missing, declare_needs(*env_, directory_, work, fileset, fresh_));
  if (keeps_lock_ && shared) kept_lock_ = std::move(shared);
  std::ranges::move(missing.damaged, std::back_inserter(damage_));
  return std::move(missing.entries);
}

Status ObjectStore::make_durable() {
  auto synced = sync_fresh();
  // One that nobody needed has just been collected.
  if (!synced && synced.error().kind == ErrorKind::not_found) synced = sync_fresh();
  BERTH_TRY(synced);
  for (const auto& path : fresh_) {
    const auto status = keep_record(*env_, directory_, path, [&] {
      return seal(*env_, path, is_executable(path), Sealed::durable);
    });
    if (!status && status.error().kind != ErrorKind::not_found) return status;
  }
  fresh_.clear();
  return {};
}

void ObjectStore::adopt(ObjectStore&& other) {
  fresh_.merge(other.fresh_);
  std::ranges::move(other.damage_, std::back_inserter(damage_));
}

Status ObjectStore::sync_fresh() {
  std::erase_if(fresh_, [&](const std::string& path) {
    const auto there = env_->status(path);
    return !there && there.error().kind == ErrorKind::not_found;
  });
  if (fresh_.empty()) return {};
  if (fresh_.size() > kSyncsOneByOne) return env_->sync_volume(directory_);
  Paths folders{directory_ + "/objects"};
  for (const auto& path : fresh_) folders.insert(path.substr(0, path.rfind('/')));
  std::vector<std::string> all(fresh_.begin(), fresh_.end());
  all.insert(all.end(), folders.begin(), folders.end());
  return env_->sync_all(all);
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
  return look_at_work(*env_, directory_, {}, needs);
}

Result<std::vector<Damage>> ObjectStore::verify() {
  std::vector<Damage> damage;
  BERTH_ASSIGN(const auto fans, env_->list(directory_ + "/objects"));
  for (const auto& fan : fans) {
    BERTH_ASSIGN(const auto names, env_->list(fmt::format("{}/objects/{}", directory_, fan)));
    for (const auto& name : names) {
      const auto digest = object_digest(fan, name);
      if (!digest) continue;
      const auto well = verify_object(*env_, directory_, *digest, is_executable(name), fresh_);
      if (well || well.error().kind == ErrorKind::not_found) continue;
      if (well.error().kind != ErrorKind::corrupt) return std::unexpected(well.error());
      damage.push_back({to_hex(*digest), well.error().message});
    }
  }
  BERTH_TRY(make_durable());
  return damage;
}

Result<Usage> ObjectStore::collect(const AddLive& add_live, const Collectable& which) {
  Usage freed;
  Needs needs;
  std::unordered_set<Digest> live;
  Own own;
  for (const auto& each : works_)
    if (const auto work = each.lock()) {
      own.directories.insert(work->directory());
      for (const auto& [object, _] : work->needed()) own.objects.insert(object);
    }
  BERTH_ASSIGN(const auto fans, env_->list(directory_ + "/objects"));
  std::set<std::string> looked_at;  // where there are only some
  if (which.only != nullptr)
    for (const auto& digest : *which.only) looked_at.insert(to_hex(digest).substr(0, 2));
  for (const auto& fan : fans) {
    if (which.only != nullptr && !looked_at.contains(fan)) continue;
    // One of 256 folders at a time, which bounds how long others wait for the lock.
    BERTH_ASSIGN(const os::Fd alone, env_->lock(directory_ + "/lock", true));
    BERTH_TRY(look_at_work(*env_, directory_, own, needs, !which.dry_run));
    BERTH_TRY(add_live(live));
    const std::string folder = fmt::format("{}/objects/{}", directory_, fan);
    BERTH_ASSIGN(const auto names, env_->list(folder));
    for (const auto& name : names) {
      const auto digest = object_digest(fan, name);
      const auto needed = [&](const auto& need) { return need.second.objects.contains(*digest); };
      if (!digest || (which.only != nullptr && !which.only->contains(*digest))) continue;
      if (live.contains(*digest) || own.objects.contains(*digest)) continue;
      if (std::ranges::any_of(needs, needed)) continue;
      const std::string path = fmt::format("{}/{}", folder, name);
      BERTH_ASSIGN(const auto status, env_->status(path));
      if (which.came_before && status.changed >= *which.came_before) continue;
      if (!which.dry_run) BERTH_TRY(env_->remove_file(path));
      ++freed.objects;
      freed.bytes += status.size;
    }
  }
  if (which.dry_run || which.only != nullptr) return freed;
  for (const auto records : {kSeen, kPublished})
    BERTH_TRY(forget_unless(*env_, directory_ + std::string(records), [&](const Digest& digest) {
      return env_->status(object_path(directory_, digest, false)) ||
             env_->status(object_path(directory_, digest, true));
    }));
  return freed;
}

Result<std::string> ObjectStore::content(const Entry& file, std::size_t most) {
  const bool executable = file.kind == Entry::Kind::executable;
  BERTH_ASSIGN(auto bytes, env_->read_file(object_path(directory_, file.digest, executable), most));
  if (sha256(bytes) != file.digest)
    return fail(ErrorKind::corrupt, "object {} contains other bytes than it did",
                to_hex(file.digest));
  return bytes;
}

}  // namespace berth::fileset
