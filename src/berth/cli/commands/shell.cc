// berth shell: the directory and the environment of a task, for whoever looks why it failed.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "berth/cli/commands/shared_options.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/queries.h"
#include "berth/exec/leftovers.h"

namespace berth::cli {
namespace {

struct ShellOptions {
  std::string path;
  std::vector<std::string> words;

  void add_to(Options& options) {
    add_run(options, path, "RUN/TASK", "Task, such as count-2/map/A");
    options.after_dashes(words);
    options.usage("[OPTIONS] RUN/TASK -- COMMAND [ARGUMENT...]");
    options.footer(
        "A failed task of a flow leaves its directory; files in it may have changed since.\n"
        "\n"
        "Examples:\n"
        "  berth shell count-2/map/A            open a shell\n"
        "  berth shell count-2/map/A -- ls -l   run one command");
  }
};

Result<int> open_shell(os::Env& env, const ShellOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto task, engine::task_place(context, options.path));
  const auto& [id, report] = task;
  if (report.directory.empty())
    return fail(ErrorKind::not_found,
                "{}: its directory is not on this machine: it ran on another machine, or did not "
                "fail; to see what it printed: berth logs {}",
                id, id);
  if (::chdir(report.directory.c_str()) != 0)
    return fail(ErrorKind::denied, "{}: {}", report.directory, std::strerror(errno));
  for (const auto& [name, value] : report.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv(exec::kShellVariable.data(), id.c_str(), 1);  // a retry must not end what a person does
  std::vector<std::string> words = options.words;
  if (words.empty()) {
    print_error(fmt::format("{} ran here:\n  {}\n", id, report.command));
    words.push_back(env.variable("SHELL").value_or("/bin/sh"));
  }
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return fail(ErrorKind::not_found, "{}: {}", words[0], std::strerror(errno));
}

}  // namespace

Command shell_command() {
  return command("shell", "Open a shell in the directory of a task", open_shell);
}

}  // namespace berth::cli
