// Work beside the loop in the fake world: done at once, and told of when it would have ended.
#include <algorithm>
#include <deque>
#include <vector>

#include "berth/os/background_threads.h"
#include "berth/testing/fake_env.h"

namespace berth::os {

class FakeBackgroundThreads final : public BackgroundThreads {
 public:
  FakeBackgroundThreads(FakeEnv& env, std::size_t most_threads)
      : env_(env), free_at_(most_threads) {}

  Status start(Work work) override {
    BERTH_TRY(env_.ask("aside"));
    if (!ready_) ready_ = env_.add({.kind = FakeEnv::Open::Kind::background});
    Mono& free_at = *std::ranges::min_element(free_at_);
    free_at = std::max(free_at, env_.now()) + env_.background_takes;
    auto& due = env_.world_.open.at(ready_.number()).due;
    const auto place = std::ranges::upper_bound(due, free_at);
    thens_.insert(thens_.begin() + (place - due.begin()), work(env_));
    due.insert(place, free_at);
    return {};
  }
  bool busy() const override { return !thens_.empty(); }
  int ready() const override { return ready_.number(); }
  void turn() override {
    while (!thens_.empty() && env_.world_.open.at(ready_.number()).due.front() <= env_.now()) {
      auto& due = env_.world_.open.at(ready_.number()).due;
      due.erase(due.begin());
      Then then = std::move(thens_.front());
      thens_.pop_front();
      then();
    }
  }

 private:
  FakeEnv& env_;
  std::vector<Mono> free_at_;  // each of the threads
  Fd ready_;
  std::deque<Then> thens_;
};

std::unique_ptr<BackgroundThreads> FakeEnv::background_threads(std::size_t most_threads) {
  return std::make_unique<FakeBackgroundThreads>(*this, most_threads);
}

}  // namespace berth::os
