// Where the store keeps what, and the steps that its operations share.
//   objects/ab/cdef…   a content, by its digest; with ".x" behind it where it may be executed
//   work/RANDOM/       of one capture, publish or Hold: locked while that lives; "fileset" names
//                      what it needs, the numbers are copies in the making, and the link "making"
//                      leads to what is made beside a person's files; "place" to where it goes,
//                      while what stood there is aside
//   seen/              what large files of the world, and large objects, were found to hold
//   damaged/           objects that no longer held what they were named after
//   lock               shared by whoever says what it needs, exclusive to whoever removes
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/fileset/fileset.h"

namespace berth::fileset {

inline constexpr std::string_view kSeen = "/seen";
// In a directory of work/.
inline constexpr std::string_view kNeeds = "/fileset";
inline constexpr std::string_view kMaking = "making";
inline constexpr std::string_view kPlace = "place";

inline bool has_object(const Entry& entry) {
  return entry.kind == Entry::Kind::file || entry.kind == Entry::Kind::executable;
}

std::string object_path(const std::string& store, const Digest& digest, bool executable);
/// The digest in such a path's last two names, "ab" and "cdef….x"; nullopt: no object's name.
std::optional<Digest> object_digest(std::string_view fan, std::string_view name);

using os::Content;
/// Of a file as it is now.
Result<Content> read_content(os::Env& env, const std::string& path);

/// Objects are read-only and all of one time: one that is not has been written to. Of another time
/// is what may not be on the disk yet: after a power cut it is believed only when it was read.
enum class Sealed : std::uint8_t { fresh, durable };
Status seal(os::Env& env, const std::string& path, bool executable, Sealed how);

/// Records what an object holds, which is known now: a large one is not read again as long as its
/// inode, size and both its times stay as they are.
void record_object(os::Env& env, const std::string& store, const std::string& path,
                   const Digest& digest);
/// Makes a change to the times or the links of an object, and none to its content: what is recorded
/// of it stays true.
Status keep_record(os::Env& env, const std::string& store, const std::string& path,
                   const std::function<Status()>& change);

/// Whether the object is there and is what it was: it is read, unless what is recorded says that it
/// was not changed since. What is whole but not known to be durable comes into `fresh`.
/// not_found; corrupt: set aside now.
Status check_object(os::Env& env, const std::string& store, const Entry& entry, Paths& fresh);
/// The same by reading it.
Status verify_object(os::Env& env, const std::string& store, const Digest& digest, bool executable,
                     Paths& fresh);

/// What a publish makes beside its place, and takes the old thing to where it cannot exchange them.
std::string in_the_making(os::Env& env, const std::string& to);
/// Removes what a publisher that died has left of it; what it had taken away from `place` comes
/// back, unless that is "".
void sweep_making(os::Env& env, const std::string& making, const std::string& place);

/// A new directory in work/, locked.
Result<Hold> begin_work(os::Env& env, const std::string& store);
/// Says what this work needs, so that collect() leaves it; whether it is there, nobody looks. As
/// long as the result lives, nothing at all is collected.
Result<os::Fd> name_needs(os::Env& env, const std::string& store, const Hold& work,
                          const Fileset& fileset);
/// What of the needs of a work is not there now, each once; `damaged`: the messages of those that
/// were set aside.
struct Missing {
  std::vector<Entry> entries;
  std::vector<std::string> damaged;
};
/// The same, and reads what was not read since it was written.
Result<Missing> declare_needs(os::Env& env, const std::string& store, const Hold& work,
                              const Fileset& fileset, Paths& fresh);

}  // namespace berth::fileset
