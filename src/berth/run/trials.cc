// The trials of an experiment, or the one task of a command.
#include <algorithm>

#include "berth/run/workload.h"

namespace berth::run {
namespace {

constexpr std::string_view kParameterFile = "params_file";

class Trials final : public Workload {
 public:
  Trials(Site& site, const store::RunRecord& record, experiment::Program program)
      : env_(*site.env),
        directory_(run_directory(site, record.name)),
        record_(record),
        program_(std::move(program)),
        manner_{.parallel = program_.parallel,
                .seed = program_.search.seed,
                .stop_on_failure = program_.stop_on_failure,
                .one_success_is_enough = !program_.stop_on_failure,
                .outlive = program_.outlive,
                .in_turn = false,
                .most = program_.resources,
                .goal = program_.goal,
                .steps = {}} {}

  const Manner& manner() const override { return manner_; }

  Wants wants(const store::TaskRecord&) const override {
    return {program_.resources, program_.slot_sizes, program_.priority, program_.retries};
  }

  Result<exec::Launch> launch(const store::TaskRecord& task, Token token) override {
    auto environment = inherited_environment(env_);
    for (const auto& [name, value] : program_.environment) set(environment, name, value);
    for (const auto& [name, value] : task.params) set(environment, parameter_variable(name), value);
    name_task(environment, directory_, record_, task, token);
    const auto named = exec::placeholders(program_.run);
    if (std::ranges::find(named, kParameterFile) != named.end()) {
      BERTH_TRY(env_.make_directory(directory_ + "/params", 0700));
      BERTH_TRY(env_.replace_file(parameter_file(task), experiment::values_json(task.params) + "\n",
                                  0600));
    }
    return exec::Launch{
        .task = task.number,
        .token = token,
        .request = {program_.resources, record_.name + "/" + task.label, program_.slot_sizes},
        .argv = exec::command_line(program_.run,
                                   [&](std::string_view name) { return value_of(task, name); }),
        .environment = std::move(environment),
        .directory = record_.directory,
        .timeout = program_.timeout,
        .grace = program_.grace};
  }

 private:
  std::optional<std::string> value_of(const store::TaskRecord& task, std::string_view name) const {
    if (name == kParameterFile) return parameter_file(task);
    for (const auto& [param, value] : task.params)
      if (param == name) return value;
    return std::nullopt;
  }
  std::string parameter_file(const store::TaskRecord& task) const {
    return fmt::format("{}/params/{}.json", directory_, task.number.value);
  }

  os::Env& env_;
  const std::string directory_;  // the run's own
  const store::RunRecord record_;
  const experiment::Program program_;
  const Manner manner_;
};

}  // namespace

std::unique_ptr<Workload> trials(Site& site, const store::RunRecord& record,
                                 experiment::Program program) {
  return std::make_unique<Trials>(site, record, std::move(program));
}

}  // namespace berth::run
