// What large files, people's own and objects of the store, were found to hold, so that they need
// not be read again: a file is the same as long as its device, inode, size and both its times are.
// SEEN/DEVICE-INODE, a small file each; whatever is wrong with one costs a reading.
#pragma once

#include <optional>
#include <string>

#include "berth/base/digest.h"
#include "berth/os/env.h"

namespace berth::fileset {

/// Reading less than this costs hardly more than remembering it.
inline constexpr std::int64_t kWorthRemembering = 1 << 20;
/// A file that changed so short a time before it was read may change again without a new time: how
/// coarse the clock of a volume may be.
inline constexpr Duration kRacy = std::chrono::seconds(2);

/// nullopt: it was never read, or may have changed since.
std::optional<Digest> remembered(os::Env& env, const std::string& seen, const os::FileStatus& now);
/// `before` and `after` are what was told of it before it was read, at `began`, and after.
void remember(os::Env& env, const std::string& seen, const os::FileStatus& before,
              const os::FileStatus& after, Wall began, const Digest& digest, Duration racy = kRacy);
void forget(os::Env& env, const std::string& seen, const os::FileStatus& file);
/// All of which `needed` does not hold.
Status forget_unless(os::Env& env, const std::string& seen,
                     const std::function<bool(const Digest&)>& needed);

}  // namespace berth::fileset
