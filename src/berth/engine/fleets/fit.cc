#include "berth/engine/fleets/fit.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/engine/fleets/benchmarks.h"
#include "berth/fleet/model/missing_limits.h"
#include "berth/fleet/model/performance_entry.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostModelBytes = 256U << 20;

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
                                                 const FitRequest& request,
                                                 const FleetNotes& notes) {
  BERTH_ASSIGN(auto input, read_benchmarks(env, paths));
  notes(input.notes);
  BERTH_TRY(choose_measured(input.measured, request.llm, request.accelerator));
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
                  const std::string& path, const FleetNotes& notes, const Note& report) {
  for (const auto& entry : entries)
    if (entry.model.empty() || entry.accelerator.empty())
      return fail(ErrorKind::usage, "--write: the files do not name the {}; give {}",
                  entry.model.empty() ? "model" : "accelerator",
                  entry.model.empty() ? "--llm" : "--accelerator");
  std::string text;
  if (env.status(path)) {
    BERTH_ASSIGN(text, env.read_file(path, kMostModelBytes));
  }
  AcceleratorNotes of_accelerators;
  std::vector<std::string> written_entries;
  for (const auto& entry : entries) {
    auto written = fleet::with_performance(text, entry);
    if (!written) return std::unexpected(within(path, std::move(written).error()));
    of_accelerators.add(entry, *written);
    written_entries.push_back(entry_name(entry) + (written->is_new ? " (a new entry)" : ""));
    text = std::move(written->document);
  }
  BERTH_TRY(env.replace_user_file(path, text));
  report(fmt::format("wrote {} to {}\n", fleet::listed_entries(written_entries), path));
  notes(of_accelerators.all());
  notes(notes_on_limits(path, text, entries));
  return {};
}

/// One model on one accelerator, and what was held out of it.
Result<FleetFit> fit_one(const fleet::Measured& measured, const std::vector<fleet::Measured>& held,
                         const fleet::FitOptions& options, const FleetNotes& notes) {
  BERTH_ASSIGN(auto fitted, fleet::fit(measured, options));
  FleetFit shown{measured.model,       measured.accelerator, measured.iterations.size(),
                 fitted.points.size(), std::move(fitted),    std::nullopt};
  notes(shown.fit.notes);
  if (const auto* other = same_of(held, measured); other != nullptr) {
    shown.held = fleet::hold(shown.fit.parameters, *other, options);
    notes(shown.held->notes);
  } else if (!held.empty()) {
    notes({"the held-out file is of another model or accelerator"});
  }
  return shown;
}

Result<std::vector<fleet::Measured>> measured_by(os::Env& env, const FitRequest& request,
                                                 const FleetNotes& notes) {
  if (request.metrics.url.empty()) {
    if (request.files.empty())
      return fail(ErrorKind::usage, "expected files to fit, or --prometheus; see berth fit --help");
    if (!(request.metrics.from + request.metrics.to + request.metrics.window).empty())
      return fail(ErrorKind::usage, "--from, --to and --window go with --prometheus");
    return measured_of(env, request.files, request, notes);
  }
  if (!request.files.empty())
    return fail(ErrorKind::usage, "--prometheus: not with files: one of them is fitted");
  BERTH_ASSIGN(auto measured, read_prometheus(env, request.metrics));
  BERTH_TRY(choose_measured(measured, request.llm, request.accelerator));
  return measured;
}

}  // namespace

Result<FleetFits> fit_performance(os::Env& env, const FitRequest& request, const FleetNotes& notes,
                                  const Note& report) {
  BERTH_ASSIGN(const auto all, measured_by(env, request, notes));
  std::vector<fleet::Measured> held;
  if (!request.held_out.empty()) {
    BERTH_ASSIGN(held, measured_of(env, request.held_out, request, notes));
  }
  std::vector<FleetFit> fits;
  std::vector<fleet::PerformanceEntry> entries;
  std::optional<Error> first_error;
  for (const auto& measured : all) {
    auto shown = fit_one(measured, held, {.all = request.all}, notes);
    if (!shown) {
      if (all.size() > 1)
        notes({fmt::format("{} on {}: {}", named(measured.model), named(measured.accelerator),
                           shown.error().message)});
      if (!first_error) first_error = std::move(shown).error();
      continue;
    }
    entries.push_back({measured.model, measured.accelerator, measured.accelerators, shown->fit});
    fits.push_back(*std::move(shown));
  }
  if (fits.empty()) return std::unexpected(*std::move(first_error));
  if (!request.write.empty()) BERTH_TRY(write_fits(env, entries, request.write, notes, report));
  return FleetFits{std::move(fits)};
}

}  // namespace berth::engine
