// The metrics of runs, the store and this machine, in the text format that Prometheus scrapes.
#pragma once

#include <string>

#include "berth/engine/queries/metrics.h"

namespace berth::render {

std::string to_text(const engine::Metrics& metrics);

}  // namespace berth::render
