#include <vector>

#include "berth/cli/program.h"

namespace berth::cli {

#define COMMAND(name) Command name##_command();
#include "berth/cli/commands.inc"
#undef COMMAND

namespace {

std::vector<Command> every_command() {
#define COMMAND(name) name##_command(),
  return {
#include "berth/cli/commands.inc"
  };
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  return berth::cli::run_program(berth::cli::every_command(), count, values);
}
