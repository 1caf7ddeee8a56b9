#include "berth/run/external_proposer.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"

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

void ExternalProposer::ask(std::string_view line) {
  say(line);
  until_ = env_.now() + options_.patience;
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
  return {};
}

Error ExternalProposer::error(std::string_view what) const {
  const auto said = trim(complaint_);
  return Error{ErrorKind::io, fmt::format("the proposer {} {}{}{}", options_.argv.front(), what,
                                          said.empty() ? "" : ": ", clip(said, kComplaint))};
}

Status ExternalProposer::send() {
  if (!input_) {
    if (!env_.status(options_.pipe)) return {};
    BERTH_ASSIGN(input_, env_.open_write(options_.pipe));
  }
  while (!unsent_.empty()) {
    std::array<os::Watch, 1> ready{{{.fd = input_->number(), .readable = false}}};
    BERTH_TRY(env_.wait(ready, env_.now()));
    if (!ready[0].ready) return {};
    const std::size_t part = std::min(kPipeBuffer, unsent_.size());
    BERTH_TRY(env_.write_all(*input_, std::string_view(unsent_).substr(0, part)));
    unsent_.erase(0, part);
  }
  return {};
}

Status ExternalProposer::read() {
  std::array<char, 4096> buffer;
  bool ended = false;
  while (heard_.size() <= kLongestLine) {
    const auto got = env_.read_some(child_->out, buffer);
    if (!got) return std::unexpected(got.error());
    if (!*got) break;
    ended = **got == 0;
    if (ended) break;
    heard_.append(buffer.data(), **got);
  }
  for (int i = 0; i < 64; ++i) {
    const auto got = env_.read_some(child_->err, buffer);
    if (!got || !*got || **got == 0) break;
    complaint_.append(buffer.data(), **got);
    if (complaint_.size() > kComplaint) complaint_.erase(0, complaint_.size() - kComplaint);
  }
  const bool line = heard_.find('\n') != std::string::npos;
  if (!line && heard_.size() > kLongestLine)
    return std::unexpected(error(fmt::format("wrote a line of more than {} bytes", kLongestLine)));
  if (ended && !line && asked()) return std::unexpected(error("ended without an answer"));
  return {};
}

Result<std::optional<std::string>> ExternalProposer::turn() {
  using Line = std::optional<std::string>;
  if (!child_) BERTH_TRY(start());
  BERTH_TRY(send());
  BERTH_TRY(read());
  if (!asked()) return Line{};
  const auto end = heard_.find('\n');
  if (end != std::string::npos) {
    std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    until_.reset();
    return Line{std::move(line)};
  }
  if (env_.now() >= *until_)
    return std::unexpected(
        error(fmt::format("did not answer within {}", format_duration(options_.patience))));
  return Line{};
}

void ExternalProposer::watch(std::vector<os::Watch>& watches) const {
  if (!child_) return;
  if (asked()) watches.push_back({.fd = child_->out.number()});
  if (input_ && !unsent_.empty()) watches.push_back({.fd = input_->number(), .readable = false});
}

std::optional<Mono> ExternalProposer::deadline() const {
  if (child_ && !input_) return env_.now() + kComesToItsPipe;
  return until_;
}

}  // namespace berth::run
