#include "berth/cli/plan_start.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/fleet_input.h"
#include "berth/render/table.h"

namespace berth::cli {

void StartChoices::add_to(Options& options) {
  options
      .flag("--start", wanted,
            "Start the planned servers, one background run each; end one with berth stop")
      .excludes("--manifests");
  options
      .list("--on", clusters,
            "With --start: run on these clusters (default: this machine); see berth cluster list")
      .split_at(',')
      .one_at_a_time()
      .named("CLUSTER");
}

Status StartChoices::check() const {
  if (wanted || clusters.empty()) return {};
  return fail(ErrorKind::usage, "--on: needs --start");
}

std::string started_text(const std::vector<engine::StartedRun>& started) {
  if (started.empty()) return {};
  render::Table table({"server", "accelerator", "run", "replicas", "GPUs each", "ports"});
  for (const auto& [group, run, ports] : started)
    table.add({group.server, fleet::with_role(group.accelerator, group.role), run,
               fmt::format("{}", group.replicas), fmt::format("{}", group.accelerators),
               ports.empty() ? "-" : render::ranges_text(ports)});
  return "\n" + render::to_text(table) +
         "\nberth runs --label server; berth logs -f RUN; berth stop RUN\n";
}

std::string started_json(const std::vector<engine::StartedRun>& started, const std::string& plan) {
  JsonWriter json;
  json.object().add("version", 1).key("plan").raw(plan).key("started").array();
  for (const auto& [group, run, ports] : started)
    json.object()
        .add("server", group.server)
        .add("accelerator", group.accelerator)
        .add("role", fleet::name(group.role))
        .add("run", run)
        .add("replicas", group.replicas)
        .add("accelerators", group.accelerators)
        .key("ports")
        .list(ports)
        .end();
  return json.end().end().take();
}

}  // namespace berth::cli
