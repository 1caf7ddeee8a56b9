#include "berth/render/runs/study.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/engine/queries/run_json.h"

namespace berth::render {
namespace {

/// Adds the members of an answer's object.
struct AnswerWriter {
  JsonWriter& json;

  void operator()(std::monostate) const {}
  void operator()(const engine::OpenedStudy& study) const {
    json.add("study", study.name).key("goals").array();
    for (const auto& goal : study.goals)
      json.object()
          .add("metric", goal.metric)
          .add("direction", goal.maximize ? "max" : "min")
          .end();
    json.end();
  }
  void operator()(const engine::StudyTrial& trial) const {
    json.key("trial").raw(trial.task == nullptr
                              ? "null"
                              : trim(engine::task_json(*trial.run, *trial.task, *trial.program)));
  }
  void operator()(const engine::ClaimedTrial& claimed) const {
    (*this)(claimed.trial);
    json.add("token", claimed.token.value);
  }
  void operator()(const engine::NoTrial& none) const {
    json.add(none.is_over ? "over" : "later", none.why);
    if (!none.own.empty()) json.key("own").list(none.own);
  }
  void operator()(const engine::PruneAdvice& advice) const {
    json.key("prune");
    if (advice.because)
      json.value(*advice.because);
    else
      json.raw("null");
  }
  void operator()(const engine::SuggestedValues& suggested) const {
    json.key("values").raw(experiment::values_json(suggested.values, *suggested.types));
  }
  void operator()(const engine::StudyReport&) const {}
};

}  // namespace

std::string to_json(const Error& error) {
  JsonWriter json;
  json.object().key("error").object().add("kind", name(error.kind)).add("message", error.message);
  return json.add("code", exit_code(error.kind)).end().end().take() + "\n";
}

std::string to_json(const Result<engine::StudyAnswer>& answer) {
  if (!answer) return to_json(answer.error());
  JsonWriter json;
  if (const auto* report = std::get_if<engine::StudyReport>(&*answer))
    return std::string(trim(engine::show_json(report->run, *report->trials))) + "\n";
  json.object();
  std::visit(AnswerWriter{json}, *answer);
  return json.end().take() + "\n";
}

}  // namespace berth::render
