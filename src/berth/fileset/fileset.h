// Files by what they hold. A Fileset lists a file or a directory; an ObjectStore is a directory
// that keeps the contents that filesets name, each once, for all of a user's runs on one machine.
//
// Ownership: an ObjectStore is a path; any number of them, in any number of processes, may be open
// on one directory. A Hold keeps what it names from being collected; its Env outlives it. Threads:
// one for each Env. Failure: a call that fails leaves every object that was there as it was, and
// what it had begun beside them is swept by the next collect(); a publish that fails leaves the
// target as it was. What make_durable() has seen is on the disk for good.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "berth/base/digest.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::fileset {

struct Entry {
  enum class Kind : std::uint8_t { file, executable, directory, link };
  std::string path;  // from the root; "." is the root itself, and then the only entry
  Kind kind = Kind::file;
  Digest digest;          // of a file's content
  std::int64_t size = 0;  // bytes of a file
  std::string target;     // of a symbolic link: leads to no place outside the tree
  bool operator==(const Entry&) const = default;
};

/// A file ("." alone) or a directory: its files, symbolic links and empty directories, sorted
/// bytewise by path. No path lies within another.
struct Fileset {
  std::vector<Entry> entries;
  bool operator==(const Fileset&) const = default;
};

inline constexpr std::size_t kMostEntries = 1'000'000;
inline constexpr std::size_t kMostPath = 4096;        // bytes of one path or target
inline constexpr std::size_t kMostText = 256U << 20;  // bytes of to_text()

/// One line an entry: "f DIGEST SIZE PATH", x where it is executable, "d PATH", "l
/// PATH<tab>TARGET"; a backslash, newline or tab of a path is written \\, \n, \t. The same files
/// give the same text.
std::string to_text(const Fileset& fileset);
/// invalid: not what to_text() gives, with the line; so nothing that it takes leaves the tree.
Result<Fileset> parse_fileset(std::string_view text);
/// Of the text.
Digest digest(const Fileset& fileset);
std::int64_t total_bytes(const Fileset& fileset);

/// What stands at a path of it: a file, a link or a directory with all below, as a fileset of its
/// own. not_found.
Result<Fileset> part(const Fileset& fileset, std::string_view path);
/// Every path of it: the entries and the directories they are in; nothing for "." alone.
std::vector<std::string> paths(const Fileset& fileset);

/// Whether a path matches: * any name or part of one, ? one character, [a-z] and [!a-z] one of
/// these, ** as a whole name any directories or none. A leading dot is matched by a dot only.
bool matches(std::string_view pattern, std::string_view path);
bool is_pattern(std::string_view text);
/// The text as a pattern that only it matches.
std::string literal_pattern(std::string_view text);
/// What is there and matches, sorted bytewise, from `folder` or absolute as the pattern is. Links
/// to directories are not gone into.
Result<std::vector<std::string>> glob(os::Env& env, const std::string& folder,
                                      const std::string& pattern);

/// Keeps objects from being collected, for as long as it lives and its process does.
class Hold {
 public:
  Hold() = default;
  Hold(os::Env& env, std::string directory, os::Fd lock)
      : env_(&env), directory_(std::move(directory)), lock_(std::move(lock)) {}
  Hold(Hold&& other) noexcept { *this = std::move(other); }
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();
  const std::string& directory() const { return directory_; }  // for the store's own use
  /// The same, through another Env.
  Hold in(os::Env& env) && {
    env_ = nullptr;
    return {env, std::move(directory_), std::move(lock_).in(env)};
  }

 private:
  os::Env* env_ = nullptr;
  std::string directory_;
  os::Fd lock_;
};

struct Captured {
  Fileset fileset;
  Hold hold;  // keep it until the fileset is recorded where a collect() learns of it
  std::vector<std::string> gone{};  // files that were listed, and not there to be read any more
};

/// What is captured is mostly stored already (inputs: read, and copied only if new), or mostly new
/// (outputs: copied at once, so read once less).
enum class Expect : std::uint8_t { stored, fresh };

enum class Publish : std::uint8_t {
  links,   // read-only hard links into the store: within directories that only tasks see
  copies,  // shared blocks where the volume can, else copies: where people edit
};

struct Usage {
  std::int64_t objects = 0, bytes = 0;
  std::int64_t damaged = 0;  // set aside
};

struct Damage {
  std::string object;  // its digest
  std::string what;    // "object ab… holds other bytes than it did; it is now …/damaged/…"
};

/// Which of the objects that nobody needs go.
struct Collectable {
  std::optional<Wall> came_before = {};  // others stay
  bool dry_run = false;                  // they are counted, and stay
};

using Paths = std::set<std::string>;

class ObjectStore {
 public:
  /// Makes the directory (the user's alone) where it is missing.
  static Result<ObjectStore> open(os::Env& env, std::string directory);

  const std::string& directory() const { return directory_; }

  /// A file or directory, into the store. A large one that is expected there and has not changed
  /// since it was read last is not read again. invalid, each by its path: a special file, a
  /// symbolic link that is absolute or could lead out of the tree, more than the bounds above;
  /// stale: it changed while it was read, each of some times, by the path of what did.
  Result<Captured> capture(const std::string& path, Expect expect);
  /// Of a directory only what was found in it and is listed, with paths from there, and is not gone
  /// since; a file may be listed where a link to one stands. `read` is told the bytes of each file
  /// once it was read.
  using Read = std::function<void(std::int64_t bytes)>;
  Result<Captured> capture(const std::string& path, std::vector<os::TreeEntry> found,
                           const Read& read);

  /// All that was captured and held so far, by one wait for the disk: to be called before anybody
  /// is told of it.
  Status make_durable();
  /// What another ObjectStore of the same directory captured is made durable with what this one
  /// did.
  void adopt(ObjectStore&& other);

  /// Keeps what is here of it, and what comes while the Hold lives.
  Result<Hold> reserve(const Fileset& fileset);

  /// not_found: an object is missing, or was damaged and is set aside now: as good as never there.
  Result<Hold> hold(const Fileset& fileset);

  /// What this store has set aside since it was asked last, for people: "object ab… holds other
  /// bytes than it did; it is now …/damaged/…".
  std::vector<std::string> take_damage() { return std::exchange(damage_, {}); }

  /// Makes `to`, an absolute path, that file or directory, in place of whatever stands there, by
  /// one rename once all of it is ready (two where the volume has no exchange). Its folder must
  /// exist. Failures as hold(). Copies get the modes that the person's umask leaves, are checked as
  /// they are written, and are not synced.
  Status publish(const Fileset& fileset, const std::string& to, Publish how);

  /// Removes a directory in which something was published as links; those take nothing from what is
  /// known of their objects, which need not be read again.
  Status remove_published(const std::string& directory);

  Result<Usage> usage();
  /// Removes what dead processes left in the making, here and beside the places of what they
  /// published as copies.
  Status sweep();
  /// Reads every object; a damaged one is set aside and named.
  Result<std::vector<Damage>> verify();
  /// Removes the objects that neither `add_live` nor a Hold names, and what dead processes left.
  /// `add_live` is asked again and again, after the Holds were read: it adds what is recorded by
  /// then, so that what a Hold let go of in between is seen by one or the other. What is captured
  /// or published meanwhile is safe. Returns what it freed. Fails as add_live does.
  using AddLive = std::function<Status(std::unordered_set<Digest>& live)>;
  Result<Usage> collect(const AddLive& add_live, const Collectable& which = {});

 private:
  ObjectStore(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}

  Result<Captured> capture(const std::string& path, Fileset fileset, Expect expect,
                           const Read& read);
  Status sync_fresh();
  Result<std::vector<Entry>> missing(const Hold& work, const Fileset& fileset);

  os::Env* env_;
  std::string directory_;
  Paths fresh_;                      // objects that may not be on the disk yet
  std::vector<std::string> damage_;  // not taken yet
};

/// Adds what a fileset names to what collect() keeps.
void add_live(std::unordered_set<Digest>& live, const Fileset& fileset);

/// Removes a file, a symbolic link, or a directory with all below; nothing there is no error.
Status remove_all(os::Env& env, const std::string& path);

}  // namespace berth::fileset
