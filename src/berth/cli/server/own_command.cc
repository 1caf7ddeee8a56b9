#include "berth/cli/server/own_command.h"

#include <array>
#include <csignal>
#include <memory>
#include <optional>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/os/env.h"

namespace berth::cli {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(200);  // whether the client is there
constexpr int kKilled = 128;                                        // and the signal's number
constexpr std::size_t kMostOutput = 256U << 20, kMostError = 64U << 10;

/// A command that runs, on an Env of its own: it is used on the thread that answers.
class Running {
 public:
  static Result<std::unique_ptr<Running>> start(const OwnCommand& command) {
    auto env = os::posix_env();
    std::vector<std::string> argv{command.program};
    argv.insert(argv.end(), command.words.begin(), command.words.end());
    const std::string directory = env->real_path(".").value_or("/");  // it may be gone by now
    BERTH_ASSIGN(auto child, env->spawn({.argv = std::move(argv),
                                         .environment = env->environment(),
                                         .directory = directory,
                                         .cores = {},
                                         .join_files = {}}));
    return std::unique_ptr<Running>(
        new Running(std::move(env), std::move(child), command.is_abandoned));
  }
  ~Running() {
    if (!exit_) (void)env_->signal_group(child_.pid, SIGTERM);
    while (!exit_ && env_->wait({}, env_->now() + std::chrono::milliseconds(10)))
      if (const auto status = env_->reap(child_); !status || *status) break;
  }

  /// The next part of its output; nullopt: it has ended, and error() and code() tell how.
  Result<std::optional<std::string>> next() {
    std::string part(1U << 16, '\0');
    for (bool out_open = true; out_open || err_open_;) {
      std::vector<os::Watch> watches;
      if (out_open) watches.push_back({.fd = child_.out.number()});
      if (err_open_) watches.push_back({.fd = child_.err.number()});
      BERTH_TRY(wait(watches));
      BERTH_ASSIGN(const auto got, env_->read_some(child_.out, part));
      if (got && *got > 0) {
        part.resize(*got);
        return part;
      }
      out_open = !got;
      std::array<char, 4096> said;
      BERTH_ASSIGN(const auto told, env_->read_some(child_.err, said));
      if (told && *told == 0) err_open_ = false;
      if (told && error_.size() < kMostError) error_.append(said.data(), *told);
    }
    while (!exit_) {
      std::array watches{os::Watch{.fd = child_.exited.number()}};
      BERTH_TRY(wait(watches));
      BERTH_ASSIGN(exit_, env_->reap(child_));
    }
    return std::nullopt;
  }

  std::string error() const {
    const auto begin = error_.rfind("berth: ");
    return std::string(
        trim(begin == std::string::npos ? error_ : std::string_view(error_).substr(begin + 7)));
  }
  int code() const { return exit_->signal != 0 ? kKilled + exit_->signal : exit_->code; }

 private:
  Running(std::unique_ptr<os::Env> env, os::Child child, std::function<bool()> is_abandoned)
      : env_(std::move(env)), child_(std::move(child)), is_abandoned_(std::move(is_abandoned)) {}

  /// Waits for one of them for a while. Fails once nobody waits for the answer.
  Status wait(std::span<os::Watch> watches) {
    if (is_abandoned_ && is_abandoned_())
      return fail(ErrorKind::interrupted, "the client has left, or the server ends");
    return env_->wait(watches, env_->now() + kBetweenLooks);
  }

  std::unique_ptr<os::Env> env_;
  os::Child child_;
  std::function<bool()> is_abandoned_;
  std::string error_;
  bool err_open_ = true;
  std::optional<os::ExitStatus> exit_;
};

}  // namespace

api::Reply answer_of(const OwnCommand& command) {
  auto started = Running::start(command);
  if (!started) return api::failed(started.error(), 500);
  const std::shared_ptr<Running> running = *std::move(started);
  api::Reply reply{.status = 200, .body = {}, .type = command.type, .ends_line = false};
  for (;;) {
    auto part = running->next();
    if (!part) return api::failed(part.error(), 500);
    if (!*part) break;
    if (reply.body.size() + (*part)->size() > kMostOutput)
      return api::failed({ErrorKind::full, "the answer is too large"}, 413);
    reply.body += **part;
    if (!command.streams) continue;
    reply.more = [running]() -> Result<std::optional<std::string>> {
      BERTH_ASSIGN(auto next, running->next());
      if (!next && running->code() != 0) return fail(ErrorKind::io, "{}", running->error());
      return next;
    };
    return reply;
  }
  // One that has a document has said in it what it found, whatever its code.
  if (running->code() != 0 && (reply.body.empty() || running->code() >= kKilled))
    return running->code() == 2 ? api::failed({ErrorKind::usage, running->error()})
                                : api::failed({ErrorKind::io, running->error()});
  if (reply.body.empty() && command.type == std::string_view("application/json"))
    reply.body = JsonWriter().object().add("said", running->error()).end().take() + "\n";
  return reply;
}

}  // namespace berth::cli
