// carry_out() of berth/experiment.h: a study on a resource manager of the program's own.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "berth/base/guarded.h"
#include "berth/experiment.h"

namespace berth {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(500);  // for what other processes told
constexpr const char* kUntold = "its manager released it without reporting its end";

}  // namespace

struct TrialReporter::State {
  /// What reporters say, on whichever threads. It outlives carry_out() where they do.
  class Said {
   public:
    struct One {
      std::int64_t token;
      std::variant<Metrics, TrialOutcome> what;
    };

    void add(One one) {
      const std::scoped_lock lock(mutex_);
      said_.push_back(std::move(one));
      more_.notify_one();
    }
    std::deque<One> take(std::chrono::milliseconds most) {
      std::unique_lock lock(mutex_);
      more_.wait_for(lock, most, [&] { return !said_.empty(); });
      return std::exchange(said_, {});
    }

   private:
    std::mutex mutex_;
    std::condition_variable more_;
    std::deque<One> said_;
  };

  std::shared_ptr<Said> said;
  std::int64_t token;
  /// Beside the reporters, who may be gone, the campaign has it.
  std::shared_ptr<std::atomic<bool>> should_stop;
  std::atomic<bool> over = false;

  State(std::shared_ptr<Said> to, std::int64_t of, std::shared_ptr<std::atomic<bool>> stop)
      : said(std::move(to)), token(of), should_stop(std::move(stop)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { finish({.metrics = {}, .failure = kUntold}); }

  void finish(const TrialOutcome& outcome) {
    if (!over.exchange(true)) said->add({token, outcome});
  }
};

TrialReporter::TrialReporter(std::shared_ptr<State> state) : state_(std::move(state)) {}

void TrialReporter::report(const Metrics& metrics) const {
  if (!state_->over) state_->said->add({state_->token, metrics});
}

bool TrialReporter::should_stop() const {
  return *state_->should_stop;
}

void TrialReporter::finished(const TrialOutcome& outcome) const {
  state_->finish(outcome);
}

ResourceManager::~ResourceManager() = default;

namespace {

class Campaign {
 public:
  Campaign(Study& study, ResourceManager& manager) : study_(study), manager_(manager) {}

  Status run() {
    for (;;) {
      if (status_) status_ = start();
      if (running_.empty() && (over_ || !status_)) return status_;
      auto wait = std::chrono::milliseconds(kLookAgain);
      if (const auto due = study_.renew_within()) wait = std::min(wait, *due);
      for (const auto& [token, what] : said_->take(wait)) {
        const auto at = running_.find(token);
        if (at == running_.end()) continue;
        if (const auto* metrics = std::get_if<Metrics>(&what))
          report(at->second, *metrics);
        else
          end(at, std::get<TrialOutcome>(what));
      }
      if (const auto due = study_.renew_within(); due && due->count() == 0)
        (void)study_.renew();  // who lost a claim is told so with its end
    }
  }

 private:
  enum class Why : std::uint8_t { none, pruned, failed, given_away };
  struct Running {
    Trial trial;
    std::string resource;
    std::shared_ptr<std::atomic<bool>> should_stop = std::make_shared<std::atomic<bool>>(false);
    Why stopped = Why::none;
    std::string because{};
  };
  using Entry = std::map<std::int64_t, Running>::iterator;

  Status start() {
    while (!over_) {
      BERTH_ASSIGN(const auto resource,
                   guarded("acquire() of the manager", [&] { return manager_.acquire(); }));
      if (!resource) return {};
      auto asked = study_.ask();
      if (!asked || !asked->trial) {
        const Status released = release(*resource);
        if (!asked) return std::unexpected(std::move(asked).error());
        over_ = asked->over;
        return released;
      }
      begin({*asked->trial, *resource});
    }
    return {};
  }

  void begin(Running starting) {
    const std::int64_t token = starting.trial.token;
    const Running& running = running_.insert_or_assign(token, std::move(starting)).first->second;
    const auto state = std::make_shared<TrialReporter::State>(said_, token, running.should_stop);
    const auto begun = guarded("run() of the manager", [&] {
      return manager_.run(running.trial, running.resource, TrialReporter(state));
    });
    if (!begun) state->finish({.metrics = {}, .failure = begun.error().message});
  }

  void report(Running& running, const Metrics& metrics) {
    if (running.stopped != Why::none) return;
    const auto why = study_.report(running.trial, metrics);
    if (why && *why) return stop(running, Why::pruned, **why);
    if (why) return;
    if (why.error().kind == ErrorKind::stale)
      stop(running, Why::given_away, why.error().message);
    else if (why.error().kind == ErrorKind::invalid)
      stop(running, Why::failed, why.error().message);
    else
      fail_with(why.error());
  }

  void stop(Running& running, Why why, const std::string& because) {
    running.stopped = why;
    running.because = because;
    *running.should_stop = true;
    if (const auto told =
            guarded("stop() of the manager", [&] { manager_.stop(running.trial, because); });
        !told)
      fail_with(told.error());
  }

  void end(Entry at, const TrialOutcome& outcome) {
    const Running ended = std::move(at->second);
    running_.erase(at);
    const Status told = tell(ended, outcome);
    if (!told && told.error().kind != ErrorKind::stale) fail_with(told.error());
    if (const auto released = release(ended.resource); !released) fail_with(released.error());
  }

  Status tell(const Running& ended, const TrialOutcome& outcome) {
    switch (ended.stopped) {
      case Why::given_away: return {};
      case Why::pruned: return study_.prune(ended.trial, ended.because);
      case Why::failed: return study_.fail(ended.trial, ended.because);
      case Why::none: break;
    }
    if (!outcome.failure.empty()) return study_.fail(ended.trial, outcome.failure);
    const Status told = study_.tell(ended.trial, outcome.metrics);
    // What it told is of no use, and it will not say better: the trial has failed.
    if (!told && told.error().kind == ErrorKind::invalid)
      return study_.fail(ended.trial, told.error().message);
    return told;
  }

  Status release(const std::string& resource) {
    return guarded("release() of the manager", [&] { manager_.release(resource); });
  }
  void fail_with(const Error& error) {
    if (status_) status_ = std::unexpected(error);
  }

  Study& study_;
  ResourceManager& manager_;
  std::shared_ptr<TrialReporter::State::Said> said_ =
      std::make_shared<TrialReporter::State::Said>();
  std::map<std::int64_t, Running> running_;  // by token
  Status status_;
  bool over_ = false;
};

}  // namespace

Result<std::optional<Trial>> carry_out(Study& study, ResourceManager& manager) {
  BERTH_TRY(Campaign(study, manager).run());
  return study.best();
}

}  // namespace berth
