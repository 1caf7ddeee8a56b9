// Work beside the loop: other threads do one piece after the other, each with an Env of its own, so
// that what takes seconds (gigabytes read or written) keeps nobody waiting. A piece that hangs
// costs a thread; the others go on.
//
// Ownership: kept by the thread that starts the work; going, it has the pieces under way broken off
// and drops the others. Those that do not break off soon, because a file system does not answer
// them, are left behind: the process ends without waiting for them. Threads: a Work runs on another
// thread, and the Then that it returns on the one that calls turn(): what both of them touch
// belongs to the Work until its Then is called, and a Work refers to nothing that it does not own.
// Failure: start() fails when there can be no other thread, and has done nothing then.
#pragma once

#include <functional>

#include "berth/os/env.h"

namespace berth::os {

class Aside {
 public:
  using Then = std::move_only_function<void()>;
  using Work = std::move_only_function<Then(Env& there)>;

  Aside() = default;
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  virtual ~Aside() = default;

  virtual Status start(Work work) = 0;
  /// Whether there is work whose Then was not called yet.
  virtual bool busy() const = 0;
  /// Readable once turn() has something to call; -1 before the first start().
  virtual int ready() const = 0;
  /// Calls what has become due, in the order in which it has ended. Pieces begin in the order in
  /// which they were started; where there is one thread, they end in it too.
  virtual void turn() = 0;
};

}  // namespace berth::os
