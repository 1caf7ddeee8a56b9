// berth fit: performance parameters from what benchmark tools measured.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/cli/benchmark_input.h"
#include "berth/cli/fit_view.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/metrics_input.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/fleet/missing_limits.h"
#include "berth/fleet/performance_entry.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostModelBytes = 256U << 20;

struct FitCommandOptions {
  bool json = false;
  std::vector<std::string> files, held_out;
  std::string llm, accelerator, write;
  MetricsWanted metrics;
  bool all = false, check = false;

  void add_to(Options& options) {
    options.json(json);
    options.list("FILE", files,
                 "Results of vLLM's benchmark, sglang.bench_serving, guidellm, genai-perf, aiperf, "
                 "llmperf or trtllm-bench, a table of iterations, or a directory of them");
    options
        .value("--accelerator", accelerator,
               "Accelerator that was measured, or the one to fit if there are several")
        .named("NAME");
    options.value("--llm", llm, "Name of the model, or the one to fit if there are several")
        .named("NAME");
    options.flag("--all", all, "Keep points with errors, few requests or cached prompts");
    options
        .value("-o,--write", write,
               "Write perfParms into this fleet document; all other text stays as it is")
        .named("MODEL.json");
    options.group("Check the fit");
    options.flag("--check", check, "Compare each measured point with the fit, with a chart");
    options.list("--held-out", held_out, "Compare the fit with this file, which is not fitted")
        .one_at_a_time()
        .named("FILE");
    options.group("Fit live servers");
    options
        .value("--prometheus", metrics.url,
               "Read vLLM metrics from this Prometheus server instead of files")
        .named("URL")
        .excludes("FILE");
    options
        .value("--from", metrics.from, "Start of the period: 2026-11-21T05:04:03Z, or an age (2h)")
        .named("TIME");
    options.value("--to", metrics.to, "End of the period (default: now)").named("TIME");
    options
        .value("--window", metrics.window,
               "Make one operating point per server and window of this length (default: 5m)")
        .named("DURATION");
    options.footer(
        "Examples:\n"
        "  berth fit results/ --accelerator H100 --check\n"
        "  berth fit qps1.json qps4.json --held-out qps16.json\n"
        "  berth fit benchmarks.json --llm llama --accelerator H100 -o model-data.json\n"
        "  berth fit --prometheus http://prometheus:9090 --from 6h --accelerator H100");
  }
};

std::string named(const std::string& name) {
  return name.empty() ? "(not said)" : name;
}

const fleet::Measured* same_of(const std::vector<fleet::Measured>& all,
                               const fleet::Measured& wanted) {
  const auto found = std::ranges::find_if(all, [&](const auto& each) {
    return each.model == wanted.model && each.accelerator == wanted.accelerator;
  });
  return found == all.end() ? nullptr : &*found;
}

Result<std::vector<fleet::Measured>> measured_of(os::Env& env,
                                                 const std::vector<std::string>& paths,
                                                 const FitCommandOptions& given) {
  BERTH_ASSIGN(auto input, read_benchmarks(env, paths));
  print_notes(input.notes);
  BERTH_TRY(choose_measured(input.measured, given.llm, given.accelerator));
  return std::move(input.measured);
}

std::string entry_name(const fleet::PerformanceEntry& entry) {
  return fmt::format("{} on {}", clip(entry.model), clip(entry.accelerator));
}

/// Collects entries whose accCount is a guess, or is not that of the measured server.
struct AcceleratorNotes {
  std::vector<std::string> guessed, notes;

  void add(const fleet::PerformanceEntry& entry, const fleet::WrittenPerformance& written) {
    const int measured = entry.accelerators, before = written.accelerators;
    if (measured == 0 && before == 0) guessed.push_back(entry_name(entry));
    if (measured > 0 && before > 0 && measured != before)
      notes.push_back(
          fmt::format("{}: accCount is {}, and the measured server had {} accelerators. Correct "
                      "accCount if it describes that server",
                      entry_name(entry), before, measured));
  }
  std::vector<std::string> all() const {
    auto all = notes;
    if (!guessed.empty())
      all.push_back(
          fmt::format("{}: the files do not name the number of accelerators, so a plan assumes one "
                      "for each replica. Correct accCount for a larger server (such as "
                      "--tensor-parallel-size 2 of vLLM)",
                      fleet::listed_entries(guessed)));
    return all;
  }
};

/// The notes on what the written entries still lack.
std::vector<std::string> notes_on_limits(const std::string& path, const std::string& text,
                                         const std::vector<fleet::PerformanceEntry>& entries) {
  const auto reading = fleet::read_documents(std::array{fleet::Document{path, text}});
  if (!reading)
    return {fmt::format("berth plan cannot read the written file: {}", reading.error().message)};
  fleet::MissingLimits missing;
  for (const auto& [model, accelerator, accelerators, fit] : entries)
    if (const auto assumed = fleet::assumed_for_entry(reading->system, model, accelerator))
      missing.add(model, accelerator, reading->system.models.at(model).accelerators.at(accelerator),
                  *assumed);
  return missing.notes();
}

Status write_fits(os::Env& env, const std::vector<fleet::PerformanceEntry>& entries,
                  const std::string& path) {
  for (const auto& entry : entries)
    if (entry.model.empty() || entry.accelerator.empty())
      return fail(ErrorKind::usage, "--write: the files do not name the {}; give {}",
                  entry.model.empty() ? "model" : "accelerator",
                  entry.model.empty() ? "--llm" : "--accelerator");
  std::string text;
  if (env.status(path)) {
    BERTH_ASSIGN(text, env.read_file(path, kMostModelBytes));
  }
  AcceleratorNotes notes;
  std::vector<std::string> written_entries;
  for (const auto& entry : entries) {
    auto written = fleet::with_performance(text, entry);
    if (!written) return std::unexpected(within(path, std::move(written).error()));
    notes.add(entry, *written);
    written_entries.push_back(entry_name(entry) + (written->is_new ? " (a new entry)" : ""));
    text = std::move(written->document);
  }
  BERTH_TRY(env.replace_user_file(path, text));
  print_error(fmt::format("wrote {} to {}\n", fleet::listed_entries(written_entries), path));
  print_notes(notes.all());
  print_notes(notes_on_limits(path, text, entries));
  return {};
}

/// One model on one accelerator, and what was held out of it.
Result<ShownFit> fit_one(const fleet::Measured& measured, const std::vector<fleet::Measured>& held,
                         const fleet::FitOptions& options) {
  BERTH_ASSIGN(auto fitted, fleet::fit(measured, options));
  ShownFit shown{measured.model,       measured.accelerator, measured.iterations.size(),
                 fitted.points.size(), std::move(fitted),    std::nullopt};
  print_notes(shown.fit.notes);
  if (const auto* other = same_of(held, measured); other != nullptr) {
    shown.held = fleet::hold(shown.fit.parameters, *other, options);
    print_notes(shown.held->notes);
  } else if (!held.empty()) {
    print_notes({"the held-out file is of another model or accelerator"});
  }
  return shown;
}

Result<std::vector<fleet::Measured>> measured_by(os::Env& env, const FitCommandOptions& given) {
  if (given.metrics.url.empty()) {
    if (given.files.empty())
      return fail(ErrorKind::usage, "expected files to fit, or --prometheus; see berth fit --help");
    if (!(given.metrics.from + given.metrics.to + given.metrics.window).empty())
      return fail(ErrorKind::usage, "--from, --to and --window go with --prometheus");
    return measured_of(env, given.files, given);
  }
  BERTH_ASSIGN(auto measured, read_prometheus(env, given.metrics));
  BERTH_TRY(choose_measured(measured, given.llm, given.accelerator));
  return measured;
}

Result<int> fit(os::Env& env, const FitCommandOptions& given) {
  BERTH_ASSIGN(const auto all, measured_by(env, given));
  std::vector<fleet::Measured> held;
  if (!given.held_out.empty()) {
    BERTH_ASSIGN(held, measured_of(env, given.held_out, given));
  }
  std::vector<ShownFit> fits;
  std::vector<fleet::PerformanceEntry> entries;
  std::optional<Error> first_error;
  for (const auto& measured : all) {
    auto shown = fit_one(measured, held, {.all = given.all});
    if (!shown) {
      if (all.size() > 1)
        print_notes({fmt::format("{} on {}: {}", named(measured.model), named(measured.accelerator),
                                 shown.error().message)});
      if (!first_error) first_error = std::move(shown).error();
      continue;
    }
    entries.push_back({measured.model, measured.accelerator, measured.accelerators, shown->fit});
    fits.push_back(*std::move(shown));
  }
  if (fits.empty()) return std::unexpected(*std::move(first_error));
  if (!given.write.empty()) BERTH_TRY(write_fits(env, entries, given.write));
  if (given.json) {
    print(fits_json(fits));
    return 0;
  }
  for (std::size_t i = 0; i < fits.size(); ++i)
    print((i > 0 ? "\n" : "") + fit_text(fits[i], given.check));
  return 0;
}

}  // namespace

Command fit_command() {
  return command("fit", "Fit performance parameters of a model to benchmarks", fit);
}

}  // namespace berth::cli
