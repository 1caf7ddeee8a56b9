// What a run does while the server of its store does not answer.
#include <algorithm>

#include "berth/run/drive.h"

namespace berth::run {
namespace {

constexpr Duration kStopsWithin = std::chrono::seconds(5);
constexpr Duration kShowEvery = std::chrono::seconds(1);

}  // namespace

bool Drive::wait_for_store(const store::StoreWait& wait) {
  if (!heed_stop_without_store()) {
    abandon();
    return false;
  }
  progress_.waiting_for = "the store " + wait.why;
  show();
  std::vector<os::Watch> watches;
  if (wait.fd >= 0) {
    watches.push_back({.fd = wait.fd});
    watches.push_back({.fd = wait.writable ? wait.fd : -1, .readable = false});
  }
  Mono until = env_.now() + std::min(wait.most, kShowEvery);
  std::vector<std::size_t> begins;
  for (auto& berthed : berthed_) {
    begins.push_back(watches.size());
    // What tasks print stays in their pipes: it could be kept in memory alone.
    berthed->worker->watch(watches, false);
    for (const auto at : {berthed->worker->deadline(), berthed->keepalive_at})
      until = std::min(until, at.value_or(until));
  }
  begins.push_back(watches.size());
  observer_.watch(watches);
  if (!env_.wait(watches, until)) return true;
  observer_.flush();
  for (std::size_t i = 0; i < berthed_.size(); ++i)
    berthed_[i]->worker->turn(std::span(watches).subspan(begins[i], begins[i + 1] - begins[i]),
                              berthed_[i]->heard);
  keep_leases();
  return true;
}

/// What runs is told to end at once; the record of it waits a little for the store.
bool Drive::heed_stop_without_store() {
  const int signals = env_.stop_signals();
  if (signals == 0) return true;
  if (!leaves_store_at_) {
    leaves_store_at_ = env_.now() + kStopsWithin;
    if (stops_heeded_ == 0) {
      observer_.on_note("stopping, though the store does not answer; once more to stop at once");
      for (const auto& [token, live] : live_)
        for (auto& berthed : berthed_)
          if (berthed->id == live.worker) berthed->worker->tell(exec::Cancel{{token}});
    }
  }
  return signals == 1 && env_.now() < *leaves_store_at_;
}

}  // namespace berth::run
