#include "berth/run/trials/external_proposer.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/spawn.h"

namespace berth::run {
namespace {

constexpr std::size_t kPipeBuffer = 4096;  // what a pipe that is ready takes without blocking
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kComplaint = 400;
constexpr Duration kComesToItsPipe = std::chrono::milliseconds(5);
constexpr Duration kGoesByItself = std::chrono::milliseconds(500);

}  // namespace

ExternalProposer::~ExternalProposer() {
  if (!child_) return;
  input_.reset();  // the end of its input tells it to go
  std::array<os::Watch, 1> gone{{{.fd = child_->exited.number()}}};
  if (env_.stop_signals() == 0) (void)env_.wait(gone, env_.now() + kGoesByItself);
  (void)env_.signal_group(child_->pid, SIGKILL);
  gone[0].ready = false;
  (void)env_.wait(gone, env_.now() + kGoesByItself);
  (void)env_.reap(*child_);
  (void)env_.remove_file(options_.pipe);
}

ExternalProposer::ExternalProposer(os::Env& env, Options options)
    : env_(env), options_(std::move(options)), late_(env.loop(), [this] {
        keep(std::unexpected(
            error(fmt::format("did not answer within {}", format_duration(options_.timeout)))));
      }) {}

void ExternalProposer::send_line(std::string_view line) {
  unsent_ += line;
  keep({});
}

void ExternalProposer::ask(std::string_view line) {
  asked_ = true;
  late_.set(env_.now() + options_.timeout);
  if (!child_) keep(start());
  send_line(line);
}

/// What has come of something; the loop waits for what follows from it.
void ExternalProposer::keep(Status status) {
  if (!status && !failed_) failed_ = std::move(status).error();
  const bool answered = failed_ || received_.find('\n') != std::string::npos;
  if (asked_ && answered) {
    news_ = true;
    late_.set(std::nullopt);
  }
  if (!child_) return;
  prints_.watch(asked_ && !answered ? child_->out.number() : -1);
  takes_.watch(input_ && !unsent_.empty() && !failed_ ? input_->number() : -1,
               os::Poll::For::writing);
}

Result<std::optional<std::string>> ExternalProposer::answer() {
  using Line = std::optional<std::string>;
  news_ = false;
  const auto end = received_.find('\n');
  if (end == std::string::npos && failed_) return std::unexpected(*failed_);
  if (end == std::string::npos) return Line{};
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  asked_ = false;
  return Line{std::move(line)};
}

/// Its input is a named pipe, made and opened by itself: once it is there, we write to it.
Status ExternalProposer::start() {
  (void)env_.remove_file(options_.pipe);
  std::vector<std::string> argv{"/bin/sh", "-c", R"(mkfifo -m 600 "$0" && exec "$@" < "$0")",
                                options_.pipe};
  argv.insert(argv.end(), options_.argv.begin(), options_.argv.end());
  BERTH_ASSIGN(child_, env_.spawn({.argv = argv,
                                   .environment = options_.environment,
                                   .directory = options_.directory,
                                   .cores = {},
                                   .join_files = {}}));
  complains_.watch(child_->err.number());
  return look_for_pipe();
}

Error ExternalProposer::error(std::string_view what) {
  read_complaint();
  const auto said = trim(complaint_);
  return Error{ErrorKind::io, fmt::format("the proposer {} {}{}{}", options_.argv.front(), what,
                                          said.empty() ? "" : ": ", clip(said, kComplaint))};
}

Status ExternalProposer::look_for_pipe() {
  if (!env_.status(options_.pipe)) {
    pipe_.set(env_.now() + kComesToItsPipe);
    return {};
  }
  BERTH_ASSIGN(input_, env_.open_write(options_.pipe));
  return {};
}

/// When it is ready.
Status ExternalProposer::send() {
  const std::size_t part = std::min(kPipeBuffer, unsent_.size());
  BERTH_TRY(env_.write_all(*input_, std::string_view(unsent_).substr(0, part)));
  unsent_.erase(0, part);
  return {};
}

Status ExternalProposer::read() {
  std::array<char, 4096> buffer;
  while (received_.size() <= kLongestLine) {
    BERTH_ASSIGN(const auto got, env_.read_some(child_->out, buffer));
    if (!got) return {};
    if (*got == 0) break;
    received_.append(buffer.data(), *got);
  }
  if (received_.find('\n') != std::string::npos) return {};
  return std::unexpected(error(received_.size() > kLongestLine
                                   ? fmt::format("wrote a line of more than {} bytes", kLongestLine)
                                   : "ended without an answer"));
}

void ExternalProposer::read_complaint() {
  if (!child_) return;
  std::array<char, 4096> buffer;
  for (int i = 0; i < 64; ++i) {
    const auto got = env_.read_some(child_->err, buffer);
    if (!got || (*got && **got == 0)) return complains_.stop();
    if (!*got) return;
    complaint_.append(buffer.data(), **got);
    if (complaint_.size() > kComplaint) complaint_.erase(0, complaint_.size() - kComplaint);
  }
}

}  // namespace berth::run
