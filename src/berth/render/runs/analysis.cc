#include "berth/render/runs/analysis.h"

#include <algorithm>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {
namespace {

std::string or_dash(std::int64_t amount, const std::string& text) {
  return amount == 0 ? "-" : text;
}

}  // namespace

std::string to_text(const engine::ImportanceReport& report, const View& view) {
  const experiment::Importances& found = report.found;
  Table table({"parameter", "share", "±", "trials", ""});
  const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
  for (const auto& each : found.parameters)
    table.add({each.parameter, percent(each.share), percent(each.deviation),
               fmt::format("{}", each.trials),
               each.values == 1 ? "one value"
                                : std::string(static_cast<std::size_t>(
                                                  std::lround(30 * std::min(1.0, each.share))),
                                              '#')});
  std::string text = to_text(table, view);
  text += fmt::format("{} are due to combinations of parameters\n", percent(found.together));
  return text + fmt::format(
                    "share of variance of {} (fANOVA, a forest of 64 trees on {} trials{}); it "
                    "predicts {} of the variance of trials that it was not fitted to\n",
                    report.metric, found.trials,
                    report.left_out > 0
                        ? fmt::format("; {} without a score are left out", report.left_out)
                        : "",
                    percent(std::max(0.0, found.predicted)));
}

std::string to_json(const engine::ImportanceReport& report) {
  const experiment::Importances& found = report.found;
  std::string parameters;
  for (const auto& each : found.parameters)
    parameters += fmt::format(
        "{}{{\"name\":{},\"share\":{:.4f},\"deviation\":{:.4f},\"trials\":{},\"values\":{}}}",
        parameters.empty() ? "" : ",", json_quote(each.parameter), each.share, each.deviation,
        each.trials, each.values);
  return fmt::format(
      "{{\"run\":{},\"metric\":{},\"measure\":\"fanova\",\"trials\":{},\"predicted\":{:.4f},"
      "\"together\":{:.4f},\"parameters\":[{}],\"because\":{},\"version\":1}}\n",
      json_quote(report.run), json_quote(report.metric), found.trials, found.predicted,
      found.together, parameters, json_quote(report.because));
}

std::string to_text(const engine::AdviceReport& report, const View& view) {
  const auto& all = report.steps;
  Table table({"step", "attempts", "mem asked", "peak", "mem", "cpu asked", "used", "cpu",
               "longest", "timeout"});
  for (const auto& of : all) {
    if (of.attempts == 0) continue;
    table.add(
        {of.step, fmt::format("{}", of.attempts),
         or_dash(of.mem_asked, written_bytes(of.mem_asked)),
         or_dash(of.mem_peak, fmt::format("{}M", (of.mem_peak + 999'999) / 1'000'000)),
         or_dash(of.mem, written_bytes(of.mem)), or_dash(of.cpu_asked, format_milli(of.cpu_asked)),
         or_dash(of.cpu, format_milli(of.cpu_used)), or_dash(of.cpu, format_milli(of.cpu)),
         format_duration(of.longest), fmt::format("{}m", of.timeout / std::chrono::minutes(1))});
  }
  std::string text = table.empty() ? "" : to_text(table, view);
  for (const auto& of : all)
    if (of.attempts == 0) text += fmt::format("{}: no successful attempt is known\n", of.step);
  if (table.empty()) return text;
  return text + fmt::format(
                    "mem: the peak and 5 %, at least {}; cpu: what was used and 10 %; timeout: "
                    "twice the longest, in whole minutes;\nnever more than the limit of an attempt "
                    "that succeeded. mem: auto in a step takes this.\n",
                    written_bytes(run::kMemHeadroom));
}

std::string to_json(const engine::AdviceReport& report) {
  JsonWriter json;
  json.object().add("version", 1).add("name", report.name).key("steps").array();
  const auto milli = [&](std::string_view key, std::int64_t amount) {
    json.key(key).raw(format_milli(amount));
  };
  for (const auto& of : report.steps) {
    json.object().add("step", of.step).add("attempts", of.attempts).add("runs", of.runs);
    json.key("mem").object();
    json.add("asked", of.mem_asked).add("peak", of.mem_peak).add("proposed", of.mem).end();
    json.key("cpu").object();
    milli("asked", of.cpu_asked);
    milli("used", of.cpu_used);
    milli("proposed", of.cpu);
    json.end().key("timeout").object();
    json.add("longest_ms", to_ms(of.longest)).add("proposed_ms", to_ms(of.timeout)).end().end();
  }
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
