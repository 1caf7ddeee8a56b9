#include "berth/cli/commands/flow_choices.h"

#include "berth/engine/runs/flow_parameters.h"

namespace berth::cli {
void FlowChoices::add_to(Options& options) {
  options.list("TARGET", targets,
               "Run only these steps (map) or tasks (map/A) of a flow, and what they need");
  options.list("--until", until, "Run everything up to this step or task, and nothing after it")
      .one_at_a_time()
      .named("TARGET")
      .excludes("TARGET");
  options.list("--only", only, "Run only this step or task; its inputs must exist already")
      .one_at_a_time()
      .named("TARGET")
      .excludes("TARGET")
      .excludes("--until");
  options
      .list("--set", set,
            "Set a parameter of the flow or of a step: lr=0.1, samples=[A,B], train.lr=1")
      .one_at_a_time()
      .named("NAME=VALUE");
  options.value("--params", params, "Read parameters from this YAML file").named("FILE");
  options.list("--force", force, "Run the tasks of this step although they are cached")
      .one_at_a_time()
      .named("STEP");
  options.flag("--overwrite", overwrite, "Replace outputs that are protected or were edited");
}

Result<flow::FlowOptions> FlowChoices::read(os::Env& env) const {
  flow::FlowOptions options{.targets = !only.empty()    ? only
                                       : !until.empty() ? until
                                                        : targets,
                            .only = !only.empty(),
                            .force = force};
  if (!params.empty()) BERTH_TRY(engine::read_parameters(env, params, options));
  for (const auto& text : set) BERTH_TRY(engine::set_parameter(text, options));
  return options;
}

}  // namespace berth::cli
