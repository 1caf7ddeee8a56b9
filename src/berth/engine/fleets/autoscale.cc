#include "berth/engine/fleets/autoscale.h"

#include <algorithm>
#include <optional>
#include <set>

#include "berth/base/json_place.h"
#include "berth/base/text.h"

namespace berth::engine {
namespace {

constexpr std::int64_t kMostRead = 8 << 20;  // of the record's end: at three servers, a day
constexpr std::size_t kMostChanges = 20;
constexpr double kMostShownReplicas = 1e8;

/// The lines at the end of the file, of which the first may be cut.
Result<std::vector<std::string>> last_lines(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto status, env.status(path));
  BERTH_ASSIGN(const os::Fd file, env.open_read(path));
  const std::int64_t from = std::max<std::int64_t>(0, status.size - kMostRead);
  BERTH_ASSIGN(const std::string text, env.read_at(file, from, kMostRead));
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) lines.emplace_back(line);
  if (from > 0 && !lines.empty()) lines.erase(lines.begin());
  return lines;
}

/// nullopt: the line is none of a record, such as the last one, half written.
std::optional<RecordedDecision> recorded_of(const std::string& line) {
  const auto json = JsonPlace::parse(line);
  if (!json) return std::nullopt;
  RecordedDecision found;
  found.line = line;
  for (const auto& [key, to] : {std::pair("server", &found.server),
                                {"at", &found.at},
                                {"action", &found.action},
                                {"accelerator", &found.accelerator},
                                {"reason", &found.reason}}) {
    const auto place = json->find(key);
    auto text = place ? place->text() : fail(ErrorKind::invalid, "{}", key);
    if (!text) return std::nullopt;
    *to = *std::move(text);
  }
  for (const auto& [key, to] :
       {std::pair("current", &found.current), {"desired", &found.desired}}) {
    const double number = json->number_or(key, 0).value_or(-1);
    if (!(number >= 0 && number <= kMostShownReplicas)) return std::nullopt;
    *to = static_cast<int>(number);
  }
  found.applied = line.find("\"applied\":true") != line.npos;
  return found;
}

}  // namespace

std::string autoscale_record(const std::string& state_directory) {
  return state_directory + "/autoscale.jsonl";
}

Result<AutoscaleHistory> autoscale_history(os::Env& env, const std::string& state_directory,
                                           const std::string& server) {
  const std::string record = autoscale_record(state_directory);
  auto lines = last_lines(env, record + ".1");  // before the file had grown to its bound
  auto newest = last_lines(env, record);
  if (lines && newest)
    lines->insert(lines->end(), newest->begin(), newest->end());
  else if (!lines)
    lines = std::move(newest);
  if (!lines)
    return fail(ErrorKind::not_found,
                "there are no decisions: berth autoscale has not run here ({})",
                lines.error().message);
  std::vector<RecordedDecision> decisions;
  std::set<std::string> others;
  for (const auto& line : *lines) {
    auto decision = recorded_of(line);
    if (!decision) continue;
    others.insert(decision->server);
    if (decision->server == server) decisions.push_back(*std::move(decision));
  }
  if (decisions.empty())
    return fail(ErrorKind::not_found,
                "no decision for a server '{}' is recorded; decisions exist for {}", clip(server),
                clip(join(std::vector(others.begin(), others.end()), ", "), 500));
  const RecordedDecision last = decisions.back();
  decisions.pop_back();
  std::erase_if(decisions, [](const RecordedDecision& d) { return !d.changes(); });
  decisions.push_back(last);
  if (decisions.size() > kMostChanges)
    decisions.erase(decisions.begin(), decisions.end() - kMostChanges);
  return AutoscaleHistory{server, std::move(decisions)};
}

Result<fleet::System> read_scaled_fleet(os::Env& env, const std::string& path,
                                        const FleetNotes& notes) {
  BERTH_ASSIGN(auto system, read_fleet(env, path, notes));
  note_missing(system, notes);
  if (system.servers.empty()) return fail(ErrorKind::invalid, "{}: contains no server", path);
  if (system.options.power_budget_w)
    return fail(ErrorKind::invalid, "{}: powerBudget: only berth plan supports it", path);
  if (fleet::has_purchases(system))
    return fail(ErrorKind::invalid, "{}: only berth plan supports different kinds of purchase",
                path);
  return system;
}

Result<ReplayedTrace> replay_trace(os::Env& env, const fleet::System& system, std::string server,
                                   const std::string& trace, const fleet::ReplayOptions& options,
                                   const fleet::Execution& execution) {
  if (server.empty() && system.servers.size() == 1) server = system.servers.begin()->first;
  if (server.empty())
    return fail(ErrorKind::usage, "--server: required, because the document has {} servers",
                system.servers.size());
  if (!system.servers.contains(server))
    return fail(ErrorKind::usage, "--server: no server '{}' is known", clip(server));
  BERTH_ASSIGN(const auto requests, fleet_trace(env, trace));
  BERTH_ASSIGN(auto replayed, fleet::replay(system, server, requests, options, execution));
  return ReplayedTrace{std::move(server), std::move(replayed), options.autoscaler.hold_s > 0};
}

Result<std::map<std::string, std::string>> selectors_of(const std::vector<std::string>& selects) {
  std::map<std::string, std::string> selectors;
  for (const auto& text : selects) {
    const auto equals = text.find('=');
    std::string selector(trim(text.substr(equals == text.npos ? text.size() : equals + 1)));
    if (selector.starts_with('{') && selector.ends_with('}'))
      selector = selector.substr(1, selector.size() - 2);
    if (equals == text.npos || equals == 0 || selector.find('=') == selector.npos ||
        selector.find_first_of("{}") != selector.npos)
      return fail(ErrorKind::usage, "--select: expected SERVER=LABEL=\"VALUE\",…; got '{}'",
                  clip(text));
    if (!selectors.emplace(text.substr(0, equals), selector).second)
      return fail(ErrorKind::usage, "--select: {} is given twice", clip(text.substr(0, equals)));
  }
  return selectors;
}

}  // namespace berth::engine
