// BackgroundThreads do work that takes seconds (gigabytes read or written) while the event loop
// goes on. Each thread does one piece of work after another, with an Env of its own. A piece that
// hangs costs its thread; the others go on.
//
// Ownership: the thread that starts the work owns them. Their destructor asks the pieces that run
// to break off and drops those that wait; a piece that does not break off soon, because its file
// system does not answer, is left behind, and the process ends without waiting for it. Threads: a
// Work runs on another thread, and the Then that it returns runs on the thread that calls turn().
// What both touch belongs to the Work until its Then is called, and a Work refers to nothing that
// it does not own. Failure: start() fails when the process can have no other thread, and has then
// done nothing.
#pragma once

#include <functional>

#include "berth/os/env.h"

namespace berth::os {

class BackgroundThreads {
 public:
  using Then = std::move_only_function<void()>;
  using Work = std::move_only_function<Then(Env& there)>;

  BackgroundThreads() = default;
  BackgroundThreads(const BackgroundThreads&) = delete;
  BackgroundThreads& operator=(const BackgroundThreads&) = delete;
  virtual ~BackgroundThreads() = default;

  /// Starts a piece of work, or lets it wait until a thread is free. Pieces begin in the order in
  /// which they were started.
  virtual Status start(Work work) = 0;
  /// Whether there is a piece whose Then was not called yet.
  virtual bool busy() const = 0;
  /// A descriptor that is readable when turn() has something to call; -1 before the first start().
  virtual int ready() const = 0;
  /// Calls the Then of each piece that has ended, in the order in which they ended; with one thread
  /// that is the order in which they were started.
  virtual void turn() = 0;
};

}  // namespace berth::os
