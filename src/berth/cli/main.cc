#include <utility>
#include <vector>

#include "berth/cli/commands/complete.h"
#include "berth/cli/program.h"

namespace berth::cli {

#define COMMAND(name, heading) Command name##_command();
#include "berth/cli/commands.inc"
#undef COMMAND

namespace {

std::vector<Command> every_command() {
#define COMMAND(name, heading) name##_command().in(heading),
  std::vector<Command> commands{
#include "berth/cli/commands.inc"
  };
  Command complete = complete_command(commands);
  Command manual = manual_command(commands);
  commands.push_back(std::move(complete));
  commands.push_back(std::move(manual));
  return commands;
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  return berth::cli::run_program(berth::cli::every_command(), count, values);
}
