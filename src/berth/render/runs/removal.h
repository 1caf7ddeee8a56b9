// What was removed, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/runs/removal.h"
#include "berth/render/table.h"

namespace berth::render {

struct Removed {
  std::vector<std::string> runs;
};
std::string to_text(const Removed& removed, const View& view);
std::string to_json(const Removed& removed);  ///< {"version":1,"removed":["digits-1"]}

std::string to_text(const engine::Pruned& pruned, const View& view);
/// {"version":1,"removed":[…]}, or "would_remove" of a dry run.
std::string to_json(const engine::Pruned& pruned);

}  // namespace berth::render
