// Work beside the loop in the fake world: done at once, and told of when it would have ended.
#include <deque>

#include "berth/os/aside.h"
#include "berth/os/fake_env.h"

namespace berth::os {

class FakeAside final : public Aside {
 public:
  explicit FakeAside(FakeEnv& env) : env_(env) {}

  Status start(Work work) override {
    BERTH_TRY(env_.ask("aside"));
    if (!ready_) ready_ = env_.add({FakeEnv::Open::Kind::aside, {}, 0});
    auto& due = env_.open_.at(ready_.number()).due;
    due.push_back((due.empty() ? env_.now() : due.back()) + env_.aside_takes);
    thens_.push_back(work(env_));
    return {};
  }
  bool busy() const override { return !thens_.empty(); }
  int ready() const override { return ready_.number(); }
  void turn() override {
    while (!thens_.empty() && env_.open_.at(ready_.number()).due.front() <= env_.now()) {
      auto& due = env_.open_.at(ready_.number()).due;
      due.erase(due.begin());
      Then then = std::move(thens_.front());
      thens_.pop_front();
      then();
    }
  }

 private:
  FakeEnv& env_;
  Fd ready_;
  std::deque<Then> thens_;
};

std::unique_ptr<Aside> FakeEnv::aside() {
  return std::make_unique<FakeAside>(*this);
}

}  // namespace berth::os
