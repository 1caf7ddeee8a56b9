#include "berth/render/runs/outside_trials.h"

#include "berth/base/json_writer.h"
#include "berth/engine/queries/run_json.h"

namespace berth::render {

std::string to_json(const engine::WaitingTrials& waiting) {
  return engine::show_json(waiting.run, waiting.trials);
}

std::string to_json(const engine::StoredResult& stored) {
  JsonWriter json;
  json.object().add("version", 1).key("told").array().value(stored.trial);
  return json.end().end().take() + "\n";
}

std::string to_text(const engine::StoredResult&, const View&) {
  return "";
}

std::string to_json(const engine::EnqueuedPoints& added) {
  JsonWriter json;
  json.object().add("version", 1).key("enqueued").array();
  for (const auto& point : added.points)
    json.raw(experiment::values_json(point, added.program.types));
  return json.end().end().take() + "\n";
}

std::string to_text(const engine::EnqueuedPoints& added, const View&) {
  std::string text;
  for (const auto& trial : added.trials) text += trial + "\n";
  return text;
}

}  // namespace berth::render
