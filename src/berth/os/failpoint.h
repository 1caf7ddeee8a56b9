// A failpoint is a place where a test can have the process killed, to see what comes of it.
//
// BERTH_FAILPOINT=commit:3:/tmp/x ends the process, as kill -9 would, the third time that it comes
// to failpoint("commit"), if there is a file /tmp/x. The process removes the file first, so that
// one process dies, once. Without that variable a failpoint costs one branch.
//
// Threads: one. Failure: a setting that cannot be read counts as none.
#pragma once

#include <string_view>

namespace berth::os {

void failpoint(std::string_view name);

}  // namespace berth::os
