#include "berth/machine/ledger/ledger.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/enclosing_task.h"
#include "berth/machine/ledger/ledger_file.h"
#include "berth/machine/ledger/ledger_holders.h"

namespace berth::machine {
namespace {

using Entries = std::vector<LedgerEntry>;

Error advised(Error error) {
  if (error.message.contains("ulimit")) return error;  // it is not the directory's fault
  error.message +=
      "; BERTH_LEDGER may name another directory, the same for all who share the machine";
  return error;
}

/// Served in this order: greater priority, then first come.
bool before(const LedgerEntry& a, const LedgerEntry& b) {
  const auto rank = [](const LedgerEntry& entry) {
    return std::tuple(entry.since, entry.sequence, entry.id);
  };
  return a.priority != b.priority ? a.priority > b.priority : rank(a) < rank(b);
}

/// The user whose file has this name; nullopt for any other file.
std::optional<uid_t> user_of(std::string_view name) {
  const auto user = parse_integer(name);
  const bool canonical = user && *user >= 0 && *user <= std::numeric_limits<uid_t>::max() &&
                         fmt::format("{}", *user) == name;
  return canonical ? std::optional(static_cast<uid_t>(*user)) : std::nullopt;
}

/// The ledger as one call sees it. What is learnt about who lives is kept for the call.
class View {
 public:
  View(os::Env& env, const std::string& directory)
      : env_(env),
        directory_(directory),
        user_(env.user()),
        self_(env.self()),
        holders_(env, directory) {}

  Status read_ours() { return read(user_); }
  Status read_all();
  /// Takes away what killed writers left. Only under the lock.
  void tidy();

  const Entries& entries() const { return entries_; }
  bool ours(const LedgerEntry& entry) const { return entry.user == user_; }
  bool mine(const LedgerEntry& entry) const { return ours(entry) && entry.holder == self_; }
  const LedgerEntry* find_mine(AllocId id) const;
  bool alive(const LedgerEntry& entry);

  /// The entry that this ask would have in the queue; `queued` keeps its place.
  LedgerEntry draft(const AllocRequest& ask, AllocId id, const LedgerEntry* queued) const;
  /// Those that live and are served before `entry`, in order; behind the first, some may be dead.
  std::vector<const LedgerEntry*> ahead_of(const LedgerEntry& entry);
  /// What of the machine the entry gets beside all that live. busy: nothing.
  Result<Block> fit(Machine& machine, const Host& host, const Request& request);

  void put(LedgerEntry entry);
  void drop(AllocId id);
  /// Whether there were any.
  bool drop_all(std::string_view label);
  /// Writes our own file.
  Status save();

 private:
  Status read(uid_t user);
  void sweep();
  bool known_dead(const LedgerEntry& entry) const;
  bool has_processes(const LedgerEntry& entry) const;

  os::Env& env_;
  const std::string& directory_;
  uid_t user_;
  os::ProcessIdentity self_;
  std::vector<std::string> names_;
  Entries entries_;
  Holders holders_;
  std::map<std::pair<pid_t, std::int64_t>, bool> lives_;
  mutable std::optional<std::vector<os::ProcessIdentity>>
      workers_of_processes_;  // read when needed
};

Status View::read(uid_t user) {
  const std::string path = fmt::format("{}/{}", directory_, user);
  const auto passed_over = [&](const Error& error) -> Status {
    const bool none = error.kind == ErrorKind::not_found || error.kind == ErrorKind::invalid ||
                      (error.kind == ErrorKind::denied && user != user_);
    return none ? Status{} : Status(std::unexpected(advised(error)));
  };
  const auto status = env_.status(path);
  if (!status) return passed_over(status.error());
  // Within a user namespace a user's file may have another name; what belongs to us is ours.
  const bool is_trusted = status->owner == user || status->owner == user_;
  if (status->kind != os::FileStatus::Kind::file || !is_trusted) return {};
  const auto text = env_.read_file(path, kLedgerFileMost);
  if (!text) return passed_over(text.error());
  auto entries = read_ledger_file(*text, env_.boot_id(), user);
  if (entries) std::ranges::move(*entries, std::back_inserter(entries_));
  return {};
}

Status View::read_all() {
  auto names = env_.list(directory_);
  if (!names) return std::unexpected(advised(std::move(names).error()));
  names_ = *std::move(names);
  holders_.take_names(names_);
  for (const auto& name : names_)
    if (const auto user = user_of(name)) BERTH_TRY(read(*user));
  return {};
}

void View::tidy() {
  const std::string prefix = fmt::format("{}.", user_);
  for (const auto& name : names_)
    if (name.starts_with(prefix))
      static_cast<void>(env_.remove_file(fmt::format("{}/{}", directory_, name)));
  holders_.sweep_one();
}

const LedgerEntry* View::find_mine(AllocId id) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const LedgerEntry& entry) { return entry.id == id && mine(entry); });
  return found != entries_.end() ? &*found : nullptr;
}

bool View::alive(const LedgerEntry& entry) {
  if (entry.holder == self_) return true;
  const auto [known, is_new] = lives_.try_emplace({entry.holder.pid, entry.holder.started_at});
  if (is_new) known->second = holders_.alive(entry.holder);
  return known->second || has_processes(entry);
}

/// Without control groups, what the tasks of a killed worker left goes on and uses its cores.
bool View::has_processes(const LedgerEntry& entry) const {
  if (entry.waiting || !ours(entry)) return false;
  if (!workers_of_processes_) workers_of_processes_ = find_workers_of_processes(env_);
  return std::ranges::find(*workers_of_processes_, entry.holder) != workers_of_processes_->end();
}

bool View::known_dead(const LedgerEntry& entry) const {
  const auto known = lives_.find({entry.holder.pid, entry.holder.started_at});
  return known != lives_.end() && !known->second && !has_processes(entry);
}

LedgerEntry View::draft(const AllocRequest& ask, AllocId id, const LedgerEntry* queued) const {
  LedgerEntry entry;
  entry.id = id;
  entry.user = user_;
  entry.holder = self_;
  entry.priority = ask.priority;
  entry.waiting = true;
  entry.label = valid_utf8(std::string_view(ask.label).substr(0, kLabelMost));
  entry.block.resources = ask.resources;
  if (queued != nullptr) {
    entry.since = queued->since;
    entry.sequence = queued->sequence;
    return entry;
  }
  // Nobody comes before one who waited already, even when the clock was put back.
  entry.since = wall_from_ms(to_ms(env_.wall()));
  for (const auto& other : entries_) {
    if (!other.waiting || other.since < entry.since) continue;
    const std::int64_t next = other.sequence + 1;
    entry.sequence = other.since > entry.since ? next : std::max(entry.sequence, next);
    entry.since = other.since;
  }
  return entry;
}

std::vector<const LedgerEntry*> View::ahead_of(const LedgerEntry& entry) {
  std::vector<const LedgerEntry*> ahead;
  for (const auto& other : entries_)
    if (other.waiting && other.id != entry.id && before(other, entry)) ahead.push_back(&other);
  std::ranges::sort(ahead, [](const auto* a, const auto* b) { return before(*a, *b); });
  const auto first = std::ranges::find_if(ahead, [&](const auto* other) { return alive(*other); });
  ahead.erase(ahead.begin(), first);
  return ahead;
}

Result<Block> View::fit(Machine& machine, const Host& host, const Request& request) {
  std::vector<Reservation> foreign;
  for (const auto& [who, block] : host.foreign) {
    BERTH_ASSIGN(auto part, machine.occupy(block, who));
    foreign.push_back(std::move(part));
  }
  std::vector<std::pair<const LedgerEntry*, Reservation>> held;
  for (const auto& entry : entries_) {
    if (entry.waiting) continue;
    BERTH_ASSIGN(auto part, machine.occupy(entry.block, entry.label));
    held.emplace_back(&entry, std::move(part));
  }
  auto block = machine.dry_run(request);
  if (block) return block;
  // To ask who lives costs more than all the rest: only when it can change the answer.
  std::erase_if(held, [&](const auto& holding) { return !alive(*holding.first); });
  return machine.dry_run(request);
}

void View::put(LedgerEntry entry) {
  drop(entry.id);
  entries_.push_back(std::move(entry));
}

void View::drop(AllocId id) {
  std::erase_if(entries_, [&](const LedgerEntry& entry) { return entry.id == id && mine(entry); });
}

bool View::drop_all(std::string_view label) {
  return std::erase_if(entries_, [&](const LedgerEntry& entry) {
           return entry.label == label && mine(entry);
         }) > 0;
}

/// Drops our own dead, a few at each call: those found dead, and of the others the first of the
/// file, which goes to its end if it lives.
void View::sweep() {
  std::erase_if(entries_, [&](const auto& entry) { return !ours(entry) || known_dead(entry); });
  const auto count = static_cast<std::ptrdiff_t>(entries_.size());
  const bool crowded = entries_.size() > kLedgerEntriesMost;
  const std::ptrdiff_t looks = crowded ? count : std::min<std::ptrdiff_t>(1, count);
  std::rotate(entries_.begin(), entries_.begin() + looks, entries_.end());
  entries_.erase(std::remove_if(entries_.end() - looks, entries_.end(),
                                [&](const auto& entry) { return !alive(entry); }),
                 entries_.end());
}

Status View::save() {
  sweep();
  const std::string text = write_ledger_file(env_.boot_id(), entries_);
  if (entries_.size() > kLedgerEntriesMost || text.size() > kLedgerFileMost)
    return fail(ErrorKind::full, "user {} has {} entries in the ledger, the maximum", user_,
                entries_.size());
  auto status = env_.replace_file(fmt::format("{}/{}", directory_, user_), text, 0644);
  if (!status) return std::unexpected(advised(std::move(status).error()));
  return {};
}

/// What is written there goes where its name says, and nobody but root could put a link in the
/// place of a user's file.
Status check_safe(os::Env& env, const std::string& directory) {
  const std::string named = directory.substr(0, directory.find_last_not_of('/') + 1);
  const auto slash = named.rfind('/');
  const bool relative = slash == std::string::npos;
  BERTH_ASSIGN(std::string wanted, env.real_path(relative     ? "."
                                                 : slash == 0 ? "/"
                                                              : named.substr(0, slash)));
  if (wanted != "/") wanted += '/';
  wanted += relative ? named : named.substr(slash + 1);
  BERTH_ASSIGN(const auto real, env.real_path(named));
  if (real != wanted)
    return fail(ErrorKind::denied, "{}: a link to {}, expected the ledger's directory itself",
                named, real);
  BERTH_ASSIGN(const auto status, env.status(named));
  const bool shared = status.owner == 0 && (status.mode & S_ISVTX) != 0;
  if (status.owner == env.user() || shared) return {};
  return fail(ErrorKind::denied,
              "{}: belongs to another user (uid {}); one that users share is root's: "
              "install -d -o root -m 1777 {}",
              named, status.owner, named);
}

}  // namespace

Result<Ledger> Ledger::open(os::Env& env, std::string directory) {
  auto made = env.make_directory(directory, 01777);
  sweep_task_ledgers(env, directory);
  if (!made) return std::unexpected(advised(std::move(made).error()));
  if (auto safe = check_safe(env, directory); !safe)
    return std::unexpected(advised(std::move(safe).error()));
  return Ledger(env, std::move(directory));
}

std::string Ledger::default_directory(os::Env& env) {
  const auto named = env.variable("BERTH_LEDGER");
  const std::string directory = named && !named->empty() ? *named : "/run/lock/berth";
  const auto task = enclosing_task(env);
  return task ? task_ledger(directory, task->id) : directory;
}

Result<os::Fd> Ledger::lock() const {
  // By its own ".", so that a directory that is gone is never made anew as a file.
  auto fd = env_->lock(directory_ + "/.", true);
  if (!fd) return std::unexpected(advised(std::move(fd).error()));
  return fd;
}

Status Ledger::keep() {
  BERTH_ASSIGN(const os::Fd held, lock());
  return keep_locked();
}

Status Ledger::keep_locked() {
  if (holder_) return {};
  auto lock = lock_as_holder(*env_, directory_);
  if (!lock) return std::unexpected(advised(std::move(lock).error()));
  holder_ = std::make_shared<os::Fd>(*std::move(lock));
  return {};
}

Result<Alloc> Ledger::acquire(const Host& host, const AllocRequest& ask,
                              std::optional<AllocId> ticket) {
  position_ = 0;
  BERTH_ASSIGN(const os::Fd held, lock());
  View view(*env_, directory_);
  BERTH_TRY(view.read_all());
  view.tidy();
  const AllocId id = ticket ? *ticket : new_ticket();
  const LedgerEntry* queued = view.find_mine(id);
  if (queued != nullptr && !queued->waiting)
    return fail(ErrorKind::stale, "this ticket was already granted");
  LedgerEntry entry = view.draft(ask, id, queued);

  const Request request{ask.resources, entry.label, ask.selection};
  Machine machine(host.total, host.links);
  if (auto ever = machine.dry_run(request); !ever) {
    view.drop(id);
    if (queued != nullptr) BERTH_TRY(view.save());
    return std::unexpected(std::move(ever).error());
  }
  const auto ahead = view.ahead_of(entry);
  auto block = ahead.empty() ? view.fit(machine, host, request)
                             : fail(ErrorKind::busy, "{} wait ahead of it, {} first", ahead.size(),
                                    clip(ahead.front()->label));
  if (!block && block.error().kind != ErrorKind::busy)
    return std::unexpected(std::move(block).error());
  position_ = ahead.size();
  const bool changed = block || (ticket && (queued == nullptr || *queued != entry));
  if (block) {
    entry.waiting = false;
    entry.since = wall_from_ms(to_ms(env_->wall()));
    entry.sequence = 0;
    entry.block = *block;
  }
  if (changed) {
    BERTH_TRY(keep_locked());
    view.put(std::move(entry));
    BERTH_TRY(view.save());
  }
  if (!block) return std::unexpected(std::move(block).error());
  return Alloc{id, *std::move(block)};
}

AllocId Ledger::new_ticket() {
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(env_->random() >> 1))};
}

Status Ledger::release(AllocId id) {
  BERTH_ASSIGN(const os::Fd held, lock());
  View view(*env_, directory_);
  BERTH_TRY(view.read_ours());
  if (view.find_mine(id) == nullptr)
    return fail(ErrorKind::stale, "this process has no such allocation");
  view.drop(id);
  return view.save();
}

Status Ledger::release_all(std::string_view label) {
  BERTH_ASSIGN(const os::Fd held, lock());
  View view(*env_, directory_);
  BERTH_TRY(view.read_ours());
  return view.drop_all(label) ? view.save() : Status{};
}

Status Ledger::hand_over(AllocId id, const os::ProcessIdentity& to) {
  BERTH_ASSIGN(const os::Fd held, lock());
  View view(*env_, directory_);
  BERTH_TRY(view.read_ours());
  const LedgerEntry* ours = view.find_mine(id);
  if (ours == nullptr || ours->waiting)
    return fail(ErrorKind::stale, "this process has no such allocation");
  if (!Holders(*env_, directory_).alive(to))
    return fail(ErrorKind::not_found, "process {} is gone", to.pid);
  LedgerEntry entry = *ours;
  entry.holder = to;
  view.put(std::move(entry));
  return view.save();
}

Result<bool> Ledger::holds(AllocId id) {
  View view(*env_, directory_);
  BERTH_TRY(view.read_ours());
  const LedgerEntry* entry = view.find_mine(id);
  return entry != nullptr && !entry->waiting;
}

Result<std::vector<LedgerEntry>> Ledger::entries() {
  Entries live;
  {
    BERTH_ASSIGN(const os::Fd held, lock());
    View view(*env_, directory_);
    BERTH_TRY(view.read_all());
    std::ranges::copy_if(view.entries(), std::back_inserter(live),
                         [&](const LedgerEntry& entry) { return view.alive(entry); });
  }
  std::ranges::sort(live, [](const LedgerEntry& a, const LedgerEntry& b) {
    if (a.waiting != b.waiting) return b.waiting;
    return a.waiting ? before(a, b) : std::tuple(a.since, a.id) < std::tuple(b.since, b.id);
  });
  return live;
}

Result<bool> Ledger::others_wait(std::int64_t priority) {
  View view(*env_, directory_);
  BERTH_TRY(view.read_all());
  return std::ranges::any_of(view.entries(), [&](const LedgerEntry& entry) {
    return entry.waiting && entry.priority >= priority && !view.mine(entry) && view.alive(entry);
  });
}

std::vector<Reservation> occupy_all(Machine& machine, const Host& host,
                                    std::span<const LedgerEntry> entries) {
  std::vector<Reservation> held;
  const auto occupy = [&](const Block& block, const std::string& who) {
    if (auto part = machine.occupy(block, who)) held.push_back(*std::move(part));
  };
  for (const auto& [who, block] : host.foreign) occupy(block, who);
  for (const auto& entry : entries)
    if (!entry.waiting) occupy(entry.block, entry.label);
  return held;
}

Duration Ledger::retry_delay(std::size_t position) {
  constexpr std::int64_t kStepMs = 2;
  constexpr std::int64_t kMostMs = 250;
  const auto steps = static_cast<std::int64_t>(std::min<std::size_t>(position, kMostMs)) + 1;
  return from_ms(std::min(kStepMs * steps, kMostMs));
}

}  // namespace berth::machine
