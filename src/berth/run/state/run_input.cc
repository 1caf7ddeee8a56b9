#include "berth/run/state/run_input.h"

#include <array>

#include "berth/base/units.h"
#include "berth/os/standard_input.h"

namespace berth::run {
namespace {

constexpr std::string_view kWhat = "keep the standard input";

/// Removes the copies of processes that died.
void remove_abandoned(os::Env& env, const std::string& directory) {
  const auto names = env.list(directory);
  if (!names) return;
  for (const auto& name : *names) {
    const std::string path = directory + "/" + name;
    if (const auto unused = env.lock_existing(path)) (void)env.remove_file(path);
  }
}

/// Copies until the end.
Status copy(os::Env& env, const os::Fd& from, const os::Fd& to) {
  constexpr std::size_t kPart = 1U << 16;
  std::string buffer(kPart, '\0');
  for (std::int64_t total = 0;;) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = from.number()}};
    BERTH_TRY(env.wait(watches, std::nullopt));
    if (env.stop_signals() > 0)
      return fail(ErrorKind::interrupted, "stopped while the standard input was read");
    const auto got = env.read_some(from, buffer);
    if (!got) return std::unexpected(within("read the standard input", got.error()));
    if (!*got) continue;
    if (**got == 0) return {};
    total += static_cast<std::int64_t>(**got);
    if (const auto status = env.write_all(to, std::string_view(buffer).substr(0, **got)); !status)
      return fail(status.error().kind, "{}: {} (it has {} or more, kept until the run is removed)",
                  kWhat, status.error().message, format_bytes(total));
  }
}

}  // namespace

std::string input_file(const std::string& run_directory) {
  return run_directory + "/stdin";
}

Status check_input(os::Env& env, const std::string& input) {
  if (input == "-") return {};
  const auto status = env.status(input);
  if (!status) return std::unexpected(status.error());
  if (status->kind == os::FileStatus::Kind::directory)
    return fail(ErrorKind::invalid, "{}: is a directory; expected a file", input);
  return {};
}

Result<TakenInput> TakenInput::take(Context& context, const std::string& input) {
  os::Env& env = *context.env;
  BERTH_TRY(check_input(env, input));
  const std::string directory = context.state_directory + "/input";
  BERTH_TRY(env.make_directory(directory, 0700));
  remove_abandoned(env, directory);
  const std::string path = fmt::format("{}/{}-{:016x}", directory, env.self().pid, env.random());
  BERTH_ASSIGN(os::Fd lock, env.lock(path, false));
  TakenInput taken(env, path, std::move(lock));
  BERTH_ASSIGN(const os::Fd to, env.open_append(path, 0600));
  os::Fd from;
  if (input == "-") {
    BERTH_ASSIGN(from, os::open_standard_input(env));
  } else {
    BERTH_ASSIGN(from, env.open_read(input));
  }
  BERTH_TRY(copy(env, from, to));
  BERTH_TRY(env.sync(path));
  return taken;
}

TakenInput::TakenInput(TakenInput&& other) noexcept
    : env_(other.env_), path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TakenInput::~TakenInput() {
  if (!path_.empty()) (void)env_->remove_file(path_);
}

Status TakenInput::keep(Context& context, const std::string& run_name) {
  const std::string directory = run_directory(context, run_name);
  BERTH_TRY(env_->make_directory(directory, 0700));
  BERTH_TRY(env_->rename(path_, input_file(directory)));
  path_.clear();
  return env_->sync(directory);
}

}  // namespace berth::run
