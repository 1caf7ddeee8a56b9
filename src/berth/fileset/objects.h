// The layout of an object store, and the steps that its operations share.
//   objects/ab/cdef…   a content, by its digest; with ".x" behind it where it may be executed
//   work/RANDOM/       of some captures, publishes and Holds of one process: locked while these
//                      live; "fileset" names what they need, the numbers are copies in the making,
//                      and "publishes" has pairs of what is made beside a person's files and where
//                      it goes (in an older Berth's, the links "making" and "place")
//   seen/              what large files of the world, and large objects, were found to hold
//   published/         the same of large files as publish() left them at people's places
//   damaged/           objects that no longer held what they were named after
//   lock               shared by works that record their needs, exclusive to what removes objects
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/fileset/fileset.h"

namespace berth::fileset {

inline constexpr std::string_view kSeen = "/seen";
inline constexpr std::string_view kPublished = "/published";
// Names in a directory of work/.
inline constexpr std::string_view kNeeds = "/fileset";
inline constexpr std::string_view kPublishes = "/publishes";
inline constexpr std::string_view kMaking = "making";
inline constexpr std::string_view kPlace = "place";

inline bool has_object(const Entry& entry) {
  return entry.kind == Entry::Kind::file || entry.kind == Entry::Kind::executable;
}

std::string object_path(const std::string& store, const Digest& digest, bool executable);
/// The digest in the last two names of such a path, "ab" and "cdef….x"; nullopt: it is no object.
std::optional<Digest> object_digest(std::string_view fan, std::string_view name);

using os::Content;
/// The content of a file as it is now.
Result<Content> read_content(os::Env& env, const std::string& path);

/// The mode of an object, which tasks see of their inputs: what they copy has it, too.
inline constexpr mode_t sealed_mode(bool executable) {
  return executable ? 0555 : 0444;
}
/// Objects are read-only and have one fixed time, so that a write to one shows. An object that may
/// not be durable yet has another time: after a power cut it counts only after it was read.
enum class Sealed : std::uint8_t { fresh, durable };
Status seal(os::Env& env, const std::string& path, bool executable, Sealed how);

/// Records the digest of an object that was just verified: a large object is not read again as long
/// as its inode, size and both times are the same.
void record_object(os::Env& env, const std::string& store, const std::string& path,
                   const Digest& digest);
/// Makes a change to the times or links of an object that leaves its content alone, and keeps its
/// record valid.
Status keep_record(os::Env& env, const std::string& store, const std::string& path,
                   const std::function<Status()>& change);

/// Checks that the object exists and is intact: it is read unless its record shows that it is
/// unchanged. An intact object that may not be durable is added to `fresh`. Errors: not_found;
/// corrupt for a damaged object, which is set aside.
Status check_object(os::Env& env, const std::string& store, const Entry& entry, Paths& fresh);
/// The same, always by reading it.
Status verify_object(os::Env& env, const std::string& store, const Digest& digest, bool executable,
                     Paths& fresh);

/// The temporary path beside `to` that a publish writes, and moves the old target to where the
/// volume cannot exchange.
std::string in_the_making(os::Env& env, const std::string& to);
/// Removes what a publisher that died has left there; an old target that it had moved away from
/// `place` comes back, unless `place` is "".
void sweep_making(os::Env& env, const std::string& making, const std::string& place);

/// A directory in work/, which goes with it. What its text says that it needs is only ever added
/// to.
class Work {
 public:
  Work(os::Env& env, std::string directory, os::Fd lock)
      : env_(&env), directory_(std::move(directory)), lock_(std::move(lock)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work();
  const std::string& directory() const { return directory_; }
  /// For a file of its own in the directory.
  std::int64_t next_number() { return made_++; }
  /// Adds the objects of the fileset to what it needs; under the shared lock of the store.
  Status name(const Fileset& fileset, std::vector<Digest>& named);
  /// What was named is needed no longer by who named it.
  void release(const std::vector<Digest>& named);
  /// What was named and not released, and how often.
  const std::unordered_map<Digest, std::int64_t>& needed() const { return needed_; }
  /// Says what is about to be made and its place, for a sweep after this process has died.
  Status will_make(const std::string& making, const std::string& place);
  /// It needs so much that another one had better be begun.
  bool is_full() const;
  void move_to(os::Env& env);

 private:
  os::Env* env_;
  std::string directory_;
  /// A file that is only ever added to.
  struct Notes {
    os::Fd file;
    std::int64_t size = 0;
  };
  Status add(Notes& notes, std::string_view name, const std::string& text);

  os::Fd lock_;
  Notes needs_, publishes_;
  std::unordered_map<Digest, std::int64_t> needed_;
  std::int64_t named_ = 0;  // objects and publishes
  std::int64_t made_ = 0;
  bool torn_ = false;  // notes may end in a part of one
};

/// The objects that the text of a work's needs names.
std::unordered_set<Digest> parse_needs(std::string_view text);
/// The pairs of will_make(), but for one that a death has cut.
std::vector<std::pair<std::string, std::string>> parse_publishes(std::string_view text);

/// Makes a new directory in work/ and locks it.
Result<Hold> begin_work(os::Env& env, const std::string& store);
/// Records what this work needs, so that collect() keeps it; existence is not checked. As long as
/// the result lives, nothing at all is collected.
Result<os::Fd> name_needs(os::Env& env, const std::string& store, Hold& work,
                          const Fileset& fileset);
/// The objects that a work needs and that do not exist, each once; `damaged`: messages about those
/// that were set aside.
struct Missing {
  std::vector<Entry> entries;
  std::vector<std::string> damaged;
};
/// Records the same under the shared lock of the store, checks the objects, and reads those that
/// were not read since they were written.
Result<Missing> declare_needs(os::Env& env, const std::string& store, Hold& work,
                              const Fileset& fileset, Paths& fresh);

}  // namespace berth::fileset
