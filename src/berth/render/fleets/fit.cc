#include "berth/render/fleets/fit.h"

#include <algorithm>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::render {
namespace {

constexpr fleet::StepForm kForms[] = {fleet::StepForm::sum, fleet::StepForm::max};

std::string formula(fleet::StepForm form) {
  return form == fleet::StepForm::sum
             ? "alpha + beta·batch + betaPrefill·prompt tokens + gamma·context"
             : "max(alpha, betaPrefill·prompt tokens) + beta·batch + gamma·context";
}

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

std::string error_text(double predicted, double measured) {
  return predicted > 0 && measured > 0 ? fmt::format("{:+.1f} %", 100 * (predicted / measured - 1))
                                       : "-";
}

std::string time_text(double ms) {
  return ms > 0 ? fmt::format("{:.2f}", ms) : "-";
}

std::string parameters_text(const fleet::Fit& fit) {
  Table table({"parameter", "ms", "± standard error", "after the next two"});
  for (std::size_t i = 0; i < fleet::kTerms; ++i) {
    const double value = fit.parameters.ms.at(i);
    const auto part = [&](double of) {
      constexpr double kLeastShown = 0.0005;
      if (!(value > 0)) return fmt::format("{:.3g} ms", of);
      return of / value < kLeastShown ? "< 0.1 %" : percent(of / value);
    };
    table.add({std::string(fleet::name(static_cast<fleet::Term>(i))), fmt::format("{:.5g}", value),
               !fit.determined[i]    ? "not determined"
               : !(value > 0)        ? "at its bound"
               : !fit.standard_error ? "not known"
                                     : part(fit.standard_error->at(i)),
               part(fit.next.standard_error.at(i))});
  }
  return to_text(table);
}

std::string errors_text(const std::vector<fleet::PhaseErrors>& errors, std::string_view of) {
  Table table({fmt::format("relative error of {}", of), "median", "90 %", "measurements"});
  for (const auto& each : errors)
    table.add({std::string(fleet::name(each.phase)), percent(each.median), percent(each.p90),
               fmt::format("{}", each.count)});
  return table.empty() ? "" : to_text(table);
}

std::string points_text(const std::vector<fleet::PointCheck>& points) {
  Table table({"point", "req/s", "in parallel", "in", "out", "ITL ms", "fitted", "error", "TTFT ms",
               "fitted", "error"});
  for (const auto& p : points)
    table.add({p.name + (p.held_out ? " (held out)" : ""), fmt::format("{:.2f}", p.rate_per_s),
               p.concurrency > 0 ? fmt::format("{:.1f}", p.concurrency) : "-",
               fmt::format("{:.0f}", p.in_tokens), fmt::format("{:.0f}", p.out_tokens),
               time_text(p.itl_ms), time_text(p.predicted_itl_ms),
               error_text(p.predicted_itl_ms, p.itl_ms), time_text(p.ttft_ms),
               time_text(p.predicted_ttft_ms), error_text(p.predicted_ttft_ms, p.ttft_ms)});
  return table.empty() ? "" : to_text(table);
}

/// Bars of what was measured, and a mark where the fit has it.
std::string chart_text(const std::vector<fleet::PointCheck>& points) {
  constexpr double kColumns = 50;
  constexpr std::size_t kMostBars = 30;
  double most = 0;
  for (const auto& p : points) most = std::max({most, p.itl_ms, p.predicted_itl_ms});
  if (!(most > 0) || points.size() < 2) return "";
  std::vector<const fleet::PointCheck*> ordered;
  for (const auto& p : points) ordered.push_back(&p);
  std::ranges::stable_sort(ordered, {}, &fleet::PointCheck::concurrency);
  std::string text =
      fmt::format("ITL by concurrent requests, to {:.1f} ms: = measured, | fitted\n", most);
  const std::size_t every = (ordered.size() + kMostBars - 1) / kMostBars;
  for (std::size_t i = 0; i < ordered.size(); i += every) {
    const auto columns = [&](double ms) {
      return static_cast<std::size_t>(std::lround(kColumns * ms / most));
    };
    std::string bar(columns(ordered[i]->itl_ms), '=');
    if (const std::size_t at = columns(ordered[i]->predicted_itl_ms); at > 0) {
      bar.resize(std::max(bar.size(), at), ' ');
      bar[at - 1] = '|';
    }
    text += fmt::format("{:>8.1f} {}\n", ordered[i]->concurrency, bar);
  }
  return text;
}

void add_errors(JsonWriter& json, const std::vector<fleet::PhaseErrors>& errors) {
  json.array();
  for (const auto& each : errors)
    json.object()
        .add("phase", lower(fleet::name(each.phase)))
        .add("count", each.count)
        .add("median", each.median)
        .add("p90", each.p90)
        .end();
  json.end();
}

void add_terms(JsonWriter& json, const fleet::Terms& terms) {
  for (std::size_t i = 0; i < fleet::kTerms; ++i)
    json.add(fleet::name(static_cast<fleet::Term>(i)), terms.at(i));
}

void add_points(JsonWriter& json, const std::vector<fleet::PointCheck>& points) {
  for (const auto& p : points)
    json.object()
        .add("name", p.name)
        .add("heldOut", p.held_out)
        .add("rate", p.rate_per_s)
        .add("concurrency", p.concurrency)
        .add("avgInTokens", p.in_tokens)
        .add("avgOutTokens", p.out_tokens)
        .add("itl", p.itl_ms)
        .add("itlFitted", p.predicted_itl_ms)
        .add("ttft", p.ttft_ms)
        .add("ttftFitted", p.predicted_ttft_ms)
        .end();
}

void add_fit(JsonWriter& json, const engine::FleetFit& shown) {
  const auto& fit = shown.fit;
  json.object().add("model", shown.model).add("accelerator", shown.accelerator);
  json.add("iterations", shown.iterations).add("points", shown.points);
  json.key("perfParms").object();
  add_terms(json, fit.parameters.ms);
  json.add("form", fleet::name(fit.parameters.form)).end();
  json.key("standardErrors").object();
  fleet::Terms errors{};
  for (std::size_t i = 0; i < fleet::kTerms; ++i) {
    const bool known = fit.standard_error && fit.determined[i] && fit.parameters.ms.at(i) > 0;
    errors.at(i) = known ? fit.standard_error->at(i) : NAN;  // null
  }
  add_terms(json, errors);
  json.end().key("determined").object();
  for (std::size_t i = 0; i < fleet::kTerms; ++i)
    json.add(fleet::name(static_cast<fleet::Term>(i)), fit.determined[i]);
  json.end().add("condition", fit.condition);
  json.add("error", fit.error).add("otherFormError", fit.other_error).key("errors");
  add_errors(json, fit.errors);
  json.key("check").array();
  add_points(json, fit.points);
  if (shown.held) add_points(json, shown.held->points);
  json.end();
  if (shown.held) {
    json.key("heldOutErrors");
    add_errors(json, shown.held->errors);
  }
  json.key("measureNext").array();
  for (const auto& next : fit.next.measurements)
    json.object()
        .add("concurrency", next.concurrency)
        .add("inTokens", next.in_tokens)
        .add("outTokens", next.out_tokens)
        .end();
  json.end().key("notes").list(fit.notes).end();
}

std::string fit_text(const engine::FleetFit& shown, bool check) {
  const auto& fit = shown.fit;
  const auto named = [](const std::string& name, std::string_view otherwise) {
    return name.empty() ? std::string(otherwise) : name;
  };
  std::string text =
      fmt::format("{} on {}: {}\n", named(shown.model, "the model"),
                  named(shown.accelerator, "its accelerator"), formula(fit.parameters.form));
  text += fmt::format("from {} iterations and {} operating points; form {}", shown.iterations,
                      shown.points, fleet::name(fit.parameters.form));
  text += fit.standard_error
              ? fmt::format(" is {} off, {} {}\n", percent(fit.error),
                            fleet::name(kForms[fit.parameters.form == kForms[0] ? 1 : 0]),
                            percent(fit.other_error))
              : ", which nothing is left to judge by\n";
  text += "\n" + parameters_text(fit);
  if (fit.standard_error) text += "\n" + errors_text(fit.errors, "the fit");
  if (shown.held) text += "\n" + errors_text(shown.held->errors, "the held-out file");
  if (check) {
    auto points = fit.points;
    if (shown.held) std::ranges::copy(shown.held->points, std::back_inserter(points));
    for (const auto& part : {points_text(points), chart_text(points)})
      if (!part.empty()) text += "\n" + part;
  }
  std::vector<std::string> next;
  for (const auto& each : fit.next.measurements)
    next.push_back(fmt::format("{} concurrent, with {} tokens in, {} out", each.concurrency,
                               each.in_tokens, each.out_tokens));
  if (!next.empty()) text += fmt::format("\nmeasure next: {}\n", join(next, "; "));
  return text;
}

}  // namespace

std::string to_text(const engine::FleetFits& fits, const View&) {
  std::vector<std::string> texts;
  for (const auto& fit : fits.fits) texts.push_back(fit_text(fit, fits.is_checked));
  return join(texts, "\n");
}

std::string to_json(const engine::FleetFits& fits) {
  JsonWriter json;
  json.object().add("version", 1).key("fits").array();
  for (const auto& shown : fits.fits) add_fit(json, shown);
  json.end().end();
  return json.take() + "\n";
}

}  // namespace berth::render
