// Agents and clients in one world, for tests: a fake one on whose clock they talk in one thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/agent/agent.h"
#include "berth/agent/client/attached_agent.h"
#include "berth/agent/client/launched_agent.h"
#include "berth/agent/client/remote_agent.h"
#include "berth/os/loop.h"
#include "berth/testing/fake_env.h"

namespace berth::agent {

inline machine::Block cores(int count) {
  machine::Block block;
  block.resources.set(Known::cpu, count * 1000);
  for (int core = 0; core < count; ++core) block.cores.push_back({core, 0, 1000});
  return block;
}

inline exec::Launch launch_of(std::int64_t token, std::vector<std::string> argv = {"x"}) {
  exec::Launch launch{.task = {token},
                      .token = {token},
                      .request = {},
                      .argv = std::move(argv),
                      .environment = {{"PATH", "/bin:/usr/bin"}, {"HOME", "/"}},
                      .directory = "/",
                      .grace = std::chrono::milliseconds(100)};
  launch.request.resources.set(Known::cpu, 1000);
  return launch;
}

inline RunnerSide side(std::int64_t epoch) {
  return {epoch, {{"PATH", "/bin:/usr/bin"}, {"HOME", "/"}, {"ONLY", "here"}}};
}

inline os::FakeProgram takes(Duration duration, std::string out = "") {
  return {.duration = duration, .out = std::move(out)};
}

/// What a runner has heard.
struct Reports {
  std::map<std::int64_t, int> started, ended;  // by token: how often
  std::map<std::int64_t, exec::Ended> ends;
  std::map<std::int64_t, std::string> output;
  std::size_t metrics = 0;

  void take(const exec::FromWorker& message) {
    if (const auto* one = std::get_if<exec::Started>(&message)) ++started[one->token.value];
    if (const auto* one = std::get_if<exec::Output>(&message))
      output[one->token.value] += one->bytes;
    if (std::holds_alternative<exec::Metric>(message)) ++metrics;
    if (const auto* one = std::get_if<exec::Ended>(&message)) {
      ++ended[one->token.value];
      ends[one->token.value] = *one;
    }
  }
  void take(const std::vector<exec::FromWorker>& messages) {
    for (const auto& message : messages) take(message);
  }
  void take(const UnacknowledgedJournal& journal) {
    for (const auto& [_, message] : journal.messages) take(message);
  }
};

struct FakeWorld {
  explicit FakeWorld(AgentOptions wanted = {.directory = "/runs/a-1/agents/1", .block = cores(4)})
      : options(std::move(wanted)) {
    agent_env.program = [this](const os::SpawnSpec& spec) { return env.program(spec); };
    agent_env.fault = [this](std::string_view call) {
      return env.fault ? env.fault(call) : std::optional<Error>();
    };
  }

  void open() {
    agent_env.variables = env.variables;
    auto opened = Agent::open(agent_env, options);
    ASSERT_TRUE(opened) << opened.error().message;
    agent = *std::move(opened);
  }
  std::unique_ptr<AgentClient> attach(std::int64_t epoch) {
    return AttachedAgent::attach(env, options.directory, side(epoch));
  }

  /// One turn of everybody; `client` may be null. A frozen agent does nothing.
  void turn(exec::Worker* client, Reports& reports, bool read_output = true) {
    agent_env.frozen = frozen;
    agent_env.suspended = env.suspended;
    agent_env.stops = env.stops;
    if (client != nullptr) client->set_reading(read_output);
    ASSERT_TRUE(env.loop().turn(env.now() + step));
    if (agent && agent->over()) agent.reset();
    std::vector<exec::FromWorker> messages;
    if (client != nullptr) client->take_messages(messages);
    reports.take(messages);
  }
  void run(exec::Worker* client, Reports& reports, const std::function<bool()>& enough,
           bool read_output = true) {
    for (int turns = 0; !enough(); ++turns) {
      ASSERT_LT(turns, 100'000) << "it never came";
      turn(client, reports, read_output);
    }
  }

  os::FakeEnv env;
  os::FakeEnv agent_env{env, os::FakeEnv::On::the_same_machine, {1000, 5000}};
  AgentOptions options;
  std::unique_ptr<Agent> agent;
  bool frozen = false;
  Duration step = std::chrono::seconds(1);  // that a turn takes at most
};

}  // namespace berth::agent
