// What a task costs through an agent, beside a worker in the runner's own process: the wall clock,
// and the processor time of runner and agent together ("cpu_us", without the task's own).
#include <benchmark/benchmark.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "berth/agent/client/launched_agent.h"
#include "berth/exec/process_worker.h"
#include "berth/os/loop.h"

namespace berth::agent {
namespace {

constexpr int kWidth = 2;

machine::Block block() {
  machine::Block block;
  block.resources.set(Known::cpu, 2000);
  block.cores = {{0, 0, 1000}, {1, 0, 1000}};
  return block;
}

double own_cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

/// Of a process that is not ours.
double cpu_us_of(os::Env& env, pid_t pid) {
  const auto text = env.read_file(fmt::format("/proc/{}/schedstat", pid), 4096);
  return text ? std::stod(*text) / 1e3 : 0;
}

/// One task after another, two side by side, on whatever works; acknowledged every fifty, as a
/// runner does that commits every twenty milliseconds.
class Feeder {
 public:
  explicit Feeder(os::Env& env) : env_(env), environment_(env.environment()) {
    for (int i = 0; i < 40; ++i)
      environment_.emplace_back(fmt::format("SOME_VARIABLE_{}", i), std::string(60, 'v'));
  }
  const exec::Environment& environment() const { return environment_; }

  void run(exec::Worker& worker, int tasks) {
    int running = 0, ended = 0;
    for (int started = 0; ended < tasks;) {
      for (; running < kWidth && started < tasks; ++started, ++running) launch_on(worker);
      (void)env_.loop().turn(env_.now() + std::chrono::seconds(1));
      messages_.clear();
      worker.take_messages(messages_);
      for (const auto& message : messages_) {
        if (!std::holds_alternative<exec::Ended>(message)) continue;
        --running;
        if (++ended % 50 == 0) worker.acknowledge();
      }
    }
  }

 private:
  void launch_on(exec::Worker& worker) {
    exec::Launch launch{.task = {1},
                        .token = {++token_},
                        .request = {},
                        .argv = {"/bin/true"},
                        .environment = {},
                        .directory = "/"};
    launch.request.resources.set(Known::cpu, 1000);
    launch.request.holder = "bench-1/17";
    launch.environment.emplace_back("BERTH_TASK", fmt::format("bench-1/{}", token_));
    launch.environment.emplace_back("BERTH_TOKEN", fmt::format("{}", token_));
    worker.send(launch);
  }

  os::Env& env_;
  exec::Environment environment_;
  std::int64_t token_ = 0;
  std::vector<exec::FromWorker> messages_;
};

constexpr int kTasks = 500;

void BM_TrueByWorker(benchmark::State& state) {
  const auto env = os::posix_env();
  machine::Machine machine(block());
  machine::Groups groups(*env);
  Feeder feeder(*env);
  exec::ProcessWorker worker(*env, machine, groups, feeder.environment());
  const double before = own_cpu_us();
  for (auto _ : state) feeder.run(worker, kTasks);
  const auto tasks = static_cast<double>(state.iterations()) * kTasks;
  state.counters["cpu_us"] = (own_cpu_us() - before) / tasks;
  state.SetItemsProcessed(state.iterations() * kTasks);
}
BENCHMARK(BM_TrueByWorker)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_TrueByAgent(benchmark::State& state) {
  const auto env = os::posix_env();
  const std::string directory = fmt::format("/tmp/berth-agent-bench.{}", ::getpid());
  Feeder feeder(*env);
  StartOptions options{
      .program = agent_program(*env).value_or(""), .directory = directory, .block = block()};
  std::vector<std::unique_ptr<AgentClient>> clients;
  clients.push_back(LaunchedAgent::start(*env, options, {1, feeder.environment()}));
  settle(*env, clients, env->now() + std::chrono::seconds(10));
  AgentClient& client = *clients.front();
  if (!client.ready()) return state.SkipWithError(client.lost()->message.c_str());
  const std::string text = env->read_file(directory + "/agent.json", 65536).value_or("");
  const auto pid = static_cast<pid_t>(std::stoi(text.substr(text.find(':') + 1)));
  const double own_before = own_cpu_us();
  const double before = own_before + cpu_us_of(*env, pid);
  for (auto _ : state) feeder.run(client, kTasks);
  const auto tasks = static_cast<double>(state.iterations()) * kTasks;
  state.counters["cpu_us"] = (own_cpu_us() + cpu_us_of(*env, pid) - before) / tasks;
  state.counters["runner_us"] = (own_cpu_us() - own_before) / tasks;
  state.SetItemsProcessed(state.iterations() * kTasks);
  client.acknowledge();
  client.finish();
}
BENCHMARK(BM_TrueByAgent)->UseRealTime()->Unit(benchmark::kMillisecond);

/// The lines of one task, written and read.
void BM_ProtocolOfATask(benchmark::State& state) {
  exec::Launch launch{.task = {1},
                      .token = {1LL << 33},
                      .request = {},
                      .argv = {"/bin/true"},
                      .environment = {{"BERTH_TASK", "bench-1/1"}, {"BERTH_TOKEN", "8589934592"}},
                      .directory = "/home/someone/project"};
  launch.request.resources.set(Known::cpu, 1000);
  const exec::Started started{{1}, {1LL << 33}, block(), ""};
  const exec::Ended ended{.task = {1}, .token = {1LL << 33}, .exit_code = 0, .detail = ""};
  for (auto _ : state) {
    benchmark::DoNotOptimize(decode_call(encode(Call(launch))));
    benchmark::DoNotOptimize(decode_answer(encode(1, started)));
    benchmark::DoNotOptimize(decode_answer(encode(2, ended)));
  }
}
BENCHMARK(BM_ProtocolOfATask);

/// A read of a task's output, as it comes worst: bytes of all kinds.
void BM_ProtocolOfOutput(benchmark::State& state) {
  exec::Output output{{1}, {2}, exec::Stream::out, {}};
  std::uint64_t chance = 1;
  for (int i = 0; i < 65536; ++i)
    output.bytes += static_cast<char>((chance = chance * 6364136223846793005 + 1) >> 56);
  for (auto _ : state) benchmark::DoNotOptimize(decode_answer(encode(1, output)));
  state.SetBytesProcessed(state.iterations() * 65536);
}
BENCHMARK(BM_ProtocolOfOutput);

/// From nothing to an agent that has answered, and its end.
void BM_StartAgent(benchmark::State& state) {
  const auto env = os::posix_env();
  int made = 0;
  for (auto _ : state) {
    StartOptions options{
        .program = agent_program(*env).value_or(""),
        .directory = fmt::format("/tmp/berth-agent-bench.{}.{}", ::getpid(), ++made),
        .block = block()};
    std::vector<std::unique_ptr<AgentClient>> clients;
    clients.push_back(LaunchedAgent::start(*env, options, {1, {}}));
    settle(*env, clients, env->now() + std::chrono::seconds(10));
    if (!clients[0]->ready()) return state.SkipWithError(clients[0]->lost()->message.c_str());
    clients[0]->finish();
  }
}
BENCHMARK(BM_StartAgent)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::agent
