#include "berth/run/drive/expected_starts.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/ledger/queue_forecast.h"
#include "berth/run/state/task_times.h"

namespace berth::run {
namespace {

/// A run that holds or waits: of one user under one label.
struct Party {
  uid_t user = 0;
  std::string label;
  std::string name;  // for people
  machine::RunOutlook outlook = {};
  std::vector<std::string> by = {};  // what its times are by, each once
  bool is_limit = false;             // one of them is a time limit
  bool is_ours = false;              // a run in our store
};

void note(Party& party, const TaskTimes::Expected& expected) {
  party.is_limit |= expected.is_limit;
  if (std::ranges::find(party.by, expected.by) == party.by.end()) party.by.push_back(expected.by);
}

/// How long is left of the tasks that run, the unknown first and then the longest: where several
/// share an alloc it is held until the last of them ends, so what comes first is its time.
std::vector<std::optional<Duration>> left_of(Party& party, const TaskTimes& times,
                                             std::span<const store::TaskRecord> tasks, Wall now) {
  std::vector<std::optional<Duration>> left;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::running || !task.started) continue;
    const auto expected = times.left(task.label, std::max(Duration{}, now - *task.started));
    if (expected) note(party, *expected);
    left.push_back(expected ? std::optional(expected->left) : std::nullopt);
  }
  std::ranges::sort(left,
                    [](const auto& a, const auto& b) { return !a ? b.has_value() : b && *a > *b; });
  return left;
}

/// Fills what is known of a run of ours; returns how long is left of its tasks that run.
std::vector<std::optional<Duration>> look_at_run(Context& context, Party& party,
                                                 std::span<const store::RunRecord> runs,
                                                 bool waits) {
  const auto run = context.store->find_run(party.label);
  if (!run) return {};
  const auto tasks = context.store->tasks(run->id);
  if (!tasks) return {};
  party.is_ours = true;
  const auto times = TaskTimes::read(context, *run, *tasks, runs);
  const auto next = std::ranges::find(*tasks, store::TaskState::waiting, &store::TaskRecord::state);
  party.outlook.tasks = std::max<std::int64_t>(0, run->counts.waiting - (waits ? 1 : 0));
  if (next != tasks->end())
    if (const auto takes = times.left(next->label, {})) {
      party.outlook.takes = takes->left;
      note(party, *takes);
    }
  return left_of(party, times, *tasks, context.env->wall());
}

std::string because_text(const machine::StartForecast& forecast, std::span<const Party> parties) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> parts;
  for (const auto at : forecast.by) {
    const Party& party = parties[at];
    if (!forecast.start)
      parts.push_back(party.name);
    else
      parts.insert(parts.end(), party.by.begin(), party.by.end());
  }
  const std::size_t more = parts.size() - std::min(parts.size(), kMostNamed);
  parts.resize(parts.size() - more);
  const std::string list = join(parts, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
  if (forecast.start) return list.empty() ? "what it waits for is free" : "by " + list;
  return list.empty() ? "it does not fit, even when all others have ended"
                      : fmt::format("the end of {} {} not known", list,
                                    forecast.by.size() == 1 ? "is" : "are");
}

}  // namespace

std::vector<ExpectedStart> expected_starts(Context& context, const machine::Host& host,
                                           std::span<const machine::LedgerEntry> entries) {
  const auto runs = context.store->runs().value_or(std::vector<store::RunRecord>{});
  std::vector<Party> parties;
  std::vector<std::vector<std::optional<Duration>>> left;  // of each party's tasks that run
  std::vector<machine::EntryOutlook> outlooks;
  for (const auto& entry : entries) {
    const auto known = std::ranges::find_if(parties, [&](const Party& party) {
      return party.user == entry.user && party.label == entry.label;
    });
    const auto at = static_cast<std::size_t>(known - parties.begin());
    if (known == parties.end()) {
      const bool is_ours = entry.user == context.env->user();
      parties.push_back(
          {.user = entry.user,
           .label = entry.label,
           .name = entry.label + (is_ours ? "" : fmt::format(" of user {}", entry.user))});
      const bool waits = std::ranges::any_of(entries, [&](const auto& other) {
        return other.waiting && other.user == entry.user && other.label == entry.label;
      });
      left.push_back(is_ours ? look_at_run(context, parties.back(), runs, waits)
                             : std::vector<std::optional<Duration>>{});
    }
    // Which task is on which alloc makes no difference where all are alike.
    machine::EntryOutlook outlook{.run = at};
    if (!entry.waiting && !left[at].empty()) {
      outlook.left = left[at].front();
      left[at].erase(left[at].begin());
    } else if (!entry.waiting && parties[at].is_ours) {  // between two tasks, or at the end
      const auto& run = parties[at].outlook;
      outlook.left = run.tasks == 0 ? Duration{} : run.takes;
    }
    outlooks.push_back(outlook);
  }
  std::vector<machine::RunOutlook> known;
  for (const auto& party : parties) known.push_back(party.outlook);
  std::vector<ExpectedStart> starts;
  const Wall now = context.env->wall();
  for (const auto& forecast : machine::forecast_starts(host, entries, outlooks, known)) {
    const bool is_most = forecast.start && std::ranges::any_of(forecast.by, [&](std::size_t at) {
                           return parties[at].is_limit;
                         });
    starts.push_back({forecast.start ? std::optional(now + *forecast.start) : std::nullopt, is_most,
                      because_text(forecast, parties)});
  }
  return starts;
}

std::string to_text(const ExpectedStart& start, Wall now) {
  if (!start.at) return "starts ?";
  const auto left = std::chrono::round<std::chrono::seconds>(std::max(Duration{}, *start.at - now));
  return fmt::format("starts {}{}", start.is_most ? "<" : "~", format_duration(left));
}

}  // namespace berth::run
