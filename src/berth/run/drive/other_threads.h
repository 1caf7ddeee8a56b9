// Work of a workload beside the loop, with the words in which people are told of it. The loop wakes
// when a piece has ended; its Then is called by turn() alone, which whoever drives the run calls
// between two turns of the loop: a Then may use the store, and must not run while one waits for it.
//
// Ownership and Threads: as os/background_threads.h, of which it is one.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "berth/os/background_threads.h"
#include "berth/os/loop.h"

namespace berth::run {

/// What is done at the moment: "reading /data/in.txt", and since when.
struct Underway {
  std::string what;
  Mono since;
  std::string how_far = {};  // " (1.2G of 4G)"
};

class OtherThreads {
 public:
  OtherThreads(os::Env& env, std::size_t most)
      : env_(env), most_(most), background_(env.background_threads(most)) {}

  /// `more` is asked, at any time and while the work goes on, what to say behind `what`.
  using More = std::function<std::string()>;
  Status start(std::string what, os::BackgroundThreads::Work work, More more = {});
  /// What has been under way for the longest.
  std::optional<Underway> oldest() const;
  bool busy() const { return background_->busy(); }
  /// Whether a piece has ended since it was asked last, and since turn().
  bool take_news() { return std::exchange(news_, false); }
  void turn();

 private:
  void listen() { ends_.watch(background_->busy() ? background_->ready() : -1); }
  struct Piece {
    Underway underway;
    More more;
  };
  using Started = std::list<Piece>;
  void forget(Started::iterator ended);

  os::Env& env_;
  const std::size_t most_;
  Started started_;  // and not ended, in this order; as many as there are threads are under way
  bool news_ = false;
  os::Poll ends_{env_.loop(), [this] {
                   news_ = true;
                   ends_.stop();
                 }};
  std::unique_ptr<os::BackgroundThreads> background_;  // goes first
};

}  // namespace berth::run
