// A Wake is how another thread, or a signal handler, wakes an event loop: a descriptor that becomes
// readable. A StopSource asks a part of this process to stop, as stop signals ask all of it.
//
// Ownership: whoever may call set() or request() keeps it alive meanwhile. Threads: set() and
// request() may be called from any thread and from a signal handler, all else from the loop's.
#pragma once

#include <atomic>
#include <memory>

namespace berth::os {

class Env;

class Wake {
 public:
  Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  ~Wake();

  /// Readable from set() to clear(); -1 where the process could have no more descriptors.
  int descriptor() const { return fd_; }
  void set() const noexcept;
  void clear() const noexcept;

 private:
  int fd_;
};

class StopSource {
 public:
  void request() noexcept {
    requests_.fetch_add(1);
    wake_.set();
  }
  int requests() const { return requests_.load(); }
  const Wake& wake() const { return wake_; }

 private:
  std::atomic<int> requests_ = 0;
  Wake wake_;
};

/// The Env of the real world for a part of this process: the requests of `stop`, which outlives it,
/// are its stop signals. One Env at a time has a StopSource.
std::unique_ptr<Env> posix_env(StopSource& stop);

}  // namespace berth::os
