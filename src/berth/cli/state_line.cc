#include "berth/cli/state_line.h"

#include <fmt/format.h>

#include <string>

#include "berth/cli/print.h"
#include "berth/engine/run_record.h"

namespace berth::cli {

void print_state_line(const store::RunRecord& run, std::string_view state) {
  print(fmt::format("{}  ", run.name));
  print_exact(has_colours() ? render::state_in_colour(state) : std::string(state));
  print(fmt::format(": {}\n", engine::counts_and_error(run)));
}

}  // namespace berth::cli
