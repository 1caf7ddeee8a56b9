#include "berth/os/aside_posix.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

/// A piece that is asked to break off has so long: a block of a file is read by then.
constexpr auto kBreaksOffWithin = std::chrono::seconds(1);

/// What both threads hold: it lives as long as either does.
struct Desk {
  ~Desk() {
    if (event >= 0) ::close(event);
  }
  int event = -1;
  std::atomic<bool> give_up = false;
  const std::unique_ptr<Env> env = posix_env(&give_up);  // of the other thread
  std::mutex mutex;                                      // of what follows
  std::condition_variable wake, ended;
  std::deque<Aside::Work> works;
  std::deque<Aside::Then> done;
  bool over = false, has_ended = false;
};

/// The other thread.
void work_through(Desk& desk) {
  std::unique_lock lock(desk.mutex);
  for (;;) {
    desk.wake.wait(lock, [&] { return desk.over || !desk.works.empty(); });
    if (desk.over) break;
    Aside::Work work = std::move(desk.works.front());
    desk.works.pop_front();
    lock.unlock();
    Aside::Then then = work(*desk.env);
    lock.lock();
    desk.done.push_back(std::move(then));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(desk.event, &one, sizeof one);
  }
  desk.has_ended = true;
  desk.ended.notify_one();
}

/// exit() destroys what a thread that was left behind might still use: from now on the process ends
/// without that.
void leave_without_cleaning() {
  static const int once = ::on_exit(
      [](int code, void*) {
        (void)std::fflush(nullptr);
        ::_exit(code);
      },
      nullptr);
  (void)once;
}

class AsidePosix final : public Aside {
 public:
  ~AsidePosix() override {
    std::deque<Work> dropped;
    std::unique_lock lock(desk_->mutex);
    dropped.swap(desk_->works);
    desk_->over = true;
    desk_->give_up = true;
    desk_->wake.notify_one();
    if (!thread_.joinable()) return;
    const bool ended =
        desk_->ended.wait_for(lock, kBreaksOffWithin, [&] { return desk_->has_ended; });
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
      leave_without_cleaning();
    }
  }

  Status start(Work work) override {
    if (desk_->event < 0) desk_->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (desk_->event < 0) return errno_error(errno, "work aside");
    if (!thread_.joinable()) BERTH_TRY(begin_thread());
    ++started_;
    {
      const std::scoped_lock lock(desk_->mutex);
      desk_->works.push_back(std::move(work));
    }
    desk_->wake.notify_one();
    return {};
  }

  bool busy() const override { return started_ > 0; }
  int ready() const override { return desk_->event; }

  void turn() override {
    std::deque<Then> due;
    {
      const std::scoped_lock lock(desk_->mutex);
      if (desk_->done.empty()) return;
      due.swap(desk_->done);
      std::uint64_t count = 0;
      [[maybe_unused]] const auto ignored = ::read(desk_->event, &count, sizeof count);
    }
    for (auto& then : due) {
      --started_;
      then();
    }
  }

 private:
  /// Signals are for the thread of the loop.
  Status begin_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    make_room();
    Status status;
    try {
      thread_ = std::thread([desk = desk_] { work_through(*desk); });
    } catch (const std::system_error& error) {
      status = errno_error(error.code().value(), "start a thread");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
  }

  /// A limit of the process's stack holds for those of threads, and may be too little for one.
  static void make_room() {
    constexpr std::size_t kStackLeast = 1U << 20;
    pthread_attr_t attributes;
    std::size_t size = 0;
    if (pthread_getattr_default_np(&attributes) != 0) return;
    if (pthread_attr_getstacksize(&attributes, &size) == 0 && size < kStackLeast &&
        pthread_attr_setstacksize(&attributes, kStackLeast) == 0)
      pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }

  std::size_t started_ = 0;
  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Aside> aside_posix() {
  return std::make_unique<AsidePosix>();
}

}  // namespace berth::os
