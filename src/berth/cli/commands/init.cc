// berth init: a first file for the working directory.
#include "berth/cli/output.h"
#include "berth/engine/new_file.h"
#include "berth/render/new_file.h"

namespace berth::cli {
namespace {

struct InitOptions {
  Output output;
  engine::NewFileRequest request;

  void add_to(Options& options) {
    output.add_to(options);
    options.value("FILE", request.file,
                  "File to write (default: sweep.yaml, flow.yaml or fleet.json)");
    options
        .value("--kind", request.kind,
               "Write an experiment, flow or fleet (default: an experiment if there is a script, a "
               "flow if there are several files of one type)")
        .named("KIND")
        .one_of({"experiment", "flow", "fleet"});
    options.value("--script", request.script, "Script that the experiment runs").named("FILE");
    options.footer(
        "An existing file is never overwritten.\n"
        "\n"
        "Examples:\n"
        "  berth init\n"
        "  berth init --script train.py lr.yaml");
  }
};

Result<int> init(os::Env& env, const InitOptions& options) {
  return options.output.print_or_fail(engine::write_new_file(env, options.request));
}

}  // namespace

Command init_command() {
  return command("init", "Write a commented first file for the current folder", init);
}

}  // namespace berth::cli
