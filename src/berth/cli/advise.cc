// berth advise: which resources the steps of a flow should request, judged by what they used.
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/analysis.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

struct AdviseOptions {
  bool json = false;
  std::string of;

  void add_to(Options& options) {
    options.json(json);
    add_run(options, of, "FILE|RUN", "Experiment or flow, or a run of it");
    options.footer(
        "A step with mem: auto (or cpu, or timeout) gets these values automatically.\n"
        "\n"
        "Examples:\n"
        "  berth advise count.yaml   from the latest 20 runs of this file\n"
        "  berth advise count-7      from the runs of this run's file");
  }
};

std::string advice_json(const engine::AdviceReport& report) {
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

std::string or_dash(std::int64_t amount, const std::string& text) {
  return amount == 0 ? "-" : text;
}

std::string advice_text(const std::vector<run::StepAdvice>& all) {
  render::Table table({"step", "attempts", "mem asked", "peak", "mem", "cpu asked", "used", "cpu",
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
  std::string text = table.empty() ? "" : render::to_text(table);
  for (const auto& of : all)
    if (of.attempts == 0) text += fmt::format("{}: no successful attempt is known\n", of.step);
  if (table.empty()) return text;
  return text + fmt::format(
                    "mem: the peak and 5 %, at least {}; cpu: what was used and 10 %; timeout: "
                    "twice the longest, in whole minutes;\nnever more than the limit of an attempt "
                    "that succeeded. mem: auto in a step takes this.\n",
                    written_bytes(run::kMemHeadroom));
}

Result<int> advise_of(os::Env& env, const AdviseOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto report, engine::advice_for(context, options.of));
  print(options.json ? advice_json(report) : advice_text(report.steps));
  return 0;
}

}  // namespace

Command advise_command() {
  return command("advise", "Suggest resources for the steps of a flow from past use", advise_of);
}

}  // namespace berth::cli
