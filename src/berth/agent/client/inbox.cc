#include "berth/agent/client/inbox.h"

#include <algorithm>

namespace berth::agent {

Status Inbox::welcome(const Welcome& welcome) {
  if (welcomed_ && welcome.first > next_)
    return fail(ErrorKind::corrupt, "the agent has discarded messages that were not acknowledged");
  if (!std::exchange(welcomed_, true)) {
    for (const auto& attempt : welcome.attempts) expect(attempt.token);
    next_ = welcome.first;
    handed_out_ = acknowledged_ = next_ - 1;
  }
  acknowledged_sent_ = welcome.first - 1;
  return {};
}

Status Inbox::receive(Numbered numbered) {
  if (numbered.number < next_) return {};
  if (numbered.number > next_)
    return fail(ErrorKind::corrupt, "the agent sent message {} after {}", numbered.number,
                next_ - 1);
  ++next_;
  if (const auto* ended = std::get_if<exec::Ended>(&numbered.message))
    ends_[ended->token] = numbered.number;
  received_.push_back(std::move(numbered.message));
  return {};
}

void Inbox::take_messages(std::vector<exec::FromWorker>& messages) {
  for (const auto& message : received_)
    if (const auto* ended = std::get_if<exec::Ended>(&message)) outstanding_.erase(ended->token);
  std::ranges::move(received_, std::back_inserter(messages));
  received_.clear();
  handed_out_ = next_ - 1;
}

void Inbox::acknowledge() {
  std::int64_t up_to = handed_out_;
  for (const auto& [token, number] : held_) up_to = std::min(up_to, number - 1);
  acknowledged_ = std::max(acknowledged_, up_to);
  std::erase_if(ends_, [&](const auto& end) { return end.second <= acknowledged_; });
}

void Inbox::hold(Token token) {
  if (const auto end = ends_.find(token); end != ends_.end()) held_.insert(*end);
}

std::optional<std::int64_t> Inbox::take_acknowledgement() {
  if (acknowledged_ <= acknowledged_sent_) return std::nullopt;
  return acknowledged_sent_ = acknowledged_;
}

}  // namespace berth::agent
