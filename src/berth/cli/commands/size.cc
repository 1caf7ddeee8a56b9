// berth size: one server of a fleet by itself. What each accelerator would be for it, what a
// replica takes at most and why, how it gets along with what it has, and its best move.
#include "berth/render/fleets/size.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/fleets/server_size.h"

namespace berth::cli {
namespace {

struct SizeOptions {
  Output output;
  std::string path;
  engine::SizeChoices choices;

  void add_to(Options& options) {
    auto& [server, question, load, model, percentiles, sets] = choices;
    output.add_to(options);
    add_fleet(options, path);
    options.value("SERVER", server, "Server of the fleet").required();
    options
        .value("--on", question.accelerator,
               "Use only this accelerator, even if the server pins another (default: each)")
        .named("ACCELERATOR");
    options.value("--load", load, "Requests per minute (default: its arrivalRate)").named("RATE");
    options
        .value("--replicas", question.replicas, "Number of replicas (default: what the load needs)")
        .between(1, 10'000'000);
    options
        .list("--set", sets, "Change a value: server.NAME.avgOutTokens, accelerator.NAME.cost, ...")
        .named("PATH=VALUE");
    options.value("--model", model, "Performance model (default: as in the document)")
        .named("MODEL")
        .one_of({"calibrated", "reference"});
    add_percentiles(options, percentiles);
    options.footer(
        "Exits with 3 if no option meets the targets.\n"
        "\n"
        "Examples:\n"
        "  berth size examples/fleet assistant                every accelerator\n"
        "  berth size examples/fleet assistant --load 1500    is the present size enough?\n"
        "  berth size examples/fleet assistant --on H100 --replicas 1");
  }
};

Result<int> size(os::Env& env, const SizeOptions& given) {
  BERTH_ASSIGN(auto system, engine::read_fleet(env, given.path, print_notes));
  BERTH_ASSIGN(const auto found,
               engine::size_server(std::move(system), given.choices, print_notes));
  given.output.print(found);
  if (found.best) return 0;
  return fail(ErrorKind::impossible, "{}: {}", given.choices.server, fleet::why_no_best(found));
}

}  // namespace

Command size_command() {
  return command("size", "Size one server of a fleet on each accelerator", size);
}

}  // namespace berth::cli
