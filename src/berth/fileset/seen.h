// A cache of the digests of large files, both people's files and objects of the store, so that they
// need not be read again: a file is unchanged as long as its device, inode, size and both times
// are, where these show its changes (Env::shows_changes()). Each record is a small file,
// SEEN/DEVICE-INODE; a record that is wrong in any way costs a reading.
#pragma once

#include <optional>
#include <string>

#include "berth/base/digest.h"
#include "berth/os/env.h"

namespace berth::fileset {

/// The least size in bytes for a record; reading a smaller file costs hardly more.
inline constexpr std::int64_t kWorthRemembering = 1 << 20;
/// How coarse the clock of a volume may be: a file that changed less than this before it was read
/// may change again without a new time.
inline constexpr Duration kRacy = std::chrono::seconds(2);

/// The recorded digest; nullopt: the file was never read, or may have changed since.
std::optional<Digest> remembered(os::Env& env, const std::string& seen, const os::FileStatus& now);
/// Returns true if the file is old enough for a record: its next change gives it another time.
bool is_old(const os::FileStatus& file, Wall began, Duration racy = kRacy);
/// Records a digest. `before` and `after` are the file's status before the reading, which began at
/// `began`, and after it.
void remember(os::Env& env, const std::string& seen, const os::FileStatus& before,
              const os::FileStatus& after, Wall began, const Digest& digest, Duration racy = kRacy);
void forget(os::Env& env, const std::string& seen, const os::FileStatus& file);
/// Removes all records whose digest is not `needed`.
Status forget_unless(os::Env& env, const std::string& seen,
                     const std::function<bool(const Digest&)>& needed);

}  // namespace berth::fileset
