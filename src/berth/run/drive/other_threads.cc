#include "berth/run/drive/other_threads.h"

#include <iterator>

namespace berth::run {

Status OtherThreads::start(std::string what, os::BackgroundThreads::Work work, More more) {
  const auto one =
      started_.insert(started_.end(), {{std::move(what), env_.now()}, std::move(more)});
  auto begun = background_->start([this, one, work = std::move(work)](os::Env& there) mutable {
    return [this, one, then = work(there)]() mutable {
      forget(one);
      then();
    };
  });
  if (!begun) started_.erase(one);
  listen();
  return begun;
}

void OtherThreads::forget(Started::iterator ended) {
  const bool makes_room = static_cast<std::size_t>(std::distance(started_.begin(), ended)) < most_;
  started_.erase(ended);
  if (makes_room && started_.size() >= most_)
    std::next(started_.begin(), static_cast<std::ptrdiff_t>(most_) - 1)->underway.since =
        env_.now();
}

std::optional<Underway> OtherThreads::oldest() const {
  if (started_.empty()) return std::nullopt;
  Underway first = started_.front().underway;
  if (const auto& more = started_.front().more) first.how_far = more();
  return first;
}

void OtherThreads::turn() {
  if (!background_->busy()) return;
  news_ = false;
  background_->turn();
  listen();
}

}  // namespace berth::run
