#include "berth/remote/outpost.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/command.h"
#include "berth/remote/outpost_record.h"

namespace berth::remote {
namespace {

constexpr Duration kLastTry = std::chrono::seconds(3);
/// By which the wrapper ends itself where the program is not there: nobody else sends it, and it
/// leaves no core.
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

/// A path here, and there.
using Moved = std::vector<std::pair<std::string, std::string>>;

/// Each mention of one of the paths, and of what lies below it; the longest counts. What has been
/// replaced is not looked at again.
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

exec::Ended unstarted(const exec::Launch& launch, exec::Cause cause, std::string detail) {
  return {.task = launch.task,
          .token = launch.token,
          .cause = cause,
          .exit_code = {},
          .detail = std::move(detail)};
}

}  // namespace

std::unique_ptr<Outpost> Outpost::open(os::Env& env, OutpostOptions options) {
  return std::unique_ptr<Outpost>(new Outpost(env, std::move(options)));
}

Outpost::Outpost(os::Env& env, OutpostOptions options) : env_(env), options_(std::move(options)) {
  const Place& place = options_.place;
  const std::array<std::string, 2> stdio{"stdio", place.directory + "/agent"};
  link_ = agent::Link::through(
      env_, line_to(place.door, options_.agent, stdio), options_.patience, options_.lease,
      {.epoch = options_.epoch, .environment = options_.surroundings.environment, .beside = true},
      [this] {
        const Duration lease = ready() ? agent().lease : options_.lease;
        (void)record_contact(env_, options_.directory, lease);
      });
  const auto left_out = env_.read_file(options_.directory + kLeftOut, kRecordMost);
  left_out_ = left_out.value_or("");
  auto courier = Courier::open(env_,
                               {.door = place.door,
                                .agent = options_.agent,
                                .directory = place.directory + "/work",
                                .store = options_.store,
                                .confirmed = options_.confirmed || left_out,
                                .holders = options_.holders},
                               [this] { wakes_.no_later_than(env_.now()); });
  if (courier)
    courier_ = *std::move(courier);
  else
    broken_ = courier.error();
  const std::string file = options_.directory + "/place.json";
  auto kept = env_.make_directory(options_.directory, 0700);
  if (kept && !env_.status(file)) kept = record_contact(env_, options_.directory, options_.lease);
  if (kept) kept = env_.replace_file(file, to_json(place), 0600);
  if (!kept) broken_ = kept.error();
  for (auto& [token, brings] : recorded_attempts(env_, options_.directory)) {
    earlier_.insert(token);
    if (!brings.empty()) brings_[token] = std::move(brings);
  }
}

std::optional<Error> Outpost::lost() const {
  return broken_ ? broken_ : link_->lost();
}

void Outpost::tell(const exec::ToWorker& message) {
  if (lost()) return;
  if (const auto* launch = std::get_if<exec::Launch>(&message)) {
    for (const auto& path : launch->takes) brought_.erase(path);
    std::vector<std::string> brings;
    for (const auto& path : launch->brings) brings.push_back(without_slash(path));
    if (!record_attempt(env_, options_.directory, launch->token, brings)) {
      return refuse(*launch, exec::Cause::short_of_means, "the run's directory is full");
    }
    if (!brings.empty()) brings_[launch->token] = std::move(brings);
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
  link_->tell(message);
}

std::string Outpost::doing() const {
  const auto way = courier_ ? courier_->way() : std::nullopt;
  if (!way) return "";
  const auto& [errand, moved, total, reading, from] = *way;
  const bool there = errand.kind != Errand::Kind::fetch;
  return fmt::format("{}{}{} {} {}: {} % of {}", errand.here.substr(errand.here.rfind('/') + 1),
                     reading ? " is read," : "", from.empty() ? "" : " from " + from,
                     there ? "to" : "from", options_.place.door.name,
                     moved * 100 / std::max<std::int64_t>(total, 1), format_bytes(total));
}

std::string Outpost::root_of(const std::string& path) const {
  return within(path, options_.root) ? options_.root : path;
}

std::string Outpost::there(const std::string& path) const {
  const auto known = shared_.find(root_of(path));
  if (known != shared_.end() && known->second) return path;
  return options_.place.directory + "/work" + path;
}

/// Whether both machines see the same folder: known, or being looked up by a file that is made
/// here.
bool Outpost::settled(const std::string& root) {
  if (shared_.contains(root)) return true;
  if (asked_.contains(root)) return false;
  const std::string nonce = fmt::format("{}/.berth-{:016x}", root, env_.random());
  const bool here = options_.place.door.words.empty();
  if (here || !options_.shares || !env_.replace_file(nonce, "", 0600)) {
    shared_[root] = here && options_.shares;
    return true;
  }
  asked_[root] = nonce;
  courier_->send({Errand::Kind::compare, root, nonce});
  return false;
}

/// Sets off what is not there yet; an error is the launch's own.
std::optional<Error> Outpost::stage(const exec::Launch& launch, bool& ready) {
  ready = launch.there || settled(root_of(launch.directory));
  for (const auto* paths : {&launch.takes_once, &launch.takes})
    for (const auto& path : *paths) {
      if (!settled(root_of(path))) {
        ready = false;
      } else if (!shared_.at(root_of(path))) {
        const auto brought = brought_.find(path);
        if (brought == brought_.end()) {
          ready = false;
          const bool is_folder = paths == &launch.takes_once && path == launch.directory;
          courier_->send(
              {is_folder ? Errand::Kind::folder : Errand::Kind::bring, path, path.substr(1)});
        } else if (brought->second) {
          const Error failed = *brought->second;
          brought_.erase(brought);  // another launch tries again
          return failed;
        }
      }
    }
  return std::nullopt;
}

void Outpost::advance() {
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
           fmt::format("bring its files to {}: {}", options_.place.door.name, failed->message));
      continue;
    }
    const auto before = std::ranges::find(staged_, staged_[i].behind, &exec::Launch::token);
    if (!is_ready || before != staged_.end()) {
      ++i;
      continue;
    }
    exec::Launch launch = std::move(staged_[i]);
    staged_.erase(staged_.begin() + static_cast<std::ptrdiff_t>(i));
    depart(std::move(launch));
  }
}

/// It is not launched; who stands behind it stands where it stood.
void Outpost::drop(std::size_t staged, exec::Cause cause, std::string detail) {
  const exec::Launch launch = std::move(staged_[staged]);
  staged_.erase(staged_.begin() + static_cast<std::ptrdiff_t>(staged));
  for (auto& other : staged_)
    if (other.behind == launch.token) other.behind = launch.behind;
  forget(launch.token);
  refuse(launch, cause, std::move(detail));
}

void Outpost::refuse(const exec::Launch& launch, exec::Cause cause, std::string detail) {
  unbegun_.add(launch.token, launch.behind);
  pending_.emplace_back(unstarted(launch, cause, std::move(detail)));
  wakes_.no_later_than(env_.now());
}

/// Whether tasks run within a shell that has something to do before or behind them.
bool Outpost::wrapped() const {
  return !options_.surroundings.prescript.empty() || !options_.surroundings.postscript.empty();
}

/// Everything is there.
void Outpost::depart(exec::Launch launch) {
  std::set<std::string> paths(launch.takes.begin(), launch.takes.end());
  paths.insert(launch.takes_once.begin(), launch.takes_once.end());
  for (const auto& path : launch.brings) paths.insert(without_slash(path));
  Moved moved;
  for (const auto& path : paths)
    if (std::string to = there(path); to != path) moved.emplace_back(path, std::move(to));
  for (auto& word : launch.argv) relocate(word, moved);
  for (auto& [name, value] : launch.environment) relocate(value, moved);
  for (const auto& path : launch.takes) {
    brought_.erase(path);
    if (there(path) != path) litter_[launch.token].push_back(path.substr(1));
  }
  const bool taken = std::ranges::any_of(
      paths, [&](const std::string& path) { return within(launch.directory, path); });
  if (!launch.there && !shared_.at(root_of(launch.directory)))
    launch.directory = taken ? there(launch.directory) : options_.place.directory + "/work";
  if (wrapped()) {
    const auto& [environment, prescript, postscript] = options_.surroundings;
    // Not among the words: those everybody on that machine can see.
    launch.environment.emplace_back("BERTH_PRESCRIPT", prescript);
    launch.environment.emplace_back("BERTH_POSTSCRIPT", postscript);
    launch.argv.insert(launch.argv.begin(), {"/bin/sh", "-c", std::string(kWrapper), "sh"});
  }
  link_->tell(launch);
}

void Outpost::take_messages(std::vector<exec::FromWorker>& messages) {
  std::vector<exec::FromWorker> heard;
  link_->take_messages(heard);
  if (ready()) forget_what_never_began();
  for (auto& message : heard) {
    if (auto* ended = std::get_if<exec::Ended>(&message))
      on_ended(std::move(*ended), messages);
    else
      messages.push_back(std::move(message));
  }
  if (!lost()) {
    for (auto& outcome : courier_->take_outcomes()) hear(std::move(outcome));
    advance();
    tell_ends(messages);
    if (!staged_.empty())
      for (auto& note : courier_->take_notes())
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

void Outpost::hear(Outcome outcome) {
  const Errand& errand = outcome.errand;
  if (errand.kind == Errand::Kind::compare) {
    (void)env_.remove_file(errand.there);
    asked_.erase(errand.here);
    shared_[errand.here] = !outcome.failed;
  } else if (errand.kind == Errand::Kind::remove) {
    return;
  } else if (errand.kind == Errand::Kind::bring || errand.kind == Errand::Kind::folder) {
    if (errand.kind == Errand::Kind::folder && !outcome.failed) tell_left_out(outcome.left_out);
    brought_[errand.here] = std::move(outcome.failed);
  } else {
    for (auto& [token, leaving] : leaving_) {
      if (leaving.paths.erase(errand.here) == 0) continue;
      if (outcome.failed && outcome.failed->kind != ErrorKind::not_found)
        leaving.failed = outcome.failed;
    }
  }
}

/// Once a run, and again where it has become something else. That there is such a file says, too,
/// that the folder went there: what nobody minded then is not asked again by a later runner.
void Outpost::tell_left_out(const std::string& text) {
  left_out_ = text;
  (void)env_.replace_file(options_.directory + kLeftOut, text, 0600);
  const std::string told = options_.root + kLeftOut;
  const bool known = env_.read_file(told, kRecordMost).value_or("") == text;
  if (staged_.empty() || text.empty() || known) return;
  (void)env_.replace_file(told, text, 0600);
  pending_.emplace_back(exec::Notice{staged_.front().task, staged_.front().token, text});
}

void Outpost::on_ended(exec::Ended ended, std::vector<exec::FromWorker>& messages) {
  if (wrapped() && ended.cause == exec::Cause::signal && ended.signal == kNoProgram) {
    ended.cause = exec::Cause::cannot_start;
    ended.signal = 0;
    ended.detail =
        fmt::format("its program is not in PATH there behind the prescript; if it is bash: {}",
                    exec::kNoStrictShell);
  }
  const bool may_lack_files =
      ended.cause == exec::Cause::exit_code || ended.cause == exec::Cause::cannot_start;
  if (may_lack_files && !left_out_.empty())
    ended.detail += (ended.detail.empty() ? "" : "; ") + left_out_;
  const auto brings = brings_.find(ended.token);
  Leaving leaving{ended, {}, {}};
  if (brings != brings_.end())
    for (const auto& path : brings->second)
      if (!settled(root_of(path)) || !shared_.at(root_of(path))) leaving.paths.insert(path);
  if (leaving.paths.empty()) {
    forget(ended.token);
    messages.emplace_back(std::move(ended));
    return;
  }
  link_->hold(ended.token);
  for (const auto& path : leaving.paths)
    courier_->send({Errand::Kind::fetch, path, path.substr(1)});
  leaving_.emplace(ended.token, std::move(leaving));
}

/// It has ended: what it took along and left there goes.
void Outpost::forget(Token token) {
  brings_.erase(token);
  forget_attempt(env_, options_.directory, token);
  if (const auto litter = litter_.extract(token))
    for (const auto& path : litter.mapped()) courier_->send({Errand::Kind::remove, "", path});
}

/// What an earlier runner recorded, and the agent does not know of.
void Outpost::forget_what_never_began() {
  for (const Token token : std::exchange(earlier_, {}))
    if (std::ranges::find(agent().attempts, token, &agent::Attempt::token) ==
        agent().attempts.end())
      forget(token);
}

/// What left everything here.
void Outpost::tell_ends(std::vector<exec::FromWorker>& messages) {
  for (auto at = leaving_.begin(); at != leaving_.end();) {
    auto& [token, leaving] = *at;
    if (!leaving.paths.empty()) {
      ++at;
      continue;
    }
    if (leaving.failed && leaving.ended.cause == exec::Cause::ok) {
      leaving.ended.cause = exec::Cause::short_of_means;
      leaving.ended.detail = fmt::format("fetch what it left on {}: {}", options_.place.door.name,
                                         leaving.failed->message);
    }
    messages.emplace_back(std::move(leaving.ended));
    link_->let_go(token);
    forget(token);
    at = leaving_.erase(at);
  }
}

bool Outpost::idle() const {
  return staged_.empty() && leaving_.empty() && pending_.empty() && link_->idle();
}

void Outpost::acknowledge() {
  link_->acknowledge();
}

/// A later runner attaches to it.
void Outpost::retain(Duration time) {
  link_->retain(time);
}

void Outpost::finish() {
  // One that has not heard of us yet would hold its part of the machine until its lease ends.
  std::array<agent::Attached*, 1> itself{link_.get()};
  const Mono until = env_.now() + kLastTry;
  while (env_.now() < until && agent::settle_round(env_, itself, until)) {
  }
  link_->finish();
  // What may still run there is not forgotten.
  if ((ready() && !link_->cut()) || lost() || recorded_attempts(env_, options_.directory).empty())
    (void)fileset::remove_all(env_, options_.directory);
}

}  // namespace berth::remote
