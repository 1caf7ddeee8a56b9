#include "berth/testing/fiber.h"

#include <cstdint>

#include "berth/base/result.h"

#if defined(__SANITIZE_ADDRESS__)
#define BERTH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BERTH_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef BERTH_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace berth::os {
namespace {

constexpr std::size_t kStackBytes = 1 << 20;

#ifdef BERTH_ADDRESS_SANITIZER
void leave_stack(void** frames, const void* to, std::size_t size) {
  __sanitizer_start_switch_fiber(frames, to, size);
}
void enter_stack(void* frames, const void** from, std::size_t* size) {
  __sanitizer_finish_switch_fiber(frames, from, size);
}
#else
void leave_stack(void**, const void*, std::size_t) {}
void enter_stack(void*, const void**, std::size_t*) {}
#endif

}  // namespace

Fiber::Fiber(std::function<void()> main)
    : main_(std::move(main)), stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)) {
  BERTH_ASSERT(getcontext(&inside_) == 0);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  // makecontext() passes ints only.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32U), static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  BERTH_ASSERT(ended_);
}

void Fiber::enter(unsigned high, unsigned low) {
  const auto self = (static_cast<std::uintptr_t>(high) << 32U) | low;
  reinterpret_cast<Fiber*>(self)->run();
}

void Fiber::run() {
  enter_stack(nullptr, &outside_stack_, &outside_size_);
  main_();
  main_ = nullptr;
  ended_ = true;
  leave_stack(nullptr, outside_stack_, outside_size_);
  setcontext(&outside_);
}

void Fiber::resume() {
  BERTH_ASSERT(!ended_);
  leave_stack(&outside_frames_, stack_.get(), kStackBytes);
  BERTH_ASSERT(swapcontext(&outside_, &inside_) == 0);
  enter_stack(outside_frames_, nullptr, nullptr);
}

void Fiber::block() {
  leave_stack(&inside_frames_, outside_stack_, outside_size_);
  BERTH_ASSERT(swapcontext(&inside_, &outside_) == 0);
  enter_stack(inside_frames_, &outside_stack_, &outside_size_);
}

}  // namespace berth::os
