#include "berth/render/fleets/day.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/render/fleets/fleet_cells.h"

namespace berth::render {
namespace {

constexpr std::size_t kMostServersAside = 4;  // that change, with a column each
constexpr std::size_t kWidestLine = 96;       // of a chart, in windows
constexpr std::size_t kMostSpans = 4;         // of time in which a server is not served
constexpr double kRounding_h = 1e-9;
constexpr std::array kPlanNames{"static", "greedy", "whole day"};
constexpr std::array<const char*, 8> kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string clock_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::llround(seconds));
  const auto text = fmt::format("{:02}:{:02}", all / 3600, all / 60 % 60);
  return all % 60 == 0 ? text : text + fmt::format(":{:02}", all % 60);
}

std::string replicas_text(const fleet::DayAllocation& a) {
  return a.replicas == 0 ? "-" : fmt::format("{} × {}", a.replicas, a.accelerator);
}

std::string allocation_text(const fleet::DayAllocation& a) {
  if (a.serves) return replicas_text(a);
  return a.replicas == 0 ? "unserved" : replicas_text(a) + ", unserved";
}

bool changes(const fleet::Day& day, std::size_t server, std::size_t window) {
  if (window == 0) return false;
  const auto& now = day.best.allocations[window][server];
  const auto& before = day.best.allocations[window - 1][server];
  return now.accelerator != before.accelerator || now.replicas != before.replicas;
}

std::vector<std::size_t> changing(const fleet::Day& day) {
  std::vector<std::size_t> servers;
  for (std::size_t s = 0; s < day.servers.size(); ++s)
    for (std::size_t w = 1; w < day.windows.size(); ++w)
      if (changes(day, s, w)) {
        servers.push_back(s);
        break;
      }
  return servers;
}

std::string windows_text(const fleet::Day& day) {
  const auto servers = changing(day);
  const bool aside = servers.size() <= kMostServersAside;
  std::vector<Column> head{"window", "req/min", "static", "greedy", "whole day"};
  for (std::size_t i = 0; aside && i < servers.size(); ++i) head.push_back(day.servers[servers[i]]);
  if (!aside) head.emplace_back("changes");
  head.emplace_back("");
  Table table(std::move(head));
  for (std::size_t w = 0; w < day.windows.size(); ++w) {
    double rate = 0;
    for (const auto& [name, load] : day.windows[w].loads) rate += load.arrivals_per_min;
    std::vector<std::string> row{clock_text(day.windows[w].start_s), fmt::format("{:.1f}", rate)};
    for (const auto* plan : {&day.static_plan, &day.greedy, &day.best})
      row.push_back(fmt::format("{:.2f}", plan->costs[w]));
    for (std::size_t i = 0; aside && i < servers.size(); ++i)
      row.push_back(allocation_text(day.best.allocations[w][servers[i]]));
    if (!aside)
      row.push_back(fmt::format(
          "{}", std::ranges::count_if(servers, [&](std::size_t s) { return changes(day, s, w); })));
    const double short_s = day.best.short_s[w];
    row.push_back(short_s > 0 ? fmt::format("begins {:.0f} s short", short_s) : "");
    table.add(row);
  }
  return to_text(table);
}

/// The replicas of each server over the windows, as a line of bars; of many windows several share a
/// bar, which shows the most of them.
std::string charts_text(const fleet::Day& day) {
  Table table({"replicas", "over the day", "min", "max", "static"});
  const std::size_t windows = day.windows.size();
  const std::size_t width = (windows + kWidestLine - 1) / kWidestLine;
  for (std::size_t s = 0; s < std::min(day.servers.size(), kMostRows); ++s) {
    int least = INT32_MAX, most = 0;
    std::vector<int> bars((windows + width - 1) / width, 0);
    for (std::size_t w = 0; w < windows; ++w) {
      const int replicas = day.best.allocations[w][s].replicas;
      least = std::min(least, replicas), most = std::max(most, replicas);
      bars[w / width] = std::max(bars[w / width], replicas);
    }
    std::string line;
    for (const int bar : bars)
      line += bar == 0 ? " " : kHeights[static_cast<std::size_t>((bar * 8 - 1) / most)];
    table.add({day.servers[s], line, fmt::format("{}", least), fmt::format("{}", most),
               replicas_text(day.static_plan.allocations[0][s])});
  }
  std::string text = to_text(table);
  if (day.servers.size() > kMostRows)
    text += fmt::format("{} more servers; --json has all\n", day.servers.size() - kMostRows);
  return text;
}

std::string totals_text(const fleet::Day& day) {
  Table table({"plan", "cost", "saves", "starts", "stops", "changes", "flaps", "unserved h"});
  const auto add = [&](const char* name, const fleet::DayPlan& plan) {
    const double all = day.static_plan.cost;
    const bool comparable = all > 0 && plan.unserved_h == day.static_plan.unserved_h;
    table.add({name, fmt::format("{:.2f}", plan.cost),
               comparable ? fmt::format("{:.1f} %", 100 * (all - plan.cost) / all) : "-",
               fmt::format("{}", plan.starts), fmt::format("{}", plan.stops),
               fmt::format("{}", plan.changes), fmt::format("{}", plan.flaps),
               fmt::format("{:.2f}", plan.unserved_h)});
  };
  add("static", day.static_plan);
  add("greedy", day.greedy);
  add("whole day", day.best);
  std::string text = to_text(table);
  if (day.best.unserved_h > day.unservable_h + kRounding_h)
    text += "capacity is short: some servers go without, and the bound has their weight in it\n";
  else if (day.gap == 0)
    text += "no day costs less\n";
  else if (day.bound > 0)
    text += fmt::format("no day costs less than {:.2f} (gap {:.2f} %)\n", day.bound, 100 * day.gap);
  if (day.stopped) text += "stopped by the time limit: a longer limit may find a cheaper day\n";
  return text;
}

/// "09:00-11:00, 14:00-15:00": windows of the day, ascending.
std::string times_text(const fleet::Day& day, const std::vector<std::size_t>& windows) {
  std::vector<std::string> spans;
  for (std::size_t i = 0; i < windows.size();) {
    std::size_t next = i + 1;
    while (next < windows.size() && windows[next] == windows[next - 1] + 1) ++next;
    if (spans.size() == kMostSpans) {
      spans.push_back(fmt::format("{} more windows", windows.size() - i));
      break;
    }
    const auto& last = day.windows[windows[next - 1]];
    spans.push_back(clock_text(day.windows[windows[i]].start_s) + "-" +
                    clock_text(last.start_s + last.length_s));
    i = next;
  }
  return join(spans, ", ");
}

/// Which servers no accelerator serves in which windows, and why; "": there are none.
std::string unservable_text(const fleet::Day& day) {
  std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> windows;
  for (const auto& each : day.unservable)
    windows[{each.server, each.reason}].push_back(each.window);
  if (windows.empty()) return "";
  std::size_t shown = 0;
  Table table({"not served", "windows", "", "why"});
  for (const auto& [of, at] : windows) {
    if (shown++ == kMostRows) break;
    table.add({day.servers[of.first], fmt::format("{} of {}", at.size(), day.windows.size()),
               times_text(day, at), of.second});
  }
  return "\n" + to_text(table) +
         fmt::format(
             "no capacity would serve these {:.2f} server-hours; they keep what they had before, "
             "and save nothing\n",
             day.unservable_h);
}

/// What the requests attained under each plan; "": they were not replayed.
std::string replay_text(const fleet::System& system, const fleet::Day& day,
                        const std::vector<fleet::ReplayedServer>& replayed) {
  Table table({"replayed", "plan", "cost", "TTFT ms / SLO", "p50", "p95", "p99", "ITL ms / SLO",
               "p95", "in time", "worst 5 min", "lost"});
  for (std::size_t i = 0; i < std::min(replayed.size(), kMostRows); ++i) {
    const auto& name = day.servers[replayed[i].server];
    const fleet::Target target = fleet::target_of(system, system.servers.at(name));
    const std::array plans{&day.static_plan, &day.greedy, &day.best};
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const fleet::Attainment& found = replayed[i].plans[p];
      const auto shown = [&](double ms, double target_ms) {
        return found.lost == found.requests ? "-" : against(ms, target_ms);
      };
      const auto ttft = [&](std::size_t at) {
        return shown(found.percentiles.ttft_ms[at], target.percentiles.ttft_ms[at]);
      };
      const std::string worst =
          found.worst_within == 1
              ? "-"
              : fmt::format("{}: {:.1f} % of {:.0f}/min", clock_text(found.worst_at_s),
                            100 * found.worst_within, found.worst_per_min);
      table.add({p == 0 ? name : "", kPlanNames[p],
                 fmt::format("{:.2f}", plans[p]->server_costs[replayed[i].server]),
                 shown(found.mean_ttft_ms, target.ttft_ms), ttft(0), ttft(2), ttft(3),
                 shown(found.mean_itl_ms, target.itl_ms),
                 shown(found.percentiles.itl_ms[2], target.percentiles.itl_ms[2]),
                 found.within_ms > 0 ? fmt::format("{:.2f} %", 100 * found.within) : "-", worst,
                 fmt::format("{}", found.lost)});
    }
  }
  if (table.empty()) return "";
  std::string text = "\n" + to_text(table);
  if (replayed.size() > kMostRows)
    text += fmt::format("{} more servers; --json has all\n", replayed.size() - kMostRows);
  return text +
         "in time: the first token within the TTFT target, of the highest percentile that "
         "has one\n";
}

void write(JsonWriter& json, const fleet::Day& day,
           const std::vector<fleet::ReplayedServer>& replayed) {
  json.key("replay").object();
  for (const auto& of : replayed) {
    json.key(day.servers[of.server]).object().key("maxBatch").object();
    for (const auto& [accelerator, batch] : day.batches[of.server]) json.add(accelerator, batch);
    json.end().key("plans").object();
    const std::array plans{std::pair("static", &day.static_plan), std::pair("greedy", &day.greedy),
                           std::pair("day", &day.best)};
    for (std::size_t p = 0; p < plans.size(); ++p) {
      json.key(plans[p].first).object().add("cost", plans[p].second->server_costs[of.server]);
      write_attainment(json, of.plans[p]);
      json.end();
    }
    json.end().end();
  }
  json.end();
}

void write(JsonWriter& json, const fleet::Day& day, const fleet::DayPlan& plan) {
  json.object().add("cost", plan.cost).add("starts", plan.starts).add("stops", plan.stops);
  json.add("changes", plan.changes).add("flaps", plan.flaps);
  json.add("unserved_hours", plan.unserved_h).key("windows").array();
  for (std::size_t w = 0; w < day.windows.size(); ++w) {
    json.object().add("cost", plan.costs[w]).add("short_seconds", plan.short_s[w]);
    json.key("allocations").object();
    for (std::size_t s = 0; s < day.servers.size(); ++s) {
      const auto& a = plan.allocations[w][s];
      json.key(day.servers[s]).object().add("accelerator", a.accelerator);
      json.add("numReplicas", a.replicas).add("serves", a.serves).add("late", a.late).end();
    }
    json.end().end();
  }
  json.end().end();
}

}  // namespace

std::string to_text(const engine::PlannedDay& planned, const View&) {
  const fleet::Day& day = planned.day;
  std::string text =
      windows_text(day) + "\n" + charts_text(day) + "\n" + totals_text(day) + unservable_text(day);
  return planned.replayed ? text + replay_text(planned.system, day, *planned.replayed) : text;
}

std::string to_json(const engine::PlannedDay& planned) {
  const fleet::Day& day = planned.day;
  JsonWriter json;
  json.object().add("version", 1).key("windows").array();
  for (const auto& window : day.windows) {
    json.object().add("start", window.start_s).add("length", window.length_s).key("loads").object();
    for (const auto& [name, load] : window.loads)
      json.key(name)
          .object()
          .add("arrivalRate", load.arrivals_per_min)
          .add("avgInTokens", load.in_tokens)
          .add("avgOutTokens", load.out_tokens)
          .add("inTokensCv", load.in_cv)
          .add("outTokensCv", load.out_cv)
          .add("arrivalCv", load.arrival_cv)
          .end();
    json.end().end();
  }
  json.end().key("plans").object();
  for (const auto& [name, plan] :
       {std::pair("static", &day.static_plan), {"greedy", &day.greedy}, {"day", &day.best}}) {
    json.key(name);
    write(json, day, *plan);
  }
  json.end().add("bound", day.bound).add("gap", day.gap).add("stopped", day.stopped);
  json.add("unservable_hours", day.unservable_h);
  json.key("unservable").array();
  for (const auto& each : day.unservable)
    json.object()
        .add("window", each.window)
        .add("server", day.servers[each.server])
        .add("reason", each.reason)
        .end();
  json.end();
  if (planned.replayed) write(json, day, *planned.replayed);
  return json.end().take() + "\n";
}

}  // namespace berth::render
