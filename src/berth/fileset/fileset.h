// Content-addressed files. A Fileset lists a file or a directory with the digests of its contents;
// an ObjectStore is a directory that holds the contents that filesets name, each once, for all of a
// user's runs on one machine.
//
// Ownership: an ObjectStore is a path; any number of them, in any number of processes, may be open
// on one directory. A Hold keeps the objects that it names from being collected; its Env must
// outlive it. Threads: one for each Env. A call that fails leaves every existing object as it was,
// and the next collect() removes what it had begun; a publish that fails leaves the target as it
// was. What make_durable() has covered survives a power cut.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "berth/base/digest.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::fileset {

/// The mode of what was not captured from a directory: the umask alone limits it.
inline constexpr mode_t kAnyMode = 0777;

struct Entry {
  enum class Kind : std::uint8_t { file, executable, directory, link };
  std::string path;  // relative to the root; "." is the root itself, and then the only entry
  Kind kind = Kind::file;
  Digest digest{};         // digest of a file's content
  std::int64_t size = 0;   // bytes of a file
  std::string target{};    // target of a symbolic link, as it is written; it is never followed
  mode_t mode = kAnyMode;  // permission bits of a file or empty directory when it was captured
  /// Compares contents, not modes.
  bool operator==(const Entry& other) const {
    return path == other.path && kind == other.kind && digest == other.digest &&
           size == other.size && target == other.target;
  }
};

/// A directory that holds something, and its permission bits.
struct Folder {
  std::string path;  // "." for the root
  mode_t mode = kAnyMode;
};

/// The contents of a file ("." alone) or of a directory: its files, symbolic links and empty
/// directories, sorted bytewise by path. No path lies within another.
struct Fileset {
  std::vector<Entry> entries;
  std::vector<Folder> folders{};  // sorted by path; those that are missing here have any mode
  /// Compares contents, not modes.
  bool operator==(const Fileset& other) const { return entries == other.entries; }
};

inline constexpr std::size_t kMostEntries = 1'000'000;
inline constexpr std::size_t kMostPath = 4096;        // bytes of one path or target
inline constexpr std::size_t kMostText = 256U << 20;  // bytes of to_text()

/// The text of a fileset, one line an entry: "f644 DIGEST SIZE PATH" (x for an executable), "d755
/// PATH", "l PATH<tab>TARGET", and after them "D755 PATH" for each of the folders; "f DIGEST…"
/// where the mode is kAnyMode. A backslash, newline or tab of a path is written \\, \n, \t.
std::string to_text(const Fileset& fileset);
/// Errors: invalid, with the line, unless to_text() could have written it; so no path leaves the
/// tree.
Result<Fileset> parse_fileset(std::string_view text);
/// The digest of the text without modes: the same files give the same digest.
Digest digest(const Fileset& fileset);
std::int64_t total_bytes(const Fileset& fileset);

/// The file, link or directory at a path of the fileset, as a fileset of its own. Errors:
/// not_found.
Result<Fileset> part(const Fileset& fileset, std::string_view path);
/// Every path of the fileset: its entries and the directories that they are in; nothing for "."
/// alone.
std::vector<std::string> paths(const Fileset& fileset);

/// Whether a path matches: * any name or part of one, ? one character, [a-z] and [!a-z] one of
/// these, ** as a whole name any directories or none. A leading dot is matched by a dot only.
bool matches(std::string_view pattern, std::string_view path);
bool is_pattern(std::string_view text);
/// A pattern that only this text matches.
std::string literal_pattern(std::string_view text);
/// The existing paths that match, sorted bytewise, relative to `folder` or absolute as the pattern
/// is. Links to directories are not followed.
Result<std::vector<std::string>> glob(os::Env& env, const std::string& folder,
                                      const std::string& pattern);

class Work;

/// Keeps objects from being collected as long as it and its process live. To collectors elsewhere,
/// holds of one store that live at the same time may keep each other's objects.
class Hold {
 public:
  Hold() = default;
  explicit Hold(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  Hold(Hold&& other) noexcept { *this = std::move(other); }
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();
  /// The same hold through another Env; all holds of a store go there together, after it.
  Hold in(os::Env& env) &&;

  // For the store's use.
  const std::shared_ptr<Work>& work() const { return work_; }
  Status name(const Fileset& fileset);

 private:
  std::shared_ptr<Work> work_;
  std::vector<Digest> named_;  // in the work
};

struct Captured {
  Fileset fileset;
  Hold hold;                        // keep it until the fileset is recorded where collect() sees it
  std::vector<std::string> gone{};  // listed files that no longer existed when they were read
};

/// Whether a capture mostly finds stored contents (inputs: they are read, and copied only if new)
/// or mostly new ones (outputs: they are copied at once, which saves one reading).
enum class Expect : std::uint8_t { stored, fresh };

enum class Publish : std::uint8_t {
  links,   // read-only hard links into the store, for directories that only tasks see
  copies,  // reflinks where the volume can, else copies, for places where people edit
};

struct Usage {
  std::int64_t objects = 0, bytes = 0;
  std::int64_t damaged = 0;  // objects set aside
};

struct Damage {
  std::string object;  // the digest of the object
  std::string what;    // "object ab… holds other bytes than it did; it is now …/damaged/…"
};

/// Which of the objects that nothing needs are removed.
struct Collectable {
  std::optional<Wall> came_before = {};              // newer objects stay
  bool dry_run = false;                              // they are counted, not removed
  const std::unordered_set<Digest>* only = nullptr;  // no others are looked at
};

using Paths = std::set<std::string>;

class ObjectStore {
 public:
  /// Creates the directory, accessible to the user alone, if it is missing.
  static Result<ObjectStore> open(os::Env& env, std::string directory);

  const std::string& directory() const { return directory_; }

  /// Captures a file or directory into the store. With Expect::stored a large file that has not
  /// changed since it was last read is not read again. Errors, with the path: invalid for a special
  /// file, or more than the bounds above; stale if something changed during each of several
  /// readings.
  Result<Captured> capture(const std::string& path, Expect expect);
  /// Captures only the listed entries of a directory, by paths relative to it, that still exist; a
  /// link to a file may be listed as a file. `read` is called with the bytes of each file that was
  /// read.
  using Read = std::function<void(std::int64_t bytes)>;
  Result<Captured> capture(const std::string& path, std::vector<os::TreeEntry> found,
                           const Read& read);

  /// The fileset of what stands there now, of which nothing is stored. Errors: as capture(), but
  /// for stale.
  Result<Fileset> read(const std::string& path);
  /// The same, where its status is known already. With `trust_published` a large file that
  /// publish() put there is not read again as long as its inode, size and times are the same; an
  /// edit within some milliseconds after the publish may go unnoticed.
  Result<Fileset> read(const std::string& path, const os::FileStatus& status,
                       bool trust_published = false);

  /// Makes everything captured and held so far durable, with one wait for the disk. Call it before
  /// anything refers to these objects.
  Status make_durable();
  /// Takes over what another ObjectStore of the same directory captured, for make_durable().
  void adopt(ObjectStore&& other);

  /// What a file of a fileset holds. Errors: not_found; corrupt: other bytes than that; invalid:
  /// more than `most`.
  Result<std::string> content(const Entry& file, std::size_t most);

  /// Holds the objects of the fileset, those that exist and those that arrive while the Hold lives.
  Result<Hold> reserve(const Fileset& fileset);

  /// Holds the objects of the fileset. Errors: not_found if one is missing, or was damaged and is
  /// set aside.
  Result<Hold> hold(const Fileset& fileset);

  /// The lock that the next hold takes stays for those behind it, which cost less then, until
  /// release_lock(). Meanwhile nobody can collect anything: wait for nothing slow.
  void keep_lock() { keeps_lock_ = true; }
  void release_lock() {
    keeps_lock_ = false;
    kept_lock_.reset();
  }

  /// Messages for people about the objects set aside since the last call: "object ab… holds other
  /// bytes than it did; it is now …/damaged/…".
  std::vector<std::string> take_damage() { return std::exchange(damage_, {}); }

  /// Replaces `to`, an absolute path whose folder exists, by that file or directory, with one
  /// rename once all of it is ready (two where the volume cannot exchange). Copies get the modes
  /// that cp would give them: those of the fileset, limited by the umask or the default access
  /// control list of the folder; what replaces a file or directory keeps the group, mode and lists
  /// of that, without what the fileset's modes deny. Copies are checked as they are written, and
  /// are not synced. Errors: as hold().
  Status publish(const Fileset& fileset, const std::string& to, Publish how);

  /// Removes a directory with published links, so that their objects need not be read again
  /// although their times change.
  Status remove_published(const std::string& directory);

  Result<Usage> usage();
  /// Removes unfinished work of dead processes, in the store and beside the targets of their
  /// copies.
  Status sweep();
  /// Reads every object; damaged ones are set aside and returned.
  Result<std::vector<Damage>> verify();
  /// Removes the objects that neither `add_live` nor a Hold names, and unfinished work of dead
  /// processes. `add_live` is called repeatedly, after the Holds were read, and adds what is
  /// recorded by then: what a Hold releases in between is seen by one or the other. What is
  /// captured or published meanwhile is safe. Returns what was freed. Errors: those of add_live.
  using AddLive = std::function<Status(std::unordered_set<Digest>& live)>;
  Result<Usage> collect(const AddLive& add_live, const Collectable& which = {});

 private:
  ObjectStore(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}

  Result<Captured> capture(const std::string& path, Fileset fileset, Expect expect,
                           const Read& read);
  Status sync_fresh();
  Result<Hold> begin();
  Result<std::vector<Entry>> missing(Hold& work, const Fileset& fileset);

  os::Env* env_;
  std::string directory_;
  Paths fresh_;                             // objects that may not be durable yet
  std::vector<std::string> damage_;         // not taken yet
  std::vector<std::weak_ptr<Work>> works_;  // of its holds; the last may take more
  bool keeps_lock_ = false;
  os::Fd kept_lock_;
};

/// Adds the objects of a fileset to those that collect() keeps.
void add_live(std::unordered_set<Digest>& live, const Fileset& fileset);

/// Removes a file, a symbolic link, or a directory with everything below it; a missing path is no
/// error.
Status remove_all(os::Env& env, const std::string& path);

}  // namespace berth::fileset
