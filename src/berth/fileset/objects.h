// Where the store keeps what, and the steps that its operations share.
//   objects/ab/cdef…   a content, by its digest; with ".x" behind it where it may be executed
//   work/RANDOM/       of one capture, publish or Hold: locked while that lives; "fileset" names
//                      what it needs, the numbers are copies in the making, and the link "making"
//                      leads to what is made beside a person's files
//   seen/              what large files of the world were found to hold
//   damaged/           objects that no longer held what they were named after
//   lock               shared by whoever says what it needs, exclusive to whoever removes
#pragma once

#include <optional>
#include <string>

#include "berth/fileset/fileset.h"

namespace berth::fileset {

inline constexpr std::string_view kSeen = "/seen";
// In a directory of work/.
inline constexpr std::string_view kNeeds = "/fileset";
inline constexpr std::string_view kMaking = "making";

inline bool has_object(const Entry& entry) {
  return entry.kind == Entry::Kind::file || entry.kind == Entry::Kind::executable;
}

std::string object_path(const std::string& store, const Digest& digest, bool executable);
/// The digest in such a path's last two names, "ab" and "cdef….x"; nullopt: no object's name.
std::optional<Digest> object_digest(std::string_view fan, std::string_view name);

/// Of a file as it is now.
struct Content {
  Digest digest;
  std::int64_t size = 0;
};
Result<Content> read_content(os::Env& env, const std::string& path);

/// Objects are read-only and all of one time: one that is not has been written to. Nothing else
/// tells an honest writer with the powers of root. Of another time is what may not be on the disk
/// yet: after a power cut it is believed only when it was read.
enum class Sealed : std::uint8_t { fresh, durable };
Status seal(os::Env& env, const std::string& path, bool executable, Sealed how);

/// Whether the object is there and is what it was: read again only where its size or time is not
/// what it was sealed with. What is whole but not known to be durable comes into `fresh`.
/// not_found; corrupt: set aside now.
Status check_object(os::Env& env, const std::string& store, const Entry& entry, Paths& fresh);
/// The same by reading it.
Status verify_object(os::Env& env, const std::string& store, const Digest& digest, bool executable,
                     Paths& fresh);

/// What a publish makes beside its place, and takes the old thing to where it cannot exchange them.
std::string in_the_making(os::Env& env, const std::string& to);
/// Removes what a publisher that died has left of it; what it had taken away comes back.
void sweep_making(os::Env& env, const std::string& making);

/// A new directory in work/, locked.
Result<Hold> begin_work(os::Env& env, const std::string& store);
/// Says what this work needs, so that collect() leaves it; what of it is not there now is for
/// `missing` to take: each once.
Status declare_needs(os::Env& env, const std::string& store, const Hold& work,
                     const Fileset& fileset, std::vector<Entry>& missing, Paths& fresh);

}  // namespace berth::fileset
