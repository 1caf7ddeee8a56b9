// The ten most used types and fields of the flow runner, written with Berth.
// docs/how-to/moving/runner.md lists all of them.
// A comment that has only names marks what the code replaces.
#include <berth/run.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "../cpp/expect.h"

extern char** environ;

berth::Resources one_core() {
  berth::Resources resources;
  resources.set(berth::Known::cpu, 1000);
  return resources;
}

// Cluster, StaticCluster
class Hosts final : public berth::StaticCluster {
 public:
  Hosts() : StaticCluster({{"left", one_core()}, {"right", one_core()}}) {}

  // Cluster.Allocate
  berth::Result<berth::Alloc> allocate(const berth::Wish& wish) override {
    // Runner.Labels
    for (const auto& [name, value] : wish.labels) labels += name + "=" + value + " ";
    return StaticCluster::allocate(wish);
  }
  berth::Status start(const berth::Alloc& /*alloc*/, const berth::Attempt& attempt,
                      berth::Reporter reporter) override {
    auto words = attempt.argv;
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, attempt.directory.c_str());
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return std::unexpected(berth::Error{berth::ErrorKind::not_found, words[0]});
    threads_.emplace_back([pid, reporter] {
      int status = 0;
      waitpid(pid, &status, 0);
      reporter.ended({.exit_code = WEXITSTATUS(status), .signal = WTERMSIG(status)});
    });
    return {};
  }
  void stop(const berth::Alloc&, const berth::Attempt&, bool) override {}

  std::string labels;

 private:
  std::vector<std::jthread> threads_;
};

int main() {
  std::ofstream("flow.yaml") << "name: count\n"
                                "labels: {team: vision}\n"
                                "params: {more: two}\n"
                                "steps:\n"
                                "  words:\n"
                                "    run: echo one {more} > {out.w}\n"
                                "    out: {w: words.txt}\n"
                                "  sum:\n"
                                "    run: wc -w < {in.w} > {out.n}\n"
                                "    in: {w: words.w}\n"
                                "    out: {n: sum.txt}\n";
  auto runs = value(berth::Runs::open());

  // Runner.Flow
  const auto name =
      value(runs.record_file("flow.yaml", {.set = {{"more", "2 3"}}, .elsewhere = true}));
  // State.ID
  EXPECT(name == "count-1");

  // Runner.Cluster
  Hosts hosts;
  value(runs.drive(name, {.cluster = &hosts}));
  EXPECT(hosts.labels.find("team=vision") != std::string::npos);

  // Runner.State
  const auto state = value(runs.find(name));
  // State.Phase, State.Err
  EXPECT(state.state == "done" && state.error.empty());
  std::string sum;
  std::ifstream("sum.txt") >> sum;
  EXPECT(sum == "3");
}
