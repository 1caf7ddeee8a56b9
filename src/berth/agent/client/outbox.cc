#include "berth/agent/client/outbox.h"

#include <algorithm>

#include "berth/agent/protocol/line_stream.h"

namespace berth::agent {
std::vector<exec::Ended> Outbox::open(const Welcome& welcome, Mono now) {
  open_ = output_wished_ = true;
  revision_ = welcome.revision;
  lease_ = welcome.lease;
  keepalive_at_ = now;
  std::vector<exec::Ended> refused;
  for (const auto& [token, launch] : launches_)
    if (std::ranges::find(welcome.attempts, token, &Attempt::token) == welcome.attempts.end())
      if (auto ended = send_launch(token, launch)) refused.push_back(*std::move(ended));
  for (const auto& ended : refused) launches_.erase(ended.token);
  for (const Token token : cancelled_) send_line(exec::Cancel{token});
  if (abandoned_) send_line(exec::Abandon{});
  if (last_) send_line(*last_);
  return refused;
}

std::optional<exec::Ended> Outbox::launch(exec::Launch launch) {
  launch.behind = unbegun_.resolve(launch.behind);
  Sent sent{launch.task, revision_for(launch), encode(Call(launch))};
  if (sent.line.size() > kMessageMost) {
    unbegun_.add(launch.token, launch.behind);
    return exec::ended_as(exec::Cause::cannot_start, launch.task, launch.token,
                          "its command and environment are too long");
  }
  auto ended = open_ ? send_launch(launch.token, sent) : std::nullopt;
  if (!ended) launches_.emplace(launch.token, std::move(sent));
  return ended;
}

/// Not where the agent would pass over a part of it.
std::optional<exec::Ended> Outbox::send_launch(Token token, const Sent& launch) {
  if (launch.revision > revision_)
    return exec::ended_as(
        exec::Cause::cannot_start, launch.task, token,
        fmt::format("its berth-agent is of an older Berth, which cannot {}: use the one of this "
                    "version",
                    launch.revision == 4   ? "run a task in a sandbox"
                    : launch.revision == 3 ? "run a task in a container"
                                           : "choose GPUs as the task asks"));
  send_(launch.line);
  return std::nullopt;
}

void Outbox::send_line(const Call& call) {
  if (open_) send_(encode(call));
}

void Outbox::cancel(Token token, bool again) {
  if (again) cancelled_.insert(token);
  send_line(exec::Cancel{token});
}

void Outbox::abandon() {
  abandoned_ = true;
  send_line(exec::Abandon{});
}

void Outbox::send_last(const Call& call) {
  last_ = call;
  send_line(call);
}

void Outbox::ended(Token token) {
  launches_.erase(token);
  cancelled_.erase(token);
}

void Outbox::send_notices(std::optional<std::int64_t> acknowledged, Mono now) {
  if (acknowledged) send_line(Acknowledge{*acknowledged});
  if (output_wanted_ != output_wished_) send_line(WantOutput{output_wished_ = output_wanted_});
  if (now < keepalive_at_) return;
  send_line(Keepalive{});
  keepalive_at_ = now + lease_ / kKeepalivesALease;
}

}  // namespace berth::agent
