// What runs have left on a machine that others send work to, and nobody uses any more: directories
// of leases whose agent is dead, objects, and parts of objects whose transfer broke off. Locks tell
// what is used: of a living agent, of a connection that brings files, of whoever publishes them.
//
// Threads: one; processes as many as like. Failure: as Env has it; what was removed is removed.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/os/env.h"

namespace berth::agent {

struct CleanOptions {
  Duration older_than{};  // what came later stays; leases and parts of the last minute always do
  bool dry_run = false;   // counted, and left as it is
};
struct Cleaned {
  std::int64_t leases = 0, lease_bytes = 0;    // directories
  std::int64_t objects = 0, object_bytes = 0;  // and parts of some
  bool operator==(const Cleaned&) const = default;
};

Result<Cleaned> clean(os::Env& env, const CleanOptions& options);

/// One line, without its end. Pure; invalid.
std::string encode(const Cleaned& cleaned);
Result<Cleaned> decode_cleaned(std::string_view line);

/// `berth-agent clean`: once a line came on standard input, what clean() gives, or its error as
/// "error KIND message", in a line on standard output.
Status serve_clean(os::Env& env, const CleanOptions& options);

}  // namespace berth::agent
