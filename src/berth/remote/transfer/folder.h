// These functions decide what of an experiment's folder is sent to another machine, and what stays
// and why. Left out are: what .gitignore and .berthignore name (ignore/ignore.h), where those of
// the folders above count up to the root of the repository; .git itself; sockets, pipes and
// devices; symbolic links that lead outside; and Berth's own state, since a process that reads and
// closes the database which it has open loses its locks on it. In a virtual environment alone, the
// program that such a link leads to is sent in its place, for without its interpreter the
// environment is useless.
//
// Threads: one for each Env. Failure: that of the Env; unconfirmed, see check_unasked(); invalid,
// where there are more files than a fileset holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/fileset/fileset.h"
#include "berth/os/env.h"

namespace berth::remote {

inline constexpr std::int64_t kLargeFolder = std::int64_t{1} << 30;  ///< In bytes.

struct LeftOut {
  std::string path;      ///< From the folder on; that of a directory ends in '/'.
  std::string why;       ///< ".gitignore:3", "a link to /data, outside of the folder", ….
  bool by_rule = false;  ///< A line of .berthignore could bring it back.
  std::int64_t files = 1, bytes = 0;  ///< Of all that is below.
  bool more = false;                  ///< There is more below than was counted.
};

struct Folder {
  std::string path;
  std::vector<os::TreeEntry> entries;     ///< That are sent.
  std::int64_t files = 0, bytes = 0;      ///< Of these entries.
  std::vector<LeftOut> left_out;          ///< Sorted by path.
  std::vector<std::string> interpreters;  ///< Of virtual environments, sent along: paths here.
};

/// Reads names and sizes; of a directory that is left out it reads the size alone. `state` is the
/// directory of Berth's own state.
Result<Folder> read_folder(os::Env& env, const std::string& path, const std::string& state);
/// Failure: unconfirmed, where a person has to agree first: to sending so much, or to sending a
/// home directory.
Status check_unasked(os::Env& env, const std::string& path);
Status check_unasked(const Folder& folder);
/// One line that tells a person what is left out; "" where there is nothing to know.
std::string left_out_text(const Folder& folder);

/// How far the thread that reads a folder has come, for another thread.
struct FolderProgress {
  std::atomic<std::int64_t> read = 0, total = 0;  ///< In bytes.
};
struct ReadyFolder {
  fileset::Captured captured;
  std::string left_out;  ///< That of left_out_text().
};
/// Brings the folder into the object store in the state directory, so that it can be sent.
/// `confirmed`: a person has agreed to its size.
Result<ReadyFolder> prepare_folder(os::Env& env, const std::string& path, const std::string& store,
                                   bool confirmed, FolderProgress& progress);

}  // namespace berth::remote
