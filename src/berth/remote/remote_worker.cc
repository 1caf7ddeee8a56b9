#include "berth/remote/remote_worker.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/agent/layout.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/command.h"

namespace berth::remote {
namespace {

constexpr Duration kLastTry = std::chrono::seconds(3);
/// Told to abandon its tasks, it fetches for so long: less than its runner waits for it then.
constexpr Duration kFetchesMost = std::chrono::seconds(4);
constexpr Duration kCountMost = std::chrono::seconds(5);
/// The signal by which the wrapper ends itself where the program does not exist: nobody else sends
/// it, and it leaves no core.
constexpr int kNoProgram = SIGVTALRM;
constexpr std::size_t kRecordMost = 1 << 20;
const std::string kLeftOut = "/left_out";
constexpr std::string_view kWrapper =
    R"(trap : HUP INT TERM; eval "$BERTH_PRESCRIPT"; status=
if command -v "$1" >/dev/null; then "$@"; status=$?; fi
eval "$BERTH_POSTSCRIPT"; [ "$status" ] || kill -s VTALRM $$; exit "$status")";

bool within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// A path on this machine, and the path that stands for it on the other one.
using Moved = std::vector<std::pair<std::string, std::string>>;

/// Replaces each mention of one of the paths, and of what is below it, by the other machine's path;
/// the longest path counts. A replacement is not looked at again.
void relocate(std::string& text, const Moved& moved) {
  constexpr std::string_view kName =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  for (std::size_t at = 0; at < text.size();) {
    const std::pair<std::string, std::string>* best = nullptr;
    for (const auto& each : moved) {
      if (text.compare(at, each.first.size(), each.first) != 0) continue;
      const auto end = at + each.first.size();
      const bool whole = end == text.size() || kName.find(text[end]) == std::string_view::npos;
      if (whole && (best == nullptr || best->first.size() < each.first.size())) best = &each;
    }
    if (best != nullptr) text.replace(at, best->first.size(), best->second);
    at += best != nullptr ? best->second.size() : 1;
  }
}

}  // namespace

std::unique_ptr<RemoteWorker> RemoteWorker::open(os::Env& env, RemoteWorkerOptions options) {
  return std::unique_ptr<RemoteWorker>(new RemoteWorker(env, std::move(options)));
}

RemoteWorker::RemoteWorker(os::Env& env, RemoteWorkerOptions options)
    : env_(env), options_(std::move(options)) {
  const LeaseDirectory& lease_directory = options_.lease_directory;
  const std::array<std::string, 2> stdio{"stdio", agent::agent_directory(lease_directory.path)};
  auto connection = connection_to(lease_directory.transport, options_.agent, stdio);
  connection.reconnect = options_.reconnect;
  client_ =
      agent::RemoteAgent::through(env_, std::move(connection), options_.timeout, options_.lease,
                                  {.epoch = options_.epoch,
                                   .environment = options_.task_environment.environment,
                                   .beside = true},
                                  [this] {
                                    const Duration lease = ready() ? agent().lease : options_.lease;
                                    (void)record_contact(env_, options_.directory, lease);
                                  });
  const auto left_out = env_.read_file(options_.directory + kLeftOut, kRecordMost);
  left_out_ = left_out.value_or("");
  auto transfers = TransferQueue::open(env_,
                                       {.transport = lease_directory.transport,
                                        .agent = options_.agent,
                                        .directory = agent::work_directory(lease_directory.path),
                                        .store = options_.store,
                                        .confirmed = options_.confirmed || left_out,
                                        .holders = options_.holders},
                                       [this] { wakes_.no_later_than(env_.now()); });
  if (transfers)
    transfers_ = *std::move(transfers);
  else
    broken_ = transfers.error();
  const std::string file = lease_file(options_.directory);
  auto kept = env_.make_directory(options_.directory, 0700);
  if (kept && !env_.status(file)) kept = record_contact(env_, options_.directory, options_.lease);
  if (kept) kept = env_.replace_file(file, to_json(lease_directory), 0600);
  if (!kept) broken_ = kept.error();
  auto recorded = recorded_attempts(env_, options_.directory);
  if (!recorded) {
    broken_ = recorded.error();
    return;
  }
  for (auto& [token, stage_out] : *recorded) {
    earlier_.insert(token);
    if (!stage_out.paths.empty()) stage_out_[token] = std::move(stage_out);
  }
}

std::optional<Error> RemoteWorker::lost() const {
  return broken_ ? broken_ : client_->lost();
}

void RemoteWorker::send(const exec::ToWorker& message) {
  if (lost()) return;
  if (const auto* launch = std::get_if<exec::Launch>(&message)) {
    for (const auto& path : launch->stage_in) brought_.erase(path);
    StageOut stage_out;
    for (const auto& path : launch->stage_out) stage_out.paths.push_back(without_slash(path));
    stage_out.if_stopped =
        std::ranges::find_first_of(launch->stage_in, launch->stage_out) != launch->stage_in.end();
    if (!record_attempt(env_, options_.directory, launch->token, stage_out)) {
      return refuse(*launch, exec::Cause::short_of_means, "the run's directory is full");
    }
    if (!stage_out.paths.empty()) stage_out_[launch->token] = std::move(stage_out);
    staged_.push_back(*launch);
    staged_.back().behind = unbegun_.resolve(launch->behind);
    return advance();
  }
  const auto* cancel = std::get_if<exec::Cancel>(&message);
  for (std::size_t i = 0; i < staged_.size();) {
    if (cancel != nullptr && staged_[i].token != cancel->token) {
      ++i;
      continue;
    }
    drop(i, exec::Cause::stopped, "");
  }
  if (std::holds_alternative<exec::Abandon>(message)) {
    if (!fetches_end_.at()) fetches_end_.set(env_.now() + kFetchesMost);
    written_below_.reset();
    stop_counting();
  }
  client_->send(message);
}

std::string RemoteWorker::doing() const {
  const auto progress = transfers_ ? transfers_->progress() : std::nullopt;
  if (!progress) return "";
  const auto& [request, moved, total, reading, from] = *progress;
  const bool there = request.kind != TransferRequest::Kind::fetch;
  return fmt::format("{}{}{} {} {}: {} % of {}", request.here.substr(request.here.rfind('/') + 1),
                     reading ? " is read," : "", from.empty() ? "" : " from " + from,
                     there ? "to" : "from", options_.lease_directory.transport.name,
                     moved * 100 / std::max<std::int64_t>(total, 1), format_bytes(total));
}

std::string RemoteWorker::root_of(const std::string& path) const {
  return within(path, options_.root) ? options_.root : path;
}

std::string RemoteWorker::there(const std::string& path) const {
  const auto known = shared_.find(root_of(path));
  if (known != shared_.end() && known->second) return path;
  return agent::work_directory(options_.lease_directory.path) + path;
}

/// Whether it is settled if both machines see the folder. If not, a file is made here and the other
/// machine is asked whether it sees that.
bool RemoteWorker::settled(const std::string& root) {
  if (shared_.contains(root)) return true;
  if (asked_.contains(root)) return false;
  const std::string nonce = fmt::format("{}/.berth-{:016x}", root, env_.random());
  const bool here = options_.lease_directory.transport.words.empty();
  if (here || !options_.shares || !env_.replace_file(nonce, "", 0600)) {
    shared_[root] = here && options_.shares;
    return true;
  }
  asked_[root] = nonce;
  transfers_->send({TransferRequest::Kind::compare, root, nonce});
  return false;
}

/// Requests the files of the launch that are not there yet. An error is the launch's own.
std::optional<Error> RemoteWorker::stage(const exec::Launch& launch, bool& ready) {
  ready = launch.there || settled(root_of(launch.directory));
  for (const auto* paths : {&launch.stage_in_once, &launch.stage_in})
    for (const auto& path : *paths) {
      if (!settled(root_of(path))) {
        ready = false;
      } else if (!shared_.at(root_of(path))) {
        const auto brought = brought_.find(path);
        if (brought == brought_.end()) {
          ready = false;
          const bool is_folder = paths == &launch.stage_in_once && path == launch.directory;
          transfers_->send(
              {is_folder ? TransferRequest::Kind::folder : TransferRequest::Kind::bring, path,
               path.substr(1)});
        } else if (brought->second) {
          Error failed = *brought->second;
          if (failed.kind == ErrorKind::full) failed = within(path, std::move(failed));
          brought_.erase(brought);  // another launch tries again
          return failed;
        }
      }
    }
  return std::nullopt;
}

void RemoteWorker::advance() {
  for (std::size_t i = 0; i < staged_.size();) {
    bool is_ready = false;
    const auto failed = stage(staged_[i], is_ready);
    if (failed && failed->kind == ErrorKind::unconfirmed) {
      broken_ = failed;  // nobody was asked: this is no place for any task
      return;
    }
    if (failed) {
      const bool passes = retryable(failed->kind);
      drop(i, passes ? exec::Cause::short_of_means : exec::Cause::cannot_start,
           fmt::format("copy its files to {}: {}", options_.lease_directory.transport.name,
                       failed->message));
      std::get<exec::Ended>(pending_.back()).no_space = failed->kind == ErrorKind::full;
      continue;
    }
    const auto before = std::ranges::find(staged_, staged_[i].behind, &exec::Launch::token);
    if (!is_ready || before != staged_.end()) {
      ++i;
      continue;
    }
    exec::Launch launch = std::move(staged_[i]);
    staged_.erase(staged_.begin() + static_cast<std::ptrdiff_t>(i));
    submit(std::move(launch));
  }
}

/// Ends a staged attempt without a launch. A launch behind it then waits for what it waited for.
void RemoteWorker::drop(std::size_t staged, exec::Cause cause, std::string detail) {
  const exec::Launch launch = std::move(staged_[staged]);
  staged_.erase(staged_.begin() + static_cast<std::ptrdiff_t>(staged));
  for (auto& other : staged_)
    if (other.behind == launch.token) other.behind = launch.behind;
  forget(launch.token);
  refuse(launch, cause, std::move(detail));
}

void RemoteWorker::refuse(const exec::Launch& launch, exec::Cause cause, std::string detail) {
  unbegun_.add(launch.token, launch.behind);
  pending_.emplace_back(exec::ended_as(cause, launch.task, launch.token, std::move(detail)));
  wakes_.no_later_than(env_.now());
}

/// Whether tasks run within a shell that runs a prolog or an epilog.
bool RemoteWorker::wrapped() const {
  return !options_.task_environment.prolog.empty() || !options_.task_environment.epilog.empty();
}

/// Sends the launch to the agent: everything that it needs is there.
void RemoteWorker::submit(exec::Launch launch) {
  std::set<std::string> paths(launch.stage_in.begin(), launch.stage_in.end());
  paths.insert(launch.stage_in_once.begin(), launch.stage_in_once.end());
  for (const auto& path : launch.stage_out) paths.insert(without_slash(path));
  Moved moved;
  for (const auto& path : paths)
    if (std::string to = there(path); to != path) moved.emplace_back(path, std::move(to));
  for (auto& word : launch.argv) relocate(word, moved);
  relocate(launch.input, moved);
  for (auto& [name, value] : launch.environment) relocate(value, moved);
  for (const auto& path : launch.stage_in) {
    brought_.erase(path);
    if (there(path) != path) scratch_[launch.token].push_back(path.substr(1));
  }
  const bool taken = std::ranges::any_of(
      paths, [&](const std::string& path) { return within(launch.directory, path); });
  const std::string task_directory = launch.directory;
  if (!launch.there && !shared_.at(root_of(launch.directory)))
    launch.directory =
        taken ? there(launch.directory) : agent::work_directory(options_.lease_directory.path);
  if (wrapped()) {
    const auto& [environment, prolog, epilog] = options_.task_environment;
    // Not among the words: those everybody on that machine can see.
    launch.environment.emplace_back("BERTH_PRESCRIPT", prolog);
    launch.environment.emplace_back("BERTH_POSTSCRIPT", epilog);
    launch.argv.insert(launch.argv.begin(), {"/bin/sh", "-c", std::string(kWrapper), "sh"});
  }
  if (!launch.there && !shared_.at(root_of(task_directory)))
    written_below_ = taken ? folder_ : std::optional<std::string>("");
  client_->send(launch);
}

void RemoteWorker::take_messages(std::vector<exec::FromWorker>& messages) {
  std::vector<exec::FromWorker> received;
  client_->take_messages(received);
  if (ready()) forget_what_never_began();
  for (auto& message : received) {
    if (auto* ended = std::get_if<exec::Ended>(&message))
      on_ended(std::move(*ended), messages);
    else
      messages.push_back(std::move(message));
  }
  if (!lost()) {
    for (auto& outcome : transfers_->take_outcomes()) on_outcome(std::move(outcome));
    advance();
    report_ends(messages);
    if (!staged_.empty())
      for (auto& note : transfers_->take_notes())
        pending_.emplace_back(
            exec::Notice{staged_.front().task, staged_.front().token, std::move(note)});
  }
  std::ranges::move(pending_, std::back_inserter(messages));
  pending_.clear();
  if (idle()) unbegun_.clear();
  if (lost() && !forgotten_) {
    (void)fileset::remove_all(env_, options_.directory);
    forgotten_ = true;
  }
}

void RemoteWorker::on_outcome(Outcome outcome) {
  const TransferRequest& request = outcome.request;
  if (request.kind == TransferRequest::Kind::compare) {
    (void)env_.remove_file(request.there);
    asked_.erase(request.here);
    shared_[request.here] = !outcome.failed;
  } else if (request.kind == TransferRequest::Kind::remove) {
    return;
  } else if (request.kind == TransferRequest::Kind::count) {
    if (!outcome.failed) deleted_ = {outcome.written.files, outcome.written.bytes};
    counting_ = false;
    count_ends_.set(std::nullopt);
    count_files();
  } else if (request.kind == TransferRequest::Kind::bring ||
             request.kind == TransferRequest::Kind::folder) {
    if (request.kind == TransferRequest::Kind::folder && !outcome.failed) {
      folder_ = request.there;
      note_left_out(outcome.left_out);
    }
    brought_[request.here] = std::move(outcome.failed);
  } else {
    for (auto& [token, staging_out] : staging_out_) {
      if (staging_out.paths.erase(request.here) == 0) continue;
      if (outcome.failed && outcome.failed->kind != ErrorKind::not_found)
        staging_out.failed = outcome.failed;
    }
  }
}

/// Once a run, and again where it has become something else. That there is such a file says, too,
/// that the folder went there: what nobody minded then is not asked again by a later runner.
void RemoteWorker::note_left_out(const std::string& text) {
  left_out_ = text;
  (void)env_.replace_file(options_.directory + kLeftOut, text, 0600);
  const std::string noted_at = options_.root + kLeftOut;
  const bool known = env_.read_file(noted_at, kRecordMost).value_or("") == text;
  if (staged_.empty() || text.empty() || known) return;
  (void)env_.replace_file(noted_at, text, 0600);
  pending_.emplace_back(exec::Notice{staged_.front().task, staged_.front().token, text});
}

void RemoteWorker::on_ended(exec::Ended ended, std::vector<exec::FromWorker>& messages) {
  if (wrapped() && ended.cause == exec::Cause::signal && ended.signal == kNoProgram) {
    ended.cause = exec::Cause::cannot_start;
    ended.signal = 0;
    ended.detail =
        fmt::format("its program is not in the host's PATH after the prescript; if it is bash: {}",
                    exec::kNoStrictShell);
  }
  const bool may_lack_files =
      ended.cause == exec::Cause::exit_code || ended.cause == exec::Cause::cannot_start;
  if (may_lack_files && !left_out_.empty())
    ended.detail += (ended.detail.empty() ? "" : "; ") + left_out_;
  const auto stage_out = stage_out_.find(ended.token);
  StagingOut staging_out{ended, {}, {}};
  const bool stopped = ended.cause == exec::Cause::stopped;
  leaves_outputs_ = leaves_outputs_ || (stopped && stage_out != stage_out_.end());
  const bool counts_outputs = leaves_outputs_ && written_below_ == "";
  if (written_below_ && !counts_outputs) uncounted_ = true;
  if (stage_out != stage_out_.end() && (stage_out->second.if_stopped || !stopped))
    for (const auto& path : stage_out->second.paths)
      if (!settled(root_of(path)) || !shared_.at(root_of(path))) staging_out.paths.insert(path);
  if (staging_out.paths.empty()) {
    forget(ended.token);
    messages.emplace_back(std::move(ended));
    return;
  }
  client_->hold(ended.token);
  for (const auto& path : staging_out.paths)
    transfers_->send({TransferRequest::Kind::fetch, path, path.substr(1)});
  staging_out_.emplace(ended.token, std::move(staging_out));
}

/// The attempt is over: removes what was staged in for it, and what it left there.
void RemoteWorker::forget(Token token) {
  stage_out_.erase(token);
  forget_attempt(env_, options_.directory, token);
  if (const auto scratch = scratch_.extract(token))
    for (const auto& path : scratch.mapped())
      transfers_->send({TransferRequest::Kind::remove, "", path});
}

/// Forgets attempts that an earlier runner recorded and the agent does not know.
void RemoteWorker::forget_what_never_began() {
  for (const Token token : std::exchange(earlier_, {}))
    if (std::ranges::find(agent().attempts, token, &agent::Attempt::token) ==
        agent().attempts.end())
      forget(token);
}

void RemoteWorker::fetch_no_more() {
  for (auto& [_, staging_out] : staging_out_) {
    staging_out.paths.clear();
    staging_out.failed =
        Error{ErrorKind::interrupted, "cancelled, because the run stops immediately"};
  }
}

/// Reports the ends of attempts whose outputs are all here.
void RemoteWorker::report_ends(std::vector<exec::FromWorker>& messages) {
  for (auto at = staging_out_.begin(); at != staging_out_.end();) {
    auto& [token, staging_out] = *at;
    if (!staging_out.paths.empty()) {
      ++at;
      continue;
    }
    if (staging_out.failed && staging_out.ended.cause == exec::Cause::ok) {
      // To run it again would not make room on this machine.
      staging_out.ended.cause =
          staging_out.failed->kind == ErrorKind::interrupted ? exec::Cause::stopped
          : staging_out.failed->kind == ErrorKind::full      ? exec::Cause::not_as_declared
                                                             : exec::Cause::short_of_means;
      staging_out.ended.detail =
          fmt::format("download its output from {}: {}", options_.lease_directory.transport.name,
                      staging_out.failed->message);
    }
    messages.emplace_back(std::move(staging_out.ended));
    client_->let_go(token);
    // A runner that hears of it in our place is to look for the outputs, too.
    if (staging_out.failed)
      not_fetched_.push_back(token);
    else
      forget(token);
    at = staging_out_.erase(at);
  }
}

bool RemoteWorker::has_ended_all() const {
  return staged_.empty() && staging_out_.empty() && pending_.empty() && client_->idle();
}

bool RemoteWorker::idle() const {
  return has_ended_all() && deleted_files();
}

std::optional<exec::Worker::DeletedFiles> RemoteWorker::deleted_files() const {
  const bool counts = (uncounted_ || counting_) && !lost() && !client_->cut();
  return counts ? std::nullopt : std::optional(deleted_);
}

void RemoteWorker::acknowledge() {
  for (const Token token : std::exchange(not_fetched_, {})) forget(token);
  client_->acknowledge();
  count_files();
}

/// Requests the number of files that tasks wrote, once for each time that the worker has nothing
/// more to do. A host that does not answer in time gets no line.
void RemoteWorker::count_files() {
  if (!uncounted_ || counting_ || !has_ended_all() || lost()) return;
  uncounted_ = false;
  counting_ = true;
  transfers_->send({TransferRequest::Kind::count, "", *written_below_});
  count_ends_.set(env_.now() + kCountMost);
}

/// A later runner attaches to it.
void RemoteWorker::retain(Duration time) {
  client_->retain(time);
}

void RemoteWorker::finish() {
  // One that has not heard of us yet would hold its part of the machine until its lease ends.
  std::array<agent::AgentClient*, 1> itself{client_.get()};
  const Mono until = env_.now() + kLastTry;
  while (env_.now() < until && agent::settle_round(env_, itself, until)) {
  }
  client_->finish();
  // What may still run there is not forgotten.
  const auto recorded = recorded_attempts(env_, options_.directory);
  if ((ready() && !client_->cut()) || lost() || (recorded && recorded->empty()))
    (void)fileset::remove_all(env_, options_.directory);
}

}  // namespace berth::remote
