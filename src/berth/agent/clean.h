// clean() removes what runs have left on a machine that others send work to and that nobody uses
// any more: lease directories whose agent is dead, objects, and parts of objects whose transfer
// broke off. Locks say what is in use: a living agent holds one, and so do a connection that brings
// files and a process that publishes them.
//
// Threads: one; any number of processes. Failure: that of the Env; what was removed stays removed.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/os/env.h"

namespace berth::agent {

struct CleanOptions {
  Duration older_than{};  ///< What is younger stays; leases and parts of the last minute always do.
  bool dry_run = false;   ///< It only counts.
};
struct Cleaned {
  std::int64_t leases = 0, lease_bytes = 0;    ///< Lease directories.
  std::int64_t objects = 0, object_bytes = 0;  ///< Objects, and parts of objects.
  bool operator==(const Cleaned&) const = default;
};

Result<Cleaned> clean(os::Env& env, const CleanOptions& options);

/// One line, without its end. Pure.
std::string encode(const Cleaned& cleaned);
/// Failure: invalid.
Result<Cleaned> decode_cleaned(std::string_view line);

/// `berth-agent clean`: once a line has come on standard input, it writes a line to standard
/// output: what clean() returned, or its error as "error KIND message".
Status serve_clean(os::Env& env, const CleanOptions& options);

}  // namespace berth::agent
