// One server of a fleet, sized on each accelerator, as text and JSON.
#pragma once

#include <string>

#include "berth/fleet/solver/server_size.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const fleet::ServerSize& size, const View& view);
/// As fleet::size_json().
std::string to_json(const fleet::ServerSize& size);

}  // namespace berth::render
