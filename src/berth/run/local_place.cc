#include "berth/run/local_place.h"

#include <algorithm>

#include "berth/run/workload.h"

namespace berth::run {
namespace {

constexpr Duration kBrief = std::chrono::milliseconds(50);
constexpr int kEnough = 8;  // in a row

}  // namespace

std::string_view series_of(std::string_view task_name) {
  const auto slash = task_name.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == task_name.size()) return {};
  const auto number = task_name.substr(slash + 1);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return task_name.substr(0, slash);
}

LocalPlace::LocalPlace(os::Env& env, std::unique_ptr<agent::Attached> agent,
                       machine::Machine& machine, machine::Groups& groups)
    : env_(env),
      agent_(std::move(agent)),
      groups_(groups),
      here_(env, machine, groups, inherited_environment(env)) {}

bool LocalPlace::brief(const std::string& series) const {
  const auto known = in_a_row_.find(series);
  return known != in_a_row_.end() && known->second >= kEnough;
}

void LocalPlace::tell(const exec::ToWorker& message) {
  const auto* launch = std::get_if<exec::Launch>(&message);
  if (launch == nullptr) {  // each knows its own tokens
    tell_agent(message);
    return here_.tell(message);
  }
  std::string series(series_of(launch->request.holder));
  // The agent's tasks stand in no book of ours.
  const bool here =
      alone_ || (agent_->idle() && brief(series) && groups_.holds_as_is(launch->request.resources));
  if (!series.empty()) flights_.emplace(launch->token.value, Flight{std::move(series), env_.now()});
  if (here)
    here_.tell(message);
  else
    tell_agent(message);
}

void LocalPlace::tell_agent(const exec::ToWorker& message) {
  if (alone_) return;
  if (!agent_->ready()) unheard_.push_back(message);
  agent_->tell(message);
}

void LocalPlace::watch(std::vector<os::Watch>& watches, bool read_output) {
  const std::size_t before = watches.size();
  if (!alone_) agent_->watch(watches, read_output);
  agents_watches_ = watches.size() - before;
  here_.watch(watches, read_output);
}

std::optional<Mono> LocalPlace::deadline() const {
  if (!alone_ && agent_->lost() && !agent_->has_alloc()) return env_.now();  // turn() takes over
  const auto agent = alone_ ? std::nullopt : agent_->deadline();
  const auto here = here_.deadline();
  if (!agent || !here) return agent ? agent : here;
  return std::min(*agent, *here);
}

void LocalPlace::turn(std::span<const os::Watch> watches, std::vector<exec::FromWorker>& messages) {
  const std::size_t before = messages.size();
  if (!alone_) agent_->turn(watches.first(agents_watches_), messages);
  if (agent_->ready()) unheard_.clear();
  if (!alone_ && agent_->lost() && !agent_->has_alloc()) {
    alone_ = true;
    for (const auto& message : unheard_) here_.tell(message);
    unheard_.clear();
  }
  here_.turn(watches.subspan(agents_watches_), messages);
  for (std::size_t i = before; i < messages.size(); ++i)
    if (const auto* ended = std::get_if<exec::Ended>(&messages[i])) learn(*ended);
}

void LocalPlace::learn(const exec::Ended& ended) {
  const auto flight = flights_.find(ended.token.value);
  if (flight == flights_.end()) return;
  int& in_a_row = in_a_row_[flight->second.series];
  const bool brief = env_.now() - flight->second.began < kBrief;
  in_a_row = brief ? std::min(in_a_row + 1, kEnough) : 0;
  flights_.erase(flight);
}

}  // namespace berth::run
