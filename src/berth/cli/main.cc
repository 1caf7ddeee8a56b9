#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "berth/cli/commands.h"
#include "berth/cli/migrate.h"
#include "berth/cli/table.h"
#include "berth/os/log.h"

namespace {

using berth::Result;
using berth::cli::Arguments;

constexpr std::pair<const char*, Result<int> (*)(berth::os::Env&, const Arguments&)> kCommands[] = {
    {"", berth::cli::overview_command},       {"run", berth::cli::run_command},
    {"resume", berth::cli::resume_command},   {"stop", berth::cli::stop_command},
    {"runs", berth::cli::runs_command},       {"show", berth::cli::show_command},
    {"best", berth::cli::best_command},       {"why", berth::cli::why_command},
    {"logs", berth::cli::logs_command},       {"machine", berth::cli::machine_command},
    {"topo", berth::cli::topo_command},       {"place", berth::cli::place_command},
    {"retry", berth::cli::retry_command},     {"rm", berth::cli::rm_command},
    {"prune", berth::cli::prune_command},     {"wait", berth::cli::wait_command},
    {"top", berth::cli::top_command},         {"watch-devices", berth::cli::watch_devices_command},
    {"trace", berth::cli::trace_command},     {"cache", berth::cli::cache_command},
    {"plan", berth::cli::plan_command},       {"serve", berth::cli::serve_command},
    {"agent", berth::cli::agent_command},     {"compare", berth::cli::compare_command},
    {"cluster", berth::cli::cluster_command}, {"ask", berth::cli::ask_command},
    {"tell", berth::cli::tell_command},       {"migrate", berth::cli::migrate_command},
};

Result<int> dispatch(int count, char** values) {
  BERTH_ASSIGN(const auto parsed, berth::cli::parse_arguments(count, values));
  if (const auto* printout = std::get_if<berth::cli::Printout>(&parsed)) {
    std::fputs(printout->text.c_str(), stdout);
    return 0;
  }
  const auto& arguments = std::get<Arguments>(parsed);
  berth::os::make_private();
  const auto env = berth::os::posix_env();
  BERTH_TRY(berth::os::open_log(*env));
  for (const auto& [name, command] : kCommands)
    if (arguments.command == name) return command(*env, arguments);
  return berth::fail(berth::ErrorKind::usage, "unknown command '{}'", arguments.command);
}

}  // namespace

int main(int count, char** values) {
  try {
    const auto code = dispatch(count, values);
    if (code && *code == 0 && berth::cli::print_errno() != 0) {
      std::fprintf(stderr, "berth: standard output: %s\n",
                   std::strerror(berth::cli::print_errno()));
      return berth::exit_code(berth::ErrorKind::full);
    }
    if (code) return *code;
    std::fprintf(stderr, "berth: %s\n", code.error().message.c_str());
    return berth::exit_code(code.error().kind);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: %s\n", error.what());  // out of memory, say
    return 3;
  }
}
