#include "berth/os/background_threads_posix.h"

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
#include <vector>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

/// A piece that is asked to break off has so long: a block of a file is read by then.
constexpr auto kBreaksOffWithin = std::chrono::seconds(1);

/// What all threads hold: it lives as long as any of them does.
struct Desk {
  ~Desk() {
    if (event >= 0) ::close(event);
  }
  int event = -1;
  std::atomic<bool> give_up = false;
  std::mutex mutex;  // of what follows
  std::condition_variable wake, ended;
  std::deque<std::unique_ptr<Env>> envs;  // of each thread: what was opened there goes before them
  std::deque<BackgroundThreads::Work> works;
  std::deque<BackgroundThreads::Then> done;
  std::size_t threads = 0, idle = 0;
  bool over = false;
};

/// One of the other threads.
void work_through(Desk& desk) {
  std::unique_lock lock(desk.mutex);
  Env& env = *desk.envs.emplace_back(posix_env(&desk.give_up));
  for (;;) {
    ++desk.idle;
    desk.wake.wait(lock, [&] { return desk.over || !desk.works.empty(); });
    --desk.idle;
    if (desk.over) break;
    BackgroundThreads::Work work = std::move(desk.works.front());
    desk.works.pop_front();
    lock.unlock();
    BackgroundThreads::Then then = work(env);
    lock.lock();
    desk.done.push_back(std::move(then));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(desk.event, &one, sizeof one);
  }
  --desk.threads;
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

class BackgroundThreadsPosix final : public BackgroundThreads {
 public:
  explicit BackgroundThreadsPosix(std::size_t most_threads) : most_threads_(most_threads) {}
  BackgroundThreadsPosix(const BackgroundThreadsPosix&) = delete;
  BackgroundThreadsPosix& operator=(const BackgroundThreadsPosix&) = delete;
  ~BackgroundThreadsPosix() override {
    std::deque<Work> dropped;
    std::unique_lock lock(desk_->mutex);
    dropped.swap(desk_->works);
    desk_->over = true;
    desk_->give_up = true;
    desk_->wake.notify_all();
    const bool ended =
        desk_->ended.wait_for(lock, kBreaksOffWithin, [&] { return desk_->threads == 0; });
    lock.unlock();
    for (auto& thread : threads_) ended ? thread.join() : thread.detach();
    if (!ended) leave_without_cleaning();
  }

  Status start(Work work) override {
    if (desk_->event < 0) desk_->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (desk_->event < 0) return errno_error(errno, "work aside");
    const std::scoped_lock lock(desk_->mutex);
    const bool all_busy = desk_->works.size() >= desk_->idle;
    if (all_busy && threads_.size() < most_threads_)
      if (const auto begun = begin_thread(); !begun && threads_.empty()) return begun;
    ++started_;
    desk_->works.push_back(std::move(work));
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
  /// Signals are for the thread of the loop. The caller has the mutex.
  Status begin_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    make_room();
    Status status;
    try {
      threads_.emplace_back([desk = desk_] { work_through(*desk); });
      ++desk_->threads;
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

  const std::size_t most_threads_;
  std::size_t started_ = 0;
  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<BackgroundThreads> background_threads_posix(std::size_t most_threads) {
  return std::make_unique<BackgroundThreadsPosix>(most_threads);
}

}  // namespace berth::os
