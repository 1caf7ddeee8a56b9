// Work of a workload beside the loop, with the words in which people are told of it.
//
// Ownership and Threads: as os/aside.h, of which it is one.
#pragma once

#include <list>
#include <optional>
#include <string>

#include "berth/os/aside.h"

namespace berth::run {

/// What is done at the moment: "reading /data/in.txt", and since when.
struct Underway {
  std::string what;
  Mono since;
};

class OtherThreads {
 public:
  OtherThreads(os::Env& env, std::size_t most) : env_(env), most_(most), aside_(env.aside(most)) {}

  Status start(std::string what, os::Aside::Work work);
  /// What has been under way for the longest.
  std::optional<Underway> oldest() const;
  bool busy() const { return aside_->busy(); }
  void watch(std::vector<os::Watch>& watches) const;
  void turn();

 private:
  using Started = std::list<Underway>;
  void forget(Started::iterator ended);

  os::Env& env_;
  const std::size_t most_;
  Started started_;  // and not ended, in this order; as many as there are threads are under way
  std::unique_ptr<os::Aside> aside_;  // goes first
};

}  // namespace berth::run
