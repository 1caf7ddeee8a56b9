#include "berth/agent/client/agent_client.h"

#include <algorithm>

#include "berth/fileset/fileset.h"
#include "berth/os/loop.h"

namespace berth::agent {

std::vector<schedule::Earlier> AgentClient::earlier() const {
  std::vector<schedule::Earlier> attempts;
  if (!ready()) return attempts;
  for (const auto& [task, token] : agent().attempts)
    attempts.push_back({.task = task, .token = token});
  return attempts;
}

bool settle_round(os::Env& env, std::span<AgentClient* const> clients, Mono until) {
  const auto open = [](const AgentClient* client) { return !client->lost() && !client->ready(); };
  if (std::ranges::none_of(clients, open)) return false;
  (void)env.loop().turn(until);
  return std::ranges::any_of(clients, open);
}

void settle(os::Env& env, std::span<const std::unique_ptr<AgentClient>> clients, Mono until) {
  std::vector<AgentClient*> all;
  for (const auto& client : clients) all.push_back(client.get());
  while (settle_round(env, all, until))
    if (env.now() >= until) break;
  for (auto* client : all)
    if (!client->lost() && !client->ready())
      client->lose({ErrorKind::busy, "the agent did not answer in time"});
}

Result<std::string> agent_program(os::Env& env) {
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  std::string program = self.substr(0, self.rfind('/')) + "/berth-agent";
  BERTH_TRY(env.status(program));
  return program;
}

Status forget_agent(os::Env& env, const std::string& directory) {
  BERTH_ASSIGN(const os::Fd lock, env.lock(directory + "/lock", false));
  return fileset::remove_all(env, directory);  // it may have directories of its tasks' files
}

}  // namespace berth::agent
