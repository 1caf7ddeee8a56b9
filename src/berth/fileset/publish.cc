// Files out of the store.
#include <sys/stat.h>

#include <ranges>
#include <set>
#include <unordered_map>

#include "berth/fileset/objects.h"
#include "berth/fileset/seen.h"

namespace berth::fileset {
namespace {

class Tree {
 public:
  /// `replaces` is what has the place now: the new root gets its access. "": nothing has it.
  Tree(os::Env& env, const std::string& store, std::string root, std::string replaces, Publish how,
       Paths& fresh)
      : env_(env),
        store_(store),
        root_(std::move(root)),
        replaces_(std::move(replaces)),
        how_(how),
        fresh_(fresh),
        mask_(env.mask()) {}

  Status make(const Fileset& fileset) {
    for (const auto& folder : fileset.folders) modes_.emplace(folder.path, folder.mode);
    if (fileset.entries.size() != 1 || fileset.entries[0].path != ".")
      BERTH_TRY(make_directory("."));
    for (const auto& entry : fileset.entries) BERTH_TRY(make(entry));
    // From within: nothing more is made in them.
    for (const auto& [path, mode] : std::views::reverse(closed_)) {
      BERTH_ASSIGN(const auto status, env_.status(path));
      BERTH_TRY(env_.stamp(path, status.mode & (mode | ~kOwner), status.modified));
    }
    return {};
  }

 private:
  static constexpr mode_t kOwner = 0700;

  std::string in_root(const std::string& path) const {
    return path == "." ? root_ : root_ + "/" + path;
  }

  Status make_directory(const std::string& path) {
    if (how_ == Publish::links) return env_.make_directory(in_root(path), kOwner);
    const auto known = modes_.find(path);
    return make_copied_directory(path, known == modes_.end() ? kAnyMode : known->second);
  }

  /// Its owner has to be able to fill it first.
  Status make_copied_directory(const std::string& path, mode_t mode) {
    const std::string to = in_root(path);
    if ((mode & kOwner) != kOwner) closed_.emplace_back(to, mode);
    BERTH_TRY(env_.make_user_directory(to, mode | kOwner));
    return path == "." ? take_access(kAnyMode, mode) : Status();
  }

  /// The root gets the access of what it replaces, but for what `mode` lacks of `full`.
  Status take_access(mode_t full, mode_t mode) {
    if (replaces_.empty()) return {};
    return env_.copy_access(replaces_, root_, full & ~mask_ & ~mode & ~kOwner);
  }

  Status make_parents(const std::string& path) {
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (made_.insert(path.substr(0, slash)).second)
        BERTH_TRY(make_directory(path.substr(0, slash)));
    return {};
  }

  Status make(const Entry& entry) {
    BERTH_TRY(make_parents(entry.path));
    if (entry.kind == Entry::Kind::directory)
      return how_ == Publish::links ? make_directory(entry.path)
                                    : make_copied_directory(entry.path, entry.mode);
    const std::string to = in_root(entry.path);
    if (entry.kind == Entry::Kind::link) return env_.symbolic_link(entry.target, to);
    const bool executable = entry.kind == Entry::Kind::executable;
    const std::string object = object_path(store_, entry.digest, executable);
    if (how_ == Publish::copies) {
      const mode_t full = executable ? 0777U : 0666U;
      BERTH_TRY(copy(entry, object, to, (full & entry.mode) | (executable ? 0100U : 0U)));
      return entry.path == "." ? take_access(full, entry.mode) : Status();
    }
    // Of a private file a copy, so that what a task copies from it is private, too.
    constexpr mode_t kOthersRead = 0044;
    if ((kOthersRead & ~mask_ & ~entry.mode) != 0)
      return copy(entry, object, to, executable ? 0500 : 0400);
    if (keep_record(env_, store_, object, [&] { return env_.hard_link(object, to); })) return {};
    // Another volume, or more links to one content than the volume counts: a copy does as well.
    return copy(entry, object, to, sealed_mode(executable));
  }

  Status copy(const Entry& entry, const std::string& object, const std::string& to, mode_t mode) {
    BERTH_ASSIGN(const auto copied, env_.copy_file(object, to, mode));
    if (!copied || copied->digest == entry.digest) return {};
    const bool executable = entry.kind == Entry::Kind::executable;
    BERTH_TRY(verify_object(env_, store_, entry.digest, executable, fresh_));
    return fail(ErrorKind::io, "{}: read as other bytes than it contains", object);
  }

  os::Env& env_;
  const std::string& store_;
  const std::string root_, replaces_;
  const Publish how_;
  Paths& fresh_;
  const mode_t mask_;
  std::unordered_map<std::string_view, mode_t> modes_;    // of the fileset's folders
  std::vector<std::pair<std::string, mode_t>> closed_{};  // that their owner may not fill
  std::set<std::string> made_;                            // directories
};

constexpr std::string_view kInTheMaking = ".berth";
constexpr std::string_view kOld = ".old";

/// Puts `ready` in the place of whatever stands at `to`; that is then removed.
Status put_in_place(os::Env& env, const Hold& work, const std::string& ready, const std::string& to,
                    Publish how) {
  const auto renamed = env.rename(ready, to);
  if (renamed) return renamed;
  if (env.exchange(ready, to)) return remove_all(env, ready);
  // No exchange on this volume: the old one steps aside first, and back if the new one cannot come.
  const std::string old = ready + std::string(kOld);
  if (how == Publish::links) BERTH_TRY(work.work()->will_make(ready, to));  // copies have said it
  if (!env.rename(to, old)) return renamed;
  if (const auto status = env.rename(ready, to); !status) {
    (void)env.rename(old, to);
    return status;
  }
  return remove_all(env, old);
}

bool is_one_file(const Fileset& fileset) {
  return fileset.entries[0].path == "." && has_object(fileset.entries[0]);
}

/// Records what the large files at a place hold, so that they need not be read to see whether
/// somebody edited them.
void remember_published(os::Env& env, const std::string& store, const Fileset& fileset,
                        const std::string& place) {
  for (const auto& entry : fileset.entries) {
    if (!has_object(entry) || entry.size < kWorthRemembering) continue;
    const auto status = env.status(entry.path == "." ? place : place + "/" + entry.path);
    if (status)
      remember(env, store + std::string(kPublished), *status, *status, env.wall(), entry.digest,
               Duration(0));
  }
}

/// Of a large object; nothing else is touched.
void remove_link(os::Env& env, const std::string& store, const std::string& link) {
  const auto status = env.status(link);
  const auto digest = status ? remembered(env, store + std::string(kSeen), *status) : std::nullopt;
  if (!digest) return;
  const std::string object = object_path(store, *digest, (status->mode & S_IXUSR) != 0);
  const auto stored = env.status(object);
  if (stored && stored->device == status->device && stored->inode == status->inode)
    (void)keep_record(env, store, object, [&] { return env.remove_file(link); });
}

}  // namespace

std::string in_the_making(os::Env& env, const std::string& to) {
  const auto slash = to.rfind('/') + 1;  // 0 where there is none
  return fmt::format("{}.{:016x}{}", to.substr(0, slash), env.random(), kInTheMaking);
}

void sweep_making(os::Env& env, const std::string& making, const std::string& place) {
  const auto name = making.rfind('/') + 1;
  if (!making.ends_with(kInTheMaking) || making[name] != '.') return;  // none of ours
  const std::string old = making + std::string(kOld);
  if (!place.empty() && env.status(old) && !env.status(place)) (void)env.rename(old, place);
  (void)remove_all(env, old);
  (void)remove_all(env, making);
}

Status ObjectStore::publish(const Fileset& fileset, const std::string& to, Publish how) {
  BERTH_ASSIGN(const Hold held, hold(fileset));
  // Beside its place, for a rename does not leave the volume; hidden from most globs.
  const std::string ready = in_the_making(*env_, to);
  if (how == Publish::copies) BERTH_TRY(held.work()->will_make(ready, to));
  const auto there = env_->status(to);
  const bool is_directory = there && there->kind == os::FileStatus::Kind::directory;
  const bool replaces = how == Publish::copies && there && is_directory != is_one_file(fileset);
  auto status =
      Tree(*env_, directory_, ready, replaces ? to : std::string(), how, fresh_).make(fileset);
  const auto place = [&] { return put_in_place(*env_, held, ready, to, how); };
  const Entry& first = fileset.entries[0];
  if (status && how == Publish::links && is_one_file(fileset))
    status = keep_record(
        *env_, directory_,
        object_path(directory_, first.digest, first.kind == Entry::Kind::executable), place);
  else if (status)
    status = place();
  if (status && how == Publish::copies) remember_published(*env_, directory_, fileset, to);
  if (status) return status;
  (void)remove_all(*env_, ready);
  if (status.error().kind != ErrorKind::corrupt) return status;
  damage_.push_back(status.error().message);
  return fail(ErrorKind::not_found, "{}", status.error().message);
}

Status ObjectStore::remove_published(const std::string& directory) {
  if (const auto files = env_->tree(directory, kMostEntries))
    for (const auto& file : *files)
      if (file.size >= kWorthRemembering)
        remove_link(*env_, directory_, fmt::format("{}/{}", directory, file.path));
  return remove_all(*env_, directory);
}

}  // namespace berth::fileset
