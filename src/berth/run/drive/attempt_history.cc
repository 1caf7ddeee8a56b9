#include "berth/run/drive/attempt_history.h"

#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::run {
namespace {

/// It did not fail, not by itself, or nobody knows.
constexpr std::array kNotItsFault{exec::Cause::ok,          exec::Cause::stopped_early,
                                  exec::Cause::runner_lost, exec::Cause::worker_lost,
                                  exec::Cause::stopped,     exec::Cause::superseded,
                                  exec::Cause::given_back,  exec::Cause::short_of_means};

AttemptHistory history_before(const std::vector<store::AttemptRecord>& attempts, Token forgiven,
                              Token before) {
  AttemptHistory history;
  for (const auto& attempt : attempts)
    if (attempt.ended && attempt.cause && attempt.token < before)
      history.add(*attempt.cause, recorded_resources(attempt.resources), attempt.token <= forgiven);
  return history;
}

}  // namespace

Resources recorded_resources(const std::string& json) {
  Resources resources;
  const auto field = Field::parse(json, "resources");
  const auto entries = field ? field->entries() : std::unexpected(field.error());
  if (!entries) return resources;
  for (const auto& [name, value] : *entries)
    if (const auto text = value.text())
      if (const auto amount = parse_amount(name, *text)) resources.set(name, *amount);
  return resources;
}

bool is_own_failure(exec::Cause cause) {
  return std::ranges::find(kNotItsFault, cause) == kNotItsFault.end();
}

void AttemptHistory::add(exec::Cause cause, const Resources& resources, bool forgiven) {
  if (!is_own_failure(cause)) return;
  if (!forgiven) ++failures;
  had = resources;
  if (cause == exec::Cause::out_of_memory) oom_mem = std::max(oom_mem, had.get(Known::mem));
}

Result<AttemptHistory> history_of(store::Store& store, RunId run, const store::TaskRecord& task) {
  if (task.attempts == 0 || store::final(task.state)) return AttemptHistory{};
  BERTH_ASSIGN(const auto attempts, store.attempts(run, task.number));
  return history_before(attempts, task.forgiven, {INT64_MAX});
}

Result<std::int64_t> number_of_attempt(store::Store& store, RunId run,
                                       const store::TaskRecord& task, Token token) {
  BERTH_ASSIGN(const auto attempts, store.attempts(run, task.number));
  const Token forgiven = token > task.forgiven ? task.forgiven : Token{};
  return history_before(attempts, forgiven, token).attempt();
}

Resources grown(Resources wanted, const Resources& first, const AttemptHistory& history,
                const Resources& machine) {
  const std::int64_t mem = wanted.get(Known::mem);
  const std::int64_t twice = history.oom_mem > INT64_MAX / 2 ? INT64_MAX : 2 * history.oom_mem;
  if (mem > 0) wanted.set(Known::mem, std::max(mem, twice));
  if (machine.empty()) return wanted;
  Resources bounded = wanted;
  wanted.each([&](std::string_view resource, std::int64_t amount) {
    bounded.set(resource, std::min(amount, std::max(machine.get(resource), first.get(resource))));
  });
  return bounded;
}

std::string growth_text(const exec::Ended& ended, const ResourceRequest& before,
                        const ResourceRequest& after, std::int64_t next) {
  std::vector<std::string> asks;
  after.resources.each([&](std::string_view resource, std::int64_t amount) {
    if (amount == before.resources.get(resource)) return;
    const bool bytes = measure(resource) == Measure::bytes;
    const std::string text = bytes ? written_bytes(amount) : format_amount(resource, amount);
    asks.push_back(resource == name(Known::mem) ? text : fmt::format("{} {}", resource, text));
  });
  if (after.timeout != before.timeout)
    asks.push_back("a time limit of " + format_duration(after.timeout));
  const std::string ask =
      asks.empty() ? "" : fmt::format("attempt {} asks {}", next, join(asks, ", "));
  const std::int64_t mem = before.resources.get(Known::mem);
  if (ended.cause != exec::Cause::out_of_memory || mem == 0) return ask;
  return fmt::format("ended out of memory at {}; {}", written_bytes(mem),
                     ask.empty() ? "the machine has no more" : ask);
}

}  // namespace berth::run
