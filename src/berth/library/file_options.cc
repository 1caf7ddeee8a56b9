#include "berth/library/file_options.h"

#include "berth/engine/runs/request_json.h"

namespace berth::library {

Result<FileOptions> file_options(std::string_view json) {
  BERTH_ASSIGN(const Field map, Field::parse(json, "options"));
  BERTH_TRY(
      map.expect_keys({"name", "parallel", "set", "elsewhere", "labels", "clusters", "retries",
                       "timeout", "allow_failures", "targets", "force", "warm_start"}));
  engine::RunRequest request;
  BERTH_TRY(engine::read_options(map, request));
  FileOptions options{.name = request.name,
                      .parallel = request.parallel,
                      .elsewhere = request.runs_elsewhere,
                      .labels = {request.labels.begin(), request.labels.end()},
                      .clusters = request.clusters,
                      .retries = request.retries,
                      .allow_failures = request.allow_failures,
                      .targets = request.flow.targets,
                      .force = request.flow.force,
                      .warm_start = request.warm_start};
  for (const auto& [name, values] : request.flow.set)
    for (const auto& value : values) options.set.emplace_back(name, value);
  if (request.timeout)
    options.timeout = std::chrono::ceil<std::chrono::milliseconds>(*request.timeout);
  return options;
}

}  // namespace berth::library
