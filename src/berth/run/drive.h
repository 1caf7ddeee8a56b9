// The loop inside drive(): kept apart from the face, which no caller needs to see behind.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/agent/link.h"
#include "berth/cluster/cluster.h"
#include "berth/exec/unbegun.h"
#include "berth/exec/worker.h"
#include "berth/machine/groups.h"
#include "berth/machine/health_watch.h"
#include "berth/run/brief_tasks.h"
#include "berth/run/log_file.h"
#include "berth/run/runner.h"
#include "berth/run/source.h"
#include "berth/run/workload.h"
#include "berth/schedule/schedule.h"
#include "berth/store/database.h"

namespace berth::run {

schedule::Verdict verdict_of(const exec::Ended& ended);
std::int64_t& counter(store::Counts& counts, store::TaskState state);
/// How an attempt ends when what has to be done around its process cannot be.
exec::Cause cause_of(const Error& error, exec::Cause otherwise);
/// ["GPU-…"]; "" where there are none.
std::string uuids_json(std::span<const machine::DeviceShare> devices);

/// One alloc and the worker on it.
struct Berthed {
  schedule::WorkerId id;
  std::size_t source = 0;  // of the loop's
  cluster::Alloc alloc;
  std::optional<Mono> keepalive_at;
  std::optional<Error> lost;                               // that its lease ended
  std::optional<machine::DeviceSelection> selection = {};  // that its devices were asked by
  std::unique_ptr<machine::Machine> machine;
  std::unique_ptr<exec::Workplace> worker;
  bool apart = false;                   // the worker is no process of ours, and keeps what it told
  agent::Attached* silent = nullptr;    // the worker, as long as it has not answered this runner
  std::string silence;                  // that it did not, and why
  std::string directory;                // of an agent here
  std::size_t watches = 0;              // how many of the loop's it appended this turn
  std::vector<exec::FromWorker> heard;  // while the store was waited for: dealt with next turn
};

/// What an earlier runner left of the run's agents.
struct Left {
  struct Agent {
    std::string directory;  // "": it is elsewhere
    std::string machine;
    std::unique_ptr<agent::Attached> link;
    std::vector<schedule::Earlier> attempts;  // that it runs, or may run
    std::string silence{};                    // that it does not answer, and why; "": it does
    // Of a silent one:
    std::string tasks{};   // the labels
    Duration time_left{};  // for which they may run
  };
  std::vector<Agent> agents;                 // that live, and wait for us, or may
  std::vector<exec::FromWorker> last_words;  // of those that do not
  std::vector<std::string> gone;  // directories of these, not needed after the next commit
  std::vector<Token> tokens;      // attempts that run, or whose end is known
};
using Note = std::function<void(const std::string&)>;
/// Attaches to all of them; those elsewhere of which it is not known what they run are waited for
/// at most so long. busy: one lives here and does not listen.
Result<Left> find_agents(Site& site, const store::RunRecord& record, Duration most,
                         const Note& note);

class Drive {
 public:
  Drive(Site& site, store::RunRecord record, std::unique_ptr<Workload> workload, Observer& observer,
        Sources sources, machine::Ledger ledger, LogWriter log, Left left);

  /// Takes the run over, with what earlier runners left. `tries`: since something went well;
  /// `only`: the tasks that may start, unless it is empty.
  Status begin(std::int64_t tries, const std::vector<TaskNumber>& only);
  Status turn();
  bool over() const;
  /// It has an alloc, or had one.
  bool leased() const { return phase_ == store::Phase::eval; }
  /// Something was completed by it.
  bool has_progressed() const { return progressed_; }
  /// While the store's server does not answer nothing is begun or recorded; what runs is looked
  /// after all the same. False: a stop waits for the store no longer.
  bool wait_for_store(const store::StoreWait& wait);
  /// Ends what runs, unheard: nobody can take it over.
  void abandon();
  /// Records how the run ended.
  Result<store::RunRecord> settle();

 private:
  struct Leasing {
    Source source;
    std::optional<Mono> seek_at{};  // there was no room: when it is worth asking again
    int losses{};                   // of its workers, since one of them brought something to an end
    std::optional<Error> refusal{};        // what it answered last; none: an alloc
    TaskNumber refused_task{};             // what it was asked for then
    std::optional<Mono> failing_since{};   // nothing but errors since then
    bool has_served = false;               // it gave an alloc
    bool closed = false;                   // it is not asked any more
    std::string told{};                    // the error that was told last
    std::optional<Mono> tend_at = Mono{};  // when it has something to do by itself
  };
  struct Live {  // an attempt that runs
    schedule::WorkerId worker;
    TaskNumber task;
    std::int64_t log_begin = 0;
    std::string devices{};  // as recorded
    bool started = false;   // its process
    bool ahead = false;     // it waits at its worker behind another
  };

  Status take_over();
  schedule::Task schedule_task(const store::TaskRecord& of, int retries) const;
  Resources schedule_resources(const Berthed& berthed, Resources resources,
                               std::span<const schedule::Earlier> runs = {}) const;
  Status advance();
  void apply(Next& next);
  void add(std::vector<store::NewTask> tasks);
  void give_up(Error error);
  void step();
  std::string result_json() const;

  void handle(exec::FromWorker& message);
  void on_started(const exec::Started& started);
  void on_metric(const exec::Metric& metric);
  void record(const exec::Metric& metric);
  void end_early(Token token);
  void hear_again_of_the_early();
  void on_ended(exec::Ended ended, bool later);
  void on_finished(Finished finished);
  void watch_starts(const exec::Ended& ended);
  void on_settled(const exec::Ended& ended);
  bool check_output(exec::Ended& ended, bool later);
  static void spoil(exec::Ended& ended, const Error& error);
  void take_effects(const exec::Ended& ended, const Live& live,
                    const std::vector<schedule::Effect>& effects);
  void conclude(const exec::Ended& ended, const Live& live, store::TaskState to);
  void carry_out();
  void send_ahead();
  void launch(const schedule::StartAttempt& start);

  Result<machine::Host> read_host();
  void watch_devices();
  void hear_of_devices(machine::DeviceNews news);
  std::string holders_of(const std::string& uuid);
  Status seek_allocs();
  Result<bool> seek_alloc(Leasing& from);
  Result<bool> seek_help(Leasing& from);
  void on_refusal(Leasing& from, TaskNumber task, Error error);
  std::optional<Error> no_source_left() const;
  Status leave_for_resume(Error error);
  std::string waiting_for() const;
  void berth(cluster::Alloc alloc, std::size_t source, machine::DeviceSelection selection);
  std::int64_t number_of(const std::string& machine);
  std::vector<std::string> avoided(TaskNumber task) const;
  void keep_leases();
  void tend_clusters();
  void staff(Berthed& berthed);
  void free(const Berthed& berthed);
  void ask(const exec::Launch& launch);
  std::string name_of(TaskNumber number) { return record_.name + "/" + task(number).label; }
  bool may_start(TaskNumber task) const { return only_.empty() || only_.contains(task); }
  Berthed* primary() const;
  bool holds_alloc() const;
  std::vector<std::string> silences() const;
  void retain();
  bool knows(TaskNumber task, Token token);
  void join_agents();
  void attach(Left::Agent& agent);
  void hear_of_the_silent();
  void disown(Token token);
  void hear_last_words(exec::Ended ended);
  void bury(Berthed& berthed);
  void end_what_is_left(const Berthed& berthed);
  void close_the_lost();
  void bury_the_lost();
  Status give_back();
  void look_for_others();

  bool heed_stop_without_store();
  void heed_stop_signals();
  void leave_the_silent();
  void leave(Berthed& berthed);
  std::optional<Mono> next_moment() const;
  Status commit();
  void count(TaskNumber task, store::TaskState to);
  void consider_best(const store::TaskRecord& task);
  void show();

  store::TaskRecord& task(TaskNumber number) {
    return tasks_[static_cast<std::size_t>(number.value - 1)];
  }

  Site& site_;
  os::Env& env_;
  store::RunRecord record_;
  std::unique_ptr<Workload> workload_;
  const Manner& manner_;
  Observer& observer_;
  std::vector<Leasing> leasings_;  // the main one, then the auxiliary
  cluster::Labels labels_;         // of its allocs
  LogWriter log_;
  Left left_;
  machine::Groups groups_;
  std::string directory_;  // the run's own
  std::string host_name_;
  std::vector<store::TaskRecord> tasks_;
  std::optional<schedule::Scheduler> scheduler_;
  std::vector<schedule::Effect> effects_;
  std::vector<std::unique_ptr<Berthed>> berthed_;
  std::unordered_map<std::int64_t, Live> live_;              // by token
  std::unordered_map<std::int64_t, exec::Ended> finishing_;  // by token: ended well, see finish()
  std::vector<exec::Ended> early_;      // before their tasks were taken over: heard again
  std::vector<exec::Ended> unstarted_;  // attempts that did not come to a process
  BriefTasks brief_;                    // on workers that queue
  exec::Unbegun unbegun_;               // sent ahead, but never launched
  bool more_ = false;                   // the workload has not looked at everything
  std::optional<Error> error_;          // why the run cannot go on to its end
  std::optional<Mono> no_start_since_;  // every attempt failed to start since then, and none runs
  std::optional<Error> no_start_;       // for too long: why
  std::int64_t workers_made_ = 0;
  std::map<std::string, std::int64_t> machines_;  // elsewhere, by name: their numbers, from 1

  std::vector<os::Watch> watches_;
  std::vector<exec::FromWorker> messages_;

  std::vector<store::Change> batch_;  // what has happened and is not durable yet
  std::vector<TaskEnd> ends_;         // shown once the batch is
  std::optional<Mono> commit_at_;
  Duration company_wait_{};  // of a change, for others to be committed with it

  store::Phase phase_ = store::Phase::init;
  std::optional<machine::AllocId> primary_;  // as recorded
  std::int64_t tries_ = 0;
  std::set<TaskNumber> only_;
  bool settled_ = false;
  bool progressed_ = false;

  TaskNumber passed_task_;  // the first that found no room, while others got some
  int passed_ = 0;          // how many did
  std::optional<Mono> look_at_;
  bool others_wait_ = false;
  std::set<std::string> advised_;      // notes that were told: where limits are advice, and why
  std::optional<machine::Host> host_;  // as read last
  std::optional<Mono> host_read_;      // none: it has to be read
  std::optional<machine::HealthWatch> health_;

  Progress progress_;
  std::optional<std::string> kept_waiting_for_;
  std::optional<Mono> gives_up_at_;  // stopping at once: those that do not end
  int stops_heeded_ = 0;
  std::optional<Mono> leaves_store_at_;  // stopping, when it does not answer by then
};

}  // namespace berth::run
