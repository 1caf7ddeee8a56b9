#include "berth/os/aside_posix.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

class AsidePosix final : public Aside {
 public:
  ~AsidePosix() override {
    {
      const std::scoped_lock lock(mutex_);
      works_.clear();
      over_ = true;
    }
    give_up_ = true;
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    if (event_ >= 0) ::close(event_);
  }

  Status start(Work work) override {
    if (event_ < 0) event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_ < 0) return errno_error(errno, "work aside");
    if (!thread_.joinable()) BERTH_TRY(begin_thread());
    ++started_;
    {
      const std::scoped_lock lock(mutex_);
      works_.push_back(std::move(work));
    }
    wake_.notify_one();
    return {};
  }

  bool busy() const override { return started_ > 0; }
  int ready() const override { return event_; }

  void turn() override {
    std::deque<Then> due;
    {
      const std::scoped_lock lock(mutex_);
      if (done_.empty()) return;
      due.swap(done_);
      std::uint64_t count = 0;
      [[maybe_unused]] const auto ignored = ::read(event_, &count, sizeof count);
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
      thread_ = std::thread([this] { go(); });
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

  void go() {
    const auto env = posix_env(&give_up_);
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return over_ || !works_.empty(); });
      if (over_) return;
      Work work = std::move(works_.front());
      works_.pop_front();
      lock.unlock();
      Then then = work(*env);
      lock.lock();
      done_.push_back(std::move(then));
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto ignored = ::write(event_, &one, sizeof one);
    }
  }

  int event_ = -1;
  std::size_t started_ = 0;
  std::atomic<bool> give_up_ = false;
  std::thread thread_;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::deque<Work> works_;
  std::deque<Then> done_;
  bool over_ = false;
};

}  // namespace

std::unique_ptr<Aside> aside_posix() {
  return std::make_unique<AsidePosix>();
}

}  // namespace berth::os
