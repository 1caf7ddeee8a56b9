// The current use of this machine and of the clusters, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/machines/cluster_use.h"
#include "berth/render/table.h"

namespace berth::render {

/// A table after an empty line; "" without clusters.
std::string to_text(const std::vector<engine::ClusterUse>& clusters, const View& view = {});

/// The page of berth top --once: this machine, and the clusters if there are any.
std::string to_text(const engine::CurrentUse& use, const View& view);
/// The report on this machine, and if there are clusters: "clusters":[{"name","kind","hosts":
/// [{"host","free","total","holders","state"}],"error"}].
std::string to_json(const engine::CurrentUse& use);

}  // namespace berth::render
