#include "berth/render/runs/results.h"

#include "berth/engine/queries/run_json.h"

namespace berth::render {

std::string to_json(const engine::RunResults& results) {
  return engine::show_json(results.shown, results.tasks);
}

}  // namespace berth::render
