// Files into the store.
#include <algorithm>
#include <set>

#include "berth/fileset/objects.h"
#include "berth/fileset/paths.h"
#include "berth/fileset/seen.h"

namespace berth::fileset {
namespace {

/// What changes while it is read is read anew, so often.
constexpr int kReadingsMost = 4;

std::string under(const std::string& root, const std::string& path) {
  return path == "." ? root : root + "/" + path;
}

Result<Entry> entry_of(const std::string& root, os::TreeEntry found) {
  using From = os::TreeEntry::Kind;
  Entry entry{.path = std::move(found.path), .size = found.size, .target = std::move(found.target)};
  const auto refuse = [&](std::string_view because) {
    return fail(ErrorKind::invalid, "{}: {}", under(root, entry.path), because);
  };
  if (found.kind == From::other) return refuse("neither a file, a directory nor a link");
  if (entry.path != "." && !safe_path(entry.path)) return refuse("its path is too long");
  if (found.kind == From::link && !valid_target(entry.target))
    return refuse("the target of the link is too long");
  if (found.kind == From::file)
    entry.kind = found.executable ? Entry::Kind::executable : Entry::Kind::file;
  if (found.kind == From::directory) entry.kind = Entry::Kind::directory;
  if (found.kind == From::link) entry.kind = Entry::Kind::link;
  if (found.kind != From::link) entry.mode = found.mode;
  return entry;
}

/// The fileset of a directory and what was found in it, without digests.
Result<Fileset> list_files(const std::string& root, std::vector<os::TreeEntry> found) {
  Fileset fileset;
  std::set<std::string, std::less<>> filled;  // directories that hold something
  for (const auto& entry : found)
    if (const auto slash = entry.path.rfind('/'); slash != std::string::npos)
      filled.insert(entry.path.substr(0, slash));
  for (auto& each : found) {
    if (each.kind == os::TreeEntry::Kind::directory && filled.contains(each.path)) {
      fileset.folders.push_back({std::move(each.path), each.mode});
      continue;
    }
    BERTH_ASSIGN(Entry entry, entry_of(root, std::move(each)));
    fileset.entries.push_back(std::move(entry));
  }
  if (fileset.entries.empty())
    fileset.entries.push_back({.path = ".", .kind = Entry::Kind::directory});
  std::ranges::sort(fileset.entries, {}, &Entry::path);
  std::ranges::sort(fileset.folders, {}, &Folder::path);
  return fileset;
}

/// The fileset of what stands at `root`, without digests.
Result<Fileset> list_files(os::Env& env, const std::string& root, const os::FileStatus& status) {
  Fileset fileset;
  os::TreeEntry self{
      .path = ".", .size = status.size, .executable = status.executable, .target = {}};
  self.mode = status.mode & kAnyMode;
  if (status.kind == os::FileStatus::Kind::file) self.kind = os::TreeEntry::Kind::file;
  if (status.kind != os::FileStatus::Kind::directory) {
    BERTH_ASSIGN(Entry entry, entry_of(root, std::move(self)));
    fileset.entries.push_back(std::move(entry));
    return fileset;
  }
  BERTH_ASSIGN(auto found, env.tree(root, kMostEntries));
  BERTH_ASSIGN(fileset, list_files(root, std::move(found)));
  if (fileset.entries[0].path == ".")
    fileset.entries[0].mode = status.mode & kAnyMode;
  else
    fileset.folders.push_back({".", status.mode & kAnyMode});
  std::ranges::sort(fileset.folders, {}, &Folder::path);
  return fileset;
}

/// A file that a task copied from an input is read-only because objects are.
void drop_modes_of_inputs(Fileset& fileset, mode_t mask) {
  for (auto& entry : fileset.entries)
    if (has_object(entry) &&
        entry.mode == (sealed_mode(entry.kind == Entry::Kind::executable) & ~mask))
      entry.mode = kAnyMode;
}

bool same_state(const os::FileStatus& a, const os::FileStatus& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size &&
         a.modified == b.modified && a.changed == b.changed;
}

/// It was listed, and is there no more.
bool is_gone(const Status& status, const Entry& entry) {
  return !status && status.error().kind == ErrorKind::not_found && entry.path != ".";
}

void drop(Fileset& fileset, const std::vector<std::string>& gone) {
  std::erase_if(fileset.entries, [&](const Entry& entry) {
    return std::ranges::find(gone, entry.path) != gone.end();
  });
  if (fileset.entries.empty())
    fileset.entries.push_back({.path = ".", .kind = Entry::Kind::directory});
}

Status read_whole(os::Env& env, const std::string& path, Entry& entry) {
  BERTH_ASSIGN(const Content content, read_content(env, path));
  entry.digest = content.digest;
  entry.size = content.size;
  return {};
}

/// A large one only where it may have changed since it was read last.
Status read_entry(os::Env& env, const std::string& seen, const std::string& path, Entry& entry) {
  if (entry.size < kWorthRemembering) return read_whole(env, path, entry);
  const Wall began = env.wall();
  BERTH_ASSIGN(auto before, env.status(path));
  const bool shows_changes = env.shows_changes(path);
  const auto digest = shows_changes ? remembered(env, seen, before) : std::nullopt;
  if (digest) {
    entry.digest = *digest;
    entry.size = before.size;
    return {};
  }
  // A page that was written through a mapping may be written again without a new time, until the
  // page is synced.
  const bool is_worth = shows_changes && is_old(before, began) && env.sync(path);
  BERTH_ASSIGN(before, env.status(path));
  BERTH_TRY(read_whole(env, path, entry));
  if (!is_worth) return {};
  BERTH_ASSIGN(const auto after, env.status(path));
  remember(env, seen, before, after, began, entry.digest);
  return {};
}

/// A copy of a file in the making: its digest is that of the copy, whatever happens to the file.
struct Copy {
  Entry entry;
  std::string path;
};

class Capture {
 public:
  Capture(os::Env& env, const std::string& store, const std::string& root, Expect expect,
          Hold& work, Paths& fresh)
      : env_(env),
        store_(store),
        root_(root),
        expect_(expect),
        work_(*work.work()),
        fresh_(fresh) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    for (const auto& copy : copies_) (void)env_.remove_file(copy.path);
  }

  Status copy(Entry& entry) {
    Copy made{{}, fmt::format("{}/{}", work_.directory(), work_.next_number())};
    if (auto status = copy_to(made.path, entry); !status) {
      (void)env_.remove_file(made.path);
      return status;
    }
    made.entry = entry;
    copies_.push_back(std::move(made));
    return {};
  }

  /// Copies what is missing and was not copied yet, and makes objects of the missing. What has
  /// changed since it was read is what the copy holds now, in `fileset` too. false: there was some,
  /// so others that were thought to hold the same may be missing.
  Result<bool> store(const std::vector<Entry>& missing, Fileset& fileset,
                     std::vector<std::string>& gone) {
    bool as_read = true;
    std::set<std::pair<Digest, Entry::Kind>> wanted;
    const bool copied = !copies_.empty();
    for (const auto& entry : missing) {
      Entry now = entry;
      if (!copied) {
        const auto status = copy(now);
        const bool went = is_gone(status, entry);
        if (went) gone.push_back(entry.path);
        if (!went) BERTH_TRY(status);
        if (now != entry) correct(fileset, now);
        as_read = as_read && !went && now == entry;
      }
      wanted.emplace(now.digest, now.kind);
    }
    std::erase_if(copies_, [&](const Copy& copy) {
      if (wanted.erase({copy.entry.digest, copy.entry.kind}) > 0) return false;
      (void)env_.remove_file(copy.path);
      return true;
    });
    BERTH_TRY(make_objects());
    return as_read;
  }

 private:
  /// A clone is of one moment; any other copy is, where the file is the same before and after.
  Status copy_to(const std::string& to, Entry& entry) {
    const std::string from = under(root_, entry.path);
    for (int nth = 0; nth < kReadingsMost; ++nth) {
      if (nth > 0) BERTH_TRY(env_.remove_file(to));
      BERTH_ASSIGN(const auto before, env_.status(from));
      BERTH_ASSIGN(const auto copied, env_.copy_file(from, to, 0600));
      if (!copied) return read_whole(env_, to, entry);
      entry.digest = copied->digest;
      entry.size = copied->size;
      BERTH_ASSIGN(const auto after, env_.status(from));
      if (same_state(before, after)) return {};
    }
    // Who was to write it has ended; what it left behind may write for ever.
    if (expect_ == Expect::fresh) return {};
    return fail(ErrorKind::stale, "{}: changed each of the {} times that it was read", from,
                kReadingsMost);
  }

  void correct(Fileset& fileset, const Entry& now) {
    *std::ranges::lower_bound(fileset.entries, now.path, {}, &Entry::path) = now;
    if (const auto file = env_.status(under(root_, now.path))) forget(env_, seen(), *file);
  }

  std::string object(const Copy& copy) const {
    return object_path(store_, copy.entry.digest, copy.entry.kind == Entry::Kind::executable);
  }

  std::string seen() const { return store_ + std::string(kSeen); }

  Status make_objects() {
    for (const auto& copy : copies_) {
      const std::string path = object(copy);
      BERTH_TRY(seal(env_, copy.path, copy.entry.kind == Entry::Kind::executable, Sealed::fresh));
      auto moved = env_.rename(copy.path, path);
      if (!moved && moved.error().kind == ErrorKind::not_found) {
        BERTH_TRY(env_.make_directory(path.substr(0, path.rfind('/')), 0700));
        moved = env_.rename(copy.path, path);
      }
      BERTH_TRY(moved);
      record_object(env_, store_, path, copy.entry.digest);
      fresh_.insert(path);
    }
    copies_.clear();
    return {};
  }

  os::Env& env_;
  const std::string& store_;
  const std::string& root_;
  const Expect expect_;
  Work& work_;
  Paths& fresh_;
  std::vector<Copy> copies_;
};

}  // namespace

Result<Captured> ObjectStore::capture(const std::string& path, Fileset fileset, Expect expect,
                                      const Read& read) {
  BERTH_ASSIGN(Hold work, begin());
  Capture capture(*env_, directory_, path, expect, work, fresh_);
  const std::string seen = directory_ + std::string(kSeen);
  std::vector<std::string> gone;
  for (auto& entry : fileset.entries) {
    if (!has_object(entry)) continue;
    const auto got = expect == Expect::fresh
                         ? capture.copy(entry)
                         : read_entry(*env_, seen, under(path, entry.path), entry);
    if (is_gone(got, entry)) {
      gone.push_back(entry.path);
      continue;
    }
    BERTH_TRY(got);
    if (read) read(entry.size);
  }
  for (int nth = 0; nth < kReadingsMost; ++nth) {
    drop(fileset, gone);
    BERTH_ASSIGN(const auto missing, this->missing(work, fileset));
    BERTH_ASSIGN(const bool as_read, capture.store(missing, fileset, gone));
    if (as_read) return Captured{std::move(fileset), std::move(work), std::move(gone)};
  }
  return fail(ErrorKind::stale, "{}: changed each of the {} times that it was read", path,
              kReadingsMost);
}

Result<Fileset> ObjectStore::read(const std::string& path) {
  BERTH_ASSIGN(const auto status, env_->status(path));
  return read(path, status);
}

Result<Fileset> ObjectStore::read(const std::string& path, const os::FileStatus& status,
                                  bool trust_published) {
  BERTH_ASSIGN(Fileset fileset, list_files(*env_, path, status));
  for (auto& entry : fileset.entries) {
    if (!has_object(entry)) continue;
    const std::string file = under(path, entry.path);
    if (trust_published && entry.size >= kWorthRemembering)
      if (const auto now = env_->status(file))
        if (const auto digest = remembered(*env_, directory_ + std::string(kPublished), *now);
            digest && env_->shows_changes(file)) {
          entry.digest = *digest;
          entry.size = now->size;
          continue;
        }
    BERTH_TRY(read_entry(*env_, directory_ + std::string(kSeen), file, entry));
  }
  return fileset;
}

Result<Captured> ObjectStore::capture(const std::string& path, Expect expect) {
  std::string gone;
  for (int nth = 0; nth < kReadingsMost; ++nth) {
    BERTH_ASSIGN(const auto status, env_->status(path));
    BERTH_ASSIGN(Fileset fileset, list_files(*env_, path, status));
    if (expect == Expect::fresh) drop_modes_of_inputs(fileset, env_->mask());
    BERTH_ASSIGN(auto captured, capture(path, std::move(fileset), expect, {}));
    if (captured.gone.empty()) return captured;
    gone = captured.gone.front();  // it may have another name now
  }
  return fail(ErrorKind::stale, "{}/{}: removed before it was read, as were others {} times before",
              path, gone, kReadingsMost - 1);
}

Result<Captured> ObjectStore::capture(const std::string& path, std::vector<os::TreeEntry> found,
                                      const Read& read) {
  BERTH_ASSIGN(Fileset fileset, list_files(path, std::move(found)));
  return capture(path, std::move(fileset), Expect::stored, read);
}

}  // namespace berth::fileset
