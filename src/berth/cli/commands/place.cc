// berth topo, berth place: which GPUs belong together, and which a job would get.
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/render/machines/placement.h"

namespace berth::cli {
namespace {

struct TopoOptions {
  Output output;
  std::string topology;

  void add_to(Options& options) {
    output.add_to(options);
    add_topology(options, topology);
    options.example("berth topo --topology dgx1-v100");
  }
};

struct PlaceOptions {
  Output output;
  engine::PlacementRequest request;

  void add_to(Options& options) {
    output.add_to(options);
    options.value("K", request.count, "Number of GPUs").required();
    add_topology(options, request.topology);
    options
        .value("--available", request.available,
               "Choose from these: indices such as 0,2-5, or UUIDs (default: free GPUs)")
        .named("GPUS");
    options
        .flag("--all", request.all, "Choose from all GPUs of this machine, allocated ones included")
        .excludes("--available");
    options.value("--require", request.require, "Include these GPUs").named("GPUS");
    options
        .value("--policy", request.policy,
               "packed (default), best-effort, simple, static-dgx1-pascal, static-dgx1-volta or "
               "static-dgx2")
        .named("POLICY");
    options.value("--objective", request.objective, "What to maximize: sum (default), min or ring")
        .named("OBJECTIVE");
    options.footer(
        "Examples:\n"
        "  berth place 2          from the free GPUs of this machine\n"
        "  berth place 2 --all    from all GPUs\n"
        "  berth place 2 --topology dgx1-v100 --available 0,2-5 --require 4");
  }
};

Result<int> topo(os::Env& env, const TopoOptions& options) {
  return options.output.print_or_fail(engine::read_topology(env, options.topology));
}

Result<int> place(os::Env& env, const PlaceOptions& options) {
  return options.output.print_or_fail(engine::place_devices(env, options.request));
}

}  // namespace

Command topo_command() {
  return command("topo", "Show the GPUs of a machine and how they are connected", topo);
}

Command place_command() {
  return command("place", "Show which K GPUs a job would get", place);
}

}  // namespace berth::cli
