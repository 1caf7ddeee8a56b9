#include "simulate/played_programs.h"

#include <span>
#include <vector>

#include "berth/base/text.h"
#include "berth/experiment/program.h"
#include "berth/run/drive/runner.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/clusters.h"

namespace berth::simulate {
namespace {

constexpr auto kFolder = "/work";

std::string made(const PlayedFlow& flow, std::int64_t sample) {
  return fmt::format("{}/s{}.made", flow.name, sample);
}

/// What a task writes.
std::string written(const std::string& out, std::span<const std::string> inputs) {
  std::string text = out;
  for (const auto& input : inputs) text += "(" + input + ")";
  return text;
}

std::string text_of(const PlayedFlow& flow) {
  std::vector<std::string> samples;
  for (std::int64_t i = 0; i < flow.samples(); ++i) samples.push_back(fmt::format("s{}", i));
  return fmt::format(
      "name: {0}\n"
      "defaults: {{retries: {1}, resources: {{cpu: 1{2}}}}}\n"
      "steps:\n"
      "  make:\n"
      "    foreach: {{s: [{3}]}}\n"
      "    run: x {{out.o}}\n"
      "    out: {{o: '{0}/{{s}}.made'}}\n"
      "    temp: {4}\n"
      "  turn:\n"
      "    foreach: {{f: make.o}}\n"
      "    run: x {{out.o}} {{f}}\n"
      "    out: {{o: '{0}/{{key}}.turned'}}\n"
      "  join:\n"
      "    in: {{all: turn.o}}\n"
      "    run: x {{out.o}} {{in.all}}\n"
      "    out: {{o: '{0}/joined'}}\n",
      flow.name, flow.retries, flow.takes_gpu ? ", gpu: 1" : "", join(samples, ", "),
      flow.is_temporary);
}

}  // namespace

Result<store::RunRecord> submit_trials(run::Context& context, const Played& trials) {
  BERTH_ASSIGN(
      auto program,
      experiment::read_program(
          fmt::format("name: {}\nrun: ./x {{i}}\nparams: {{i: {{min: 1, max: {}, type: int}}}}\n"
                      "goal: {{metric: score}}\nretries: {}\ngrace: 2s\n"
                      "resources: {{cpu: 1{}}}\n",
                      trials.name, trials.size, trials.retries, trials.takes_gpu ? ", gpu: 1" : ""),
          "t.yaml"));
  program.outlive = trials.outlives;
  return run::submit(context, program, kFolder);
}

Result<store::RunRecord> submit_flow(run::Context& context, const PlayedFlow& flow) {
  run::FlowProgram program;
  program.text = text_of(flow);
  program.file = "t.yaml";
  program.name = flow.name;
  program.outlive = flow.outlives;
  BERTH_TRY(run::check_flow(context, program, kFolder, false));
  return run::submit(context, program, kFolder);
}

void send_to(run::Context& context, const store::RunRecord& run, const std::string& hosts,
             std::uint64_t lease_s, bool outlives) {
  const run::ClusterChoice where{
      .names = {"lab"},
      .own =
          fmt::format("lab: {{kind: ssh, hosts: [{}], lease: {}s, outlive: {}, direct: false}}\n",
                      hosts, lease_s, outlives ? "2m" : "false"),
      .confirmed = true};
  BERTH_ASSERT(run::keep_clusters(context, run, where).has_value());
}

std::optional<std::string> write_files(os::FakeEnv& machine, const os::SpawnSpec& spec,
                                       os::FakeProgram& program) {
  std::vector<std::string> inputs;
  for (const auto& name : std::span(spec.argv).subspan(2)) {
    const auto* found = machine.find(spec.directory + "/" + name);
    if (found == nullptr) return fmt::format("{} is not there", name);
    inputs.push_back(*found);
  }
  if (program.exit_code != 0) return std::nullopt;
  program.at_end = [&machine, text = written(spec.argv.at(1), inputs),
                    path = spec.directory + "/" + spec.argv.at(1),
                    then = std::move(program.at_end)] {
    machine.put(path, text);
    then();
  };
  return std::nullopt;
}

std::optional<std::string> check_files(const os::FakeEnv& home, const PlayedFlow& flow,
                                       bool undisturbed) {
  const auto place = [](const std::string& path) { return fmt::format("{}/{}", kFolder, path); };
  std::vector<std::string> turned;
  for (std::int64_t i = 0; i < flow.samples(); ++i) {
    const auto made_there = home.find(place(made(flow, i)));
    const std::string before = written(made(flow, i), {});
    const auto out = fmt::format("{}/s{}.turned", flow.name, i);
    turned.push_back(written(out, std::span(&before, 1)));
    if (const auto* there = home.find(place(out)); there == nullptr || *there != turned.back())
      return fmt::format("{} holds '{}'", out, there == nullptr ? "nothing" : *there);
    if (!flow.is_temporary && made_there == nullptr) return made(flow, i) + " is not there";
    if (flow.is_temporary && undisturbed && made_there != nullptr)
      return made(flow, i) + " is temporary, and still there";
  }
  const std::string out = flow.name + "/joined";
  const auto* there = home.find(place(out));
  if (there == nullptr || *there != written(out, turned))
    return fmt::format("{} holds '{}'", out, there == nullptr ? "nothing" : *there);
  return std::nullopt;
}

}  // namespace berth::simulate
