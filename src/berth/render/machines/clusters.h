// Remote clusters as text and JSON: their list, their answers, and the results of changes.
#pragma once

#include <string>
#include <vector>

#include "berth/base/json_writer.h"
#include "berth/engine/machines/clusters.h"
#include "berth/render/table.h"

namespace berth::render {

/// Adds the JSON Schemas of the results below to an object.
void add_cluster_schemas(JsonWriter& json);

std::string to_json(const engine::ListedClusters& all);
std::string to_text(const engine::ListedClusters& all, const View& view);

std::string to_json(const engine::ProbedClusters& all);
std::string to_text(const engine::ProbedClusters& all, const View& view);

/// A table; "" for no hosts. Errors follow it.
std::string to_text(const std::vector<engine::HostProbed>& probed, const View& view = {});
std::string to_text(const engine::SlurmProbed& probed, const View& view = {});
std::string to_text(const engine::Ec2Probed& probed, const View& view = {});

std::string to_json(const engine::AddedCluster& added);
std::string to_text(const engine::AddedCluster& added, const View& view);
std::string to_json(const engine::RemovedClusters& removed);
std::string to_text(const engine::RemovedClusters& removed, const View& view);
std::string to_json(const engine::CleanedClusters& all);
std::string to_text(const engine::CleanedClusters& all, const View& view);

}  // namespace berth::render
