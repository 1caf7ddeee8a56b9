// Where the store keeps what, and the steps that its operations share.
//   objects/ab/cdef…   a content, by its digest; with ".x" behind it where it may be executed
//   work/RANDOM/       of one capture, publish or Hold: locked while that lives; "fileset" names
//   what
//                      it needs, the numbers are copies in the making
//   damaged/           objects that no longer held what they were named after
//   lock               shared by whoever says what it needs, exclusive to whoever removes
#pragma once

#include <optional>
#include <string>

#include "berth/fileset/fileset.h"

namespace berth::fileset {

inline constexpr std::string_view kNeeds = "/fileset";  // in a directory of work/

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
/// tells an honest writer with the powers of root.
Status seal(os::Env& env, const std::string& path, bool executable);

/// Whether the object is there and is what it was: read again only where its size or time is not
/// what it was sealed with. not_found; corrupt: set aside now.
Status check_object(os::Env& env, const std::string& store, const Entry& entry);
/// The same by reading it.
Status verify_object(os::Env& env, const std::string& store, const Digest& digest, bool executable);

/// A new directory in work/, locked.
Result<Hold> begin_work(os::Env& env, const std::string& store);
/// Says what this work needs, so that collect() leaves it; what of it is not there now is for
/// `missing` to take: each once.
Status declare_needs(os::Env& env, const std::string& store, const Hold& work,
                     const Fileset& fileset, std::vector<Entry>& missing);

}  // namespace berth::fileset
