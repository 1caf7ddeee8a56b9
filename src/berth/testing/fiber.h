// A Fiber is a function on a stack of its own, for the fake world: one that waits there gives the
// thread back to whoever resumed it, and goes on where it stood when it is resumed.
//
// Ownership: it owns its stack. Threads: one for all fibers. Failure: the function throws nothing;
// a Fiber must have ended before it goes.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace berth::os {

class Fiber {
 public:
  /// `main` begins with the first resume().
  explicit Fiber(std::function<void()> main);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Goes on with the function until it blocks or ends.
  void resume();
  /// Is called by the function itself: returns with the next resume().
  void block();
  bool ended() const { return ended_; }

 private:
  static void enter(unsigned high, unsigned low);
  void run();

  std::function<void()> main_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{}, outside_{};
  bool ended_ = false;
  // What the address sanitizer is told of the two stacks.
  void* inside_frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace berth::os
