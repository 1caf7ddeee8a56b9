#include "berth/run/flows/taken_outputs.h"

namespace berth::run {
namespace {

std::unexpected<Error> not_there(const std::string& path, const std::string& task) {
  return fail(
      ErrorKind::not_found,
      "--only: {} does not exist; {} makes it: run that first, or give the target without --only",
      path, task);
}

/// The outputs of a task, by where they lie. One that reads what was not there has no spec.
Result<std::vector<flow::TaskOutput>> outputs_of(const flow::Graph& graph, flow::TaskIndex task) {
  auto spec = graph.spec(task);
  if (!spec) return std::unexpected(spec.error());
  return std::move(spec->outputs);
}

}  // namespace

Status take_outputs(flow::Graph& graph, Inputs& inputs, flow::TaskIndex task) {
  const std::size_t count =
      graph.flow().steps[static_cast<std::size_t>(graph.step_of(task).value)].out.size();
  std::vector<fileset::Fileset> contents(count);
  if (!graph.is_read(task)) return graph.finish(task, std::move(contents));
  BERTH_ASSIGN(const auto outputs, outputs_of(graph, task));
  for (std::size_t i = 0; i < count; ++i) {
    auto content = inputs.get(outputs[i].url.empty() ? outputs[i].path : outputs[i].url);
    if (!content && content.error().kind == ErrorKind::not_found)
      return not_there(outputs[i].path, graph.name(task));
    if (!content) return std::unexpected(content.error());
    contents[i] = *std::move(content);
  }
  return graph.finish(task, std::move(contents));
}

Status check_taken(os::Env& env, flow::Graph& graph, const std::string& directory) {
  for (;;) {
    BERTH_ASSIGN(const auto ready, graph.take_ready());
    bool finished = false;
    for (const auto task : ready.taken) {
      if (!graph.is_read(task)) {
        const auto& step = graph.flow().steps[static_cast<std::size_t>(graph.step_of(task).value)];
        BERTH_TRY(graph.finish(task, std::vector<fileset::Fileset>(step.out.size())));
        finished = true;
        continue;
      }
      BERTH_ASSIGN(const auto outputs, outputs_of(graph, task));
      for (const auto& output : outputs)
        if (output.url.empty() && !env.status(directory + "/" + output.path))
          return not_there(output.path, graph.name(task));
    }
    if (!finished) return {};
  }
}

}  // namespace berth::run
