#include "berth/cli/autoscale_view.h"

#include <algorithm>
#include <optional>
#include <set>

#include "berth/base/json_place.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/autoscale.h"
#include "berth/cli/print.h"

namespace berth::cli {
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

struct Recorded {
  std::string line, server, at, action, accelerator, reason;
  int current = 0, desired = 0;
  bool applied = false;
  bool changes() const { return current != desired; }
};

/// nullopt: the line is none of a record, such as the last one, half written.
std::optional<Recorded> recorded_of(const std::string& line) {
  const auto json = JsonPlace::parse(line);
  if (!json) return std::nullopt;
  Recorded found;
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

std::string text_of(const Recorded& d) {
  return fmt::format("  {}  {}{}: {}\n", d.at,
                     d.changes() ? fmt::format("{} → {}", d.current, d.desired)
                                 : fmt::format("{} {}", d.action, d.current),
                     d.changes() && !d.applied ? " (advice)" : "", d.reason);
}

}  // namespace

Result<int> explain_decisions(os::Env& env, const std::string& state_directory,
                              const std::string& server, bool json) {
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
  std::vector<Recorded> decisions;
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
  const Recorded last = decisions.back();
  decisions.pop_back();
  std::erase_if(decisions, [](const Recorded& d) { return !d.changes(); });
  decisions.push_back(last);
  if (decisions.size() > kMostChanges)
    decisions.erase(decisions.begin(), decisions.end() - kMostChanges);
  if (json) {
    JsonWriter out;
    out.object().add("server", server).key("decisions").array();
    for (const auto& decision : decisions) out.raw(decision.line);
    out.end().end();
    print(out.take() + "\n");
    return 0;
  }
  print(fmt::format("autoscale/{}: {} × {}\n", server, last.desired, last.accelerator));
  for (const auto& decision : decisions) print(text_of(decision));
  return 0;
}

}  // namespace berth::cli
