// The folder of an experiment on its way to another machine: what of it goes, and what stays and
// why. Left out are what .gitignore and .berthignore name (ignore/ignore.h), those of the folders
// above counted up to the repository's own; .git itself; sockets, pipes and devices; symbolic links
// that lead outside; and Berth's own state, since a process that reads and closes the database
// which it has open loses its locks on it. Only in a virtual environment the program that such a
// link leads to goes in its place: without its interpreter nothing of that would be of use.
//
// Threads: one for each Env. Failure: as Env has it; unconfirmed: see check_unasked(); invalid:
// more files than a fileset holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/os/env.h"

namespace berth::remote {

inline constexpr std::int64_t kLargeFolder = std::int64_t{1} << 30;  // bytes

struct LeftOut {
  std::string path;                   // from the folder; of a directory with '/' at its end
  std::string why;                    // ".gitignore:3", "a link to /data, outside of the folder", …
  bool by_rule = false;               // a line of .berthignore could bring it back
  std::int64_t files = 1, bytes = 0;  // of all below
  bool more = false;                  // there is more below than was counted
};

struct Folder {
  std::string path;
  std::vector<os::TreeEntry> entries;     // that go
  std::int64_t files = 0, bytes = 0;      // of these
  std::vector<LeftOut> left_out;          // sorted by path
  std::vector<std::string> interpreters;  // of virtual environments, sent along: paths here
};

/// Reads names and sizes alone, and nothing within directories that are left out but their size.
/// `state` is the directory of Berth's own state.
Result<Folder> read_folder(os::Env& env, const std::string& path, const std::string& state);
/// unconfirmed: a person has to be asked before so much is sent, or before a home directory is.
Status check_unasked(os::Env& env, const std::string& path);
Status check_unasked(const Folder& folder);
/// What a person has to know of what is left out, in one line; "": nothing.
std::string left_out_text(const Folder& folder);

/// How far one thread has come, for another.
struct FolderProgress {
  std::atomic<std::int64_t> read = 0, total = 0;  // bytes
};
struct ReadyFolder {
  fileset::Captured captured;
  std::string left_out;  // left_out_text()
};
/// Brings the folder into the object store, which lies in the state directory, so that it can be
/// sent. `confirmed`: somebody said yes to its size.
Result<ReadyFolder> prepare_folder(os::Env& env, const std::string& path, const std::string& store,
                                   bool confirmed, FolderProgress& progress);

}  // namespace berth::remote
