// Where a process may be killed to see what comes of it: for tests.
//
// BERTH_FAILPOINT=commit:3:/tmp/x ends the process, as kill -9 would, the third time that it comes
// to failpoint("commit"), if there is a file /tmp/x, which goes first: one process dies, once.
// Otherwise a failpoint is one branch.
//
// Threads: one. Failure: a setting that cannot be read is none.
#pragma once

#include <string_view>

namespace berth::os {

void failpoint(std::string_view name);

}  // namespace berth::os
