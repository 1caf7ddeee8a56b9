#include "berth/render/runs/flow_graph.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "berth/base/json_writer.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_record.h"
#include "berth/flow/elsewhere.h"
#include "berth/render/table.h"

namespace berth::render {
namespace {

std::string number(std::int64_t count) {
  return count == 0 ? "-" : fmt::format("{}", count);
}

/// A name within a quoted string of Graphviz.
std::string graphviz_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string standing(const engine::StepCounts& step) {
  if (!step.known) return "not known yet";
  return step.counts.total() > 0 ? engine::counts_text(step.counts) : "no tasks";
}

const char* colour(const store::Counts& counts) {
  if (counts.failed > 0) return "salmon";
  if (counts.running > 0) return "lightblue";
  if (counts.waiting + counts.stopped > 0) return "white";
  return "palegreen";
}

std::string graph_dot(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps) {
  std::string text = fmt::format("digraph {} {{\n  rankdir=LR;\n", graphviz_quoted(flow.name));
  text += "  node [shape=box, style=filled];\n";
  for (std::size_t i = 0; i < flow.steps.size(); ++i)
    text += fmt::format("  {} [label={}, fillcolor={}];\n", graphviz_quoted(steps[i].name),
                        graphviz_quoted(steps[i].name + ": " + standing(steps[i])),
                        steps[i].known ? colour(steps[i].counts) : "white");
  for (const auto& step : flow.steps)
    for (const auto before : step.after)
      text += fmt::format("  {} -> {};\n",
                          graphviz_quoted(flow.steps[static_cast<std::size_t>(before.value)].name),
                          graphviz_quoted(step.name));
  return text + "}\n";
}

}  // namespace

std::string steps_table(const std::vector<engine::StepCounts>& steps) {
  Table table(
      {"step", "tasks", "done", "cached", "skipped", "running", "failed", "waiting", "stopped"});
  for (const auto& [name, counts, known] : steps)
    table.add({name, known ? fmt::format("{}", counts.total()) : "?", number(counts.done),
               number(counts.cached), number(counts.skipped), number(counts.running),
               number(counts.failed), number(counts.waiting), number(counts.stopped)});
  return to_text(table);
}

std::string graph_text(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps) {
  std::string text;
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    const flow::Step& step = flow.steps[i];
    text += fmt::format("{}: {}\n", step.name, standing(steps[i]));
    for (const auto before : step.after)
      text += fmt::format("  <- {}\n", flow.steps[static_cast<std::size_t>(before.value)].name);
    for (const auto& input : step.in)
      for (const auto& source : input.sources)
        if (!source.step) text += fmt::format("  <- file {}\n", without_secrets(source.text));
    for (const auto& output : step.out)
      text += fmt::format("  -> {}\n", flow::shown_path(output, output.path));
  }
  return text;
}

std::string to_text(const FlowGraph& graph, const View&) {
  return graph.is_dot ? graph_dot(graph.flow, graph.steps) : graph_text(graph.flow, graph.steps);
}

std::string to_json(const FlowGraph& graph) {
  const auto& [flow, steps, tasks, is_dot] = graph;
  std::map<std::string_view, std::vector<double>> took;  // seconds, by step
  for (const auto& task : tasks)
    if (task.state == store::TaskState::done && task.started && task.ended)
      took[engine::step_name(task.label)].push_back(
          std::chrono::duration<double>(*task.ended - *task.started).count());
  JsonWriter json;
  json.object().add("version", 1).key("steps").array();
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    const flow::Step& step = flow.steps[i];
    json.object().add("name", step.name).key("after").array();
    for (const auto before : step.after)
      json.value(flow.steps[static_cast<std::size_t>(before.value)].name);
    json.end().key("files").array();
    for (const auto& input : step.in)
      for (const auto& source : input.sources)
        if (!source.step) json.value(without_secrets(source.text));
    json.end().key("writes").array();
    for (const auto& output : step.out) json.value(flow::shown_path(output, output.path));
    const store::Counts& counts = steps[i].counts;
    json.end().add("known", steps[i].known).key("counts").object();
    json.add("waiting", counts.waiting).add("running", counts.running).add("done", counts.done);
    json.add("cached", counts.cached).add("skipped", counts.skipped);
    json.add("failed", counts.failed).add("stopped", counts.stopped).end().key("seconds");
    auto& seconds = took[step.name];
    std::ranges::sort(seconds);
    if (seconds.empty())
      json.raw("null").end();
    else
      json.object()
          .add("sum", std::accumulate(seconds.begin(), seconds.end(), 0.0))
          .add("median", seconds[seconds.size() / 2])
          .add("longest", seconds.back())
          .end()
          .end();
  }
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
