// What Berth has put at the places of outputs, so that a task never replaces what a person edited
// there without being asked to.
//
// On disk: a directory with one text file for each folder that outputs went to, by the digest of
// the folder's path: the path, then "DIGEST NAME" for each content that went to the name. Both are
// the first half of a digest in hexadecimal. Next to it, the fileset of each directory output. A
// record is written before the output is put at its place: what a killed process left half done is
// known, too.
//
// Ownership: an object caches what it read. Threads: one; any number of objects and processes may
// use one directory at the same time. Failure: as each function says.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/fileset/fileset.h"

namespace berth::run {

/// A file at the place of an output that Berth did not put there.
struct Edit {
  std::string path;
  bool is_added = false;  ///< False: Berth put another content at this path.
};

class PlacedOutputs {
 public:
  /// `cache` is the directory of the object store that outputs come from.
  explicit PlacedOutputs(const std::string& cache) : directory_(cache + "/placed") {}

  /// Records that `content` is about to be put at `place`, an absolute path whose folder exists.
  Status record(os::Env& env, const std::string& place, const fileset::Fileset& content);
  /// Returns true if Berth is known to have put something at the place.
  bool has(os::Env& env, const std::string& place);
  /// Returns the first file of `there`, what is at the place now, that Berth did not put there;
  /// nullopt, too, where nothing is known of the place. A mode that was changed is not an edit, and
  /// neither is a file that was removed.
  std::optional<Edit> find_edit(os::Env& env, const std::string& place,
                                const fileset::Fileset& there);
  /// Removes the records of folders that no longer exist.
  Status collect(os::Env& env);

 private:
  /// The records of one folder.
  struct Folder {
    std::string path, file;
    std::int64_t size = 0;  // bytes of the file that were read
    std::unordered_map<std::string, std::vector<std::string>> contents;  // by name, latest last
  };
  Folder& folder_of(os::Env& env, const std::string& place);
  void load(os::Env& env, Folder& folder) const;
  void shorten(os::Env& env, Folder& folder) const;
  std::string fileset_file(const Folder& folder, const std::string& name) const;

  const std::string directory_;
  std::unordered_map<std::string, Folder> folders_;  // by the path before its links are followed
};

}  // namespace berth::run
