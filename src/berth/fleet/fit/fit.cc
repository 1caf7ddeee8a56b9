#include "berth/fleet/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "berth/base/text.h"
#include "berth/fleet/fit/fit_checks.h"
#include "berth/fleet/fit/least_squares.h"
#include "berth/fleet/fit/next_measurements.h"
#include "berth/fleet/fit/observations.h"

namespace berth::fleet {
namespace {

constexpr int kRounds = 4;  // of weights that follow from the fit before
constexpr std::size_t kMostThresholds = 24;
constexpr int kRefinements = 8;
constexpr double kHuber = 1;  // standard deviations, beyond which an error counts less
// Of normal errors, the variance of Huber's estimator beyond one standard deviation (1.107) over
// what the weighted residuals say (0.753).
constexpr double kTamedVariance = 1.469;
constexpr double kLeastSpread = 1e-3;                 // of relative errors
constexpr double kHardToTell = 30, kNotToTell = 300;  // condition numbers
constexpr double kPrefersSum = 0.98;                  // what `max` has to be of the error of `sum`

std::size_t index(Term term) {
  return static_cast<std::size_t>(term);
}

/// Of the iterations with prompts, in how many these take longer than alpha, and how many tokens
/// they have in these: with more than `threshold`. Where not each is known tokens are taken to be
/// spread evenly about their mean.
struct Longer {
  double iterations = 0, tokens = 0;
};
Longer longer_than(const Observation& o, double threshold) {
  if (o.prefill_iterations <= 0) return {};
  if (!o.prompts.empty()) {
    Longer longer;
    const double each = o.prefill_iterations / static_cast<double>(o.prompts.size());
    for (const double tokens : o.prompts)
      if (tokens > threshold) longer.iterations += each, longer.tokens += each * tokens;
    return longer;
  }
  const double mean = o.prefill_tokens / o.prefill_iterations;
  const double variance = o.prefill_square / o.prefill_iterations - mean * mean;
  const double half = std::sqrt(3 * std::max(0.0, variance));
  if (half <= 1e-6 * mean)
    return mean > threshold ? Longer{o.prefill_iterations, o.prefill_tokens} : Longer{};
  const double low = std::max(0.0, mean - half), high = 2 * mean - low;
  const double from = std::clamp(threshold, low, high);
  return {o.prefill_iterations * (high - from) / (high - low),
          o.prefill_iterations * (high * high - from * from) / (2 * (high - low))};
}

Terms row_of(const Observation& o, StepForm form, double threshold) {
  Terms x{};
  const Longer longer = form == StepForm::max ? longer_than(o, threshold) : Longer{};
  x[Term::alpha] = o.bare_iterations + o.prefill_iterations - longer.iterations;
  x[Term::beta] = o.decoding;
  x[Term::beta_prefill] = form == StepForm::max ? longer.tokens : o.prefill_tokens;
  x[Term::gamma] = o.context_tokens;
  x[Term::ttft_offset] = o.phase == Phase::ttft ? 1 : 0;
  return x;
}

double threshold_of(const FitParameters& parameters) {
  const double prefill = parameters.ms[Term::beta_prefill];
  return prefill > 0 ? parameters.ms[Term::alpha] / prefill : HUGE_VAL;
}

/// What a fit may use: the terms, and whether tokens of prompts cost what decoded ones do.
struct Shape {
  TermMask mask{true, true, true, true, true};
  bool tied = false;
};

class Fitter {
 public:
  Fitter(std::vector<Observation> all, StepForm form, const Shape& shape)
      : all_(std::move(all)), form_(form), shape_(shape) {
    std::array<std::vector<double>, kPhases> of_phase;
    for (const auto& o : all_) of_phase[static_cast<std::size_t>(o.phase)].push_back(o.ms);
    for (auto& values : of_phase) std::ranges::sort(values);
    for (const auto& o : all_) {
      const auto& values = of_phase[static_cast<std::size_t>(o.phase)];
      reference_ms_.push_back(std::max(o.ms, values[values.size() / 2] / 3));
      weights_.push_back(o.weight);
    }
    parameters_.form = form;
  }

  void run() {
    const auto thresholds = thresholds_of();
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) reweigh();
      double best = HUGE_VAL;
      for (const double threshold : thresholds) attempt(threshold, best);
      // Where alpha and betaPrefill meet is between those that were tried.
      for (int i = 0; form_ == StepForm::max && i < kRefinements; ++i)
        if (!attempt(threshold_of(parameters_), best)) break;
    }
  }

  const FitParameters& parameters() const { return parameters_; }
  std::span<const Observation> all() const { return all_; }

  /// Σ x·xᵀ over the variance of the observations, which the spread of what is left tells.
  TermMatrix information() const {
    TermMatrix xx = normal_.xx;
    for (auto& row : xx)
      for (auto& value : row) value /= dispersion();
    return xx;
  }
  /// nullopt: nothing is left that tells how far off the terms are.
  std::optional<Terms> standard_errors() const {
    if (degrees_of_freedom() < 1) return std::nullopt;
    Terms errors{};
    for (std::size_t i = 0; i < kTerms; ++i)
      errors.at(i) = std::sqrt(dispersion() * solution_.variance.at(i));
    return errors;
  }
  Condition condition() const { return condition_of(normal_, shape_.mask); }
  /// The terms that any measurement is about.
  TermMask fitted() const {
    TermMask fitted = shape_.mask;
    for (std::size_t i = 0; i < kTerms; ++i) fitted[i] &= normal_.xx[i].at(i) > 0;
    return fitted;
  }
  double independent_measurements() const {
    double independent = 0;
    for (const auto& o : all_) independent += o.independent;
    return independent;
  }
  double degrees_of_freedom() const {
    return independent_measurements() - static_cast<double>(std::ranges::count(fitted(), true));
  }

 private:
  /// Fits what is linear once it is known from which tokens on prompts take longer than alpha; kept
  /// where it is better than the best.
  bool attempt(double threshold, double& best) {
    const auto normal = equations(threshold);
    const auto solution = solve_nonnegative(normal, shape_.mask);
    FitParameters tried{form_, solution.x};
    if (shape_.tied) tried.ms[Term::beta_prefill] = tried.ms[Term::beta];
    const double loss = loss_of(tried);
    if (loss >= best) return false;
    best = loss;
    parameters_ = tried;
    normal_ = normal;
    solution_ = solution;
    return true;
  }

  std::vector<double> thresholds_of() const {
    if (form_ == StepForm::sum) return {0};
    std::vector<double> tokens;
    for (const auto& o : all_)
      if (o.prefill_tokens > 0) tokens.push_back(o.prefill_tokens / o.prefill_iterations);
    std::ranges::sort(tokens);
    std::vector<double> thresholds{0};
    for (std::size_t i = 0; i < kMostThresholds && !tokens.empty(); ++i)
      thresholds.push_back(tokens[i * (tokens.size() - 1) / (kMostThresholds - 1)]);
    const auto repeated = std::ranges::unique(thresholds);
    thresholds.erase(repeated.begin(), repeated.end());
    return thresholds;
  }

  NormalEquations equations(double threshold) const {
    NormalEquations normal;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Terms x = row_of(all_[i], form_, threshold);
      if (shape_.tied) x[Term::beta] += std::exchange(x[Term::beta_prefill], 0);
      const double reference = reference_ms_[i];
      for (auto& value : x) value /= reference;
      normal.add(x, all_[i].ms / reference, weights_[i]);
    }
    return normal;
  }

  /// The variance of an independent measurement, in that of the weights; of too few that which
  /// those to be measured next are taken to have, since what is met exactly has none.
  double dispersion() const {
    const double freedom = degrees_of_freedom();
    if (freedom < 1) return kItlNoise * kItlNoise / (kLeastSpread * kLeastSpread);
    return std::max(1e-9, kTamedVariance * solution_.residual / freedom);
  }

  double loss_of(const FitParameters& parameters) const {
    double loss = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const double error = (predicted_ms(parameters, all_[i]) - all_[i].ms) / reference_ms_[i];
      loss += weights_[i] * error * error;
    }
    return loss;
  }

  /// From now on errors are relative to what is predicted, so that noise does not pull times down;
  /// each phase counts by how well it can be known, and what is far off counts less.
  void reweigh() {
    std::array<std::vector<double>, kPhases> errors;
    std::vector<double> error(all_.size());
    for (std::size_t i = 0; i < all_.size(); ++i) {
      reference_ms_[i] = std::max(predicted_ms(parameters_, all_[i]), all_[i].ms / 10);
      error[i] = std::abs(predicted_ms(parameters_, all_[i]) - all_[i].ms) / reference_ms_[i];
      errors[static_cast<std::size_t>(all_[i].phase)].push_back(error[i]);
    }
    std::array<double, kPhases> spread{};
    for (std::size_t p = 0; p < kPhases; ++p) {
      if (errors[p].empty()) continue;
      auto middle = errors[p].begin() + static_cast<std::ptrdiff_t>(errors[p].size() / 2);
      std::ranges::nth_element(errors[p], middle);
      constexpr double kOfMedian = 1.4826;  // the standard deviation of a normal distribution
      spread[p] = std::max(kLeastSpread, kOfMedian * *middle);
    }
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const double sigma = spread[static_cast<std::size_t>(all_[i].phase)];
      const double tamed = error[i] > kHuber * sigma ? kHuber * sigma / error[i] : 1;
      weights_[i] = all_[i].weight * tamed / (sigma * sigma);
    }
  }

  std::vector<Observation> all_;
  StepForm form_;
  Shape shape_;
  std::vector<double> reference_ms_, weights_;
  FitParameters parameters_;
  NormalEquations normal_;
  LeastSquares solution_;
};

/// The mean over phases of their median |relative error|.
double error_of(const FitParameters& parameters, std::span<const Observation> all) {
  const auto errors = phase_errors(parameters, all);
  double sum = 0;
  for (const auto& each : errors) sum += each.median;
  return errors.empty() ? 0 : sum / static_cast<double>(errors.size());
}

/// What the observations can tell about at all.
Shape shape_of(std::span<const Observation> all, std::vector<std::string>& notes) {
  Shape shape;
  bool prompts = false, first_tokens = false;
  for (const auto& o : all) {
    prompts |= o.prefill_tokens > 0;
    first_tokens |= o.phase == Phase::ttft;
  }
  shape.mask[index(Term::ttft_offset)] = first_tokens;
  shape.tied = !prompts;
  if (!prompts)
    notes.emplace_back(
        "no measurement shows what a prompt costs: betaPrefill is not written, so beta is used");
  return shape;
}

std::string words_of(const Terms& direction) {
  std::vector<std::string> terms;
  constexpr double kTakesPart = 0.3;
  for (std::size_t i = 0; i < kTerms; ++i)
    if (std::abs(direction.at(i)) > kTakesPart) terms.emplace_back(name(static_cast<Term>(i)));
  return join(terms, ", ");
}

/// Takes the term out that the measurements cannot tell from others and that is needed least;
/// nullopt: there is none.
std::optional<std::string> drop_one(Shape& shape, const Condition& condition) {
  constexpr double kTakesPart = 0.1;
  for (const Term term : {Term::gamma, Term::ttft_offset, Term::beta_prefill}) {
    const bool in_use = shape.mask[index(term)] && !(term == Term::beta_prefill && shape.tied);
    if (!in_use || std::abs(condition.weakest[term]) < kTakesPart) continue;
    const std::string before =
        fmt::format("{} cannot be distinguished (condition {:.0f}): ", words_of(condition.weakest),
                    condition.number);
    if (term == Term::beta_prefill) {
      shape.tied = true;
      return before + "betaPrefill is taken to be beta";
    }
    shape.mask[index(term)] = false;
    return fmt::format("{}{} is set to 0", before, name(term));
  }
  return std::nullopt;
}

/// What the measurements lack for a fit; "": nothing.
std::string missing_for(const Fitter& fitter) {
  const TermMask fitted = fitter.fitted();
  for (const Term term : {Term::alpha, Term::beta})
    if (!fitted[index(term)]) return fmt::format("none is about {}", name(term));
  const auto condition = fitter.condition();
  if (condition.number < kNotToTell) return "";
  return fmt::format(
      "{} cannot be distinguished (condition {:.0f}); measure other batches, and prompts of other "
      "lengths",
      words_of(condition.weakest), condition.number);
}

/// What to say where nothing is left to judge a fit by.
std::string exact_note(const Fitter& fitter) {
  const TermMask fitted = fitter.fitted();
  std::vector<std::string> terms;
  for (std::size_t i = 0; i < kTerms; ++i)
    if (fitted[i]) terms.emplace_back(name(static_cast<Term>(i)));
  return fmt::format(
      "{} fit {:.3g} independent measurements exactly, whatever their error: how far off they are "
      "is not known; measure {} or more",
      join(terms, ", "), fitter.independent_measurements(), terms.size() + 1);
}

struct Attempt {
  Fitter fitter;
  Shape shape;
  std::vector<std::string> notes;
  double error = 0;
  std::string missing;  // "": it is a fit
};

/// The best fit of a form with the terms that can be told apart.
Attempt fit_form(const Measured& measured, std::span<const PointUse> use, StepForm form) {
  constexpr int kMostRounds = 3;  // of observations, which tell how much iterations vary
  std::vector<std::string> notes;
  auto all = observations(measured, use, {});
  Shape shape = shape_of(all, notes);
  Fitter fitter(all, form, shape);
  fitter.run();
  const bool means = std::ranges::any_of(measured.points,
                                         [](const auto& point) { return point.timeline.empty(); });
  for (int round = 0;; ++round) {
    for (;;) {
      const auto condition = fitter.condition();
      if (condition.number < kNotToTell) break;
      const auto dropped = drop_one(shape, condition);
      if (!dropped) break;
      notes.push_back(*dropped);
      fitter = Fitter(all, form, shape);
      fitter.run();
    }
    if (!means || round == kMostRounds) break;
    all = observations(measured, use, fitter.parameters());
    fitter = Fitter(all, form, shape);
    fitter.run();
  }
  const double error = error_of(fitter.parameters(), all);
  std::string missing = missing_for(fitter);
  return {std::move(fitter), shape, std::move(notes), error, std::move(missing)};
}

void add_advice(Fit& fit, const Attempt& attempt, const Measured& measured) {
  const auto condition = attempt.fitter.condition();
  fit.condition = condition.number;
  if (condition.number > kHardToTell)
    fit.notes.push_back(fmt::format("{} are hard to distinguish (condition {:.0f})",
                                    words_of(condition.weakest), condition.number));
  constexpr std::size_t kFewPoints = 3;
  const bool only_means =
      measured.iterations.empty() && std::ranges::all_of(measured.points, [](const auto& point) {
        return point.timeline.empty();
      });
  if (only_means && measured.points.size() < kFewPoints)
    fit.notes.push_back(
        fmt::format("{} operating points are few: {} or more show how far to trust the fit",
                    measured.points.size(), kFewPoints));
  if (only_means && fit.determined[index(Term::gamma)])
    fit.notes.emplace_back(
        "means of whole loads hardly determine gamma: use files with the times of requests");
  double out = 0, points = 0;
  for (const auto& point : measured.points) out += point.out_tokens.mean, ++points;
  double context = 0;  // the most tokens that the server is known to hold
  for (const auto& o : attempt.fitter.all())
    if (o.phase != Phase::ttft)
      context = std::max(context, o.context_tokens / (o.bare_iterations + o.prefill_iterations));
  constexpr double kLeastContext = 16'384, kBeyond = 2;
  constexpr double kUsualOutTokens = 256;
  const TermMask all{true, true, !attempt.shape.tied || attempt.shape.mask[2], true, true};
  fit.next = next_measurements(fit.parameters, attempt.fitter.information(), all,
                               points > 0 ? std::round(out / points) : kUsualOutTokens,
                               std::max(kLeastContext, kBeyond * context));
}

}  // namespace

std::string_view name(Term term) {
  constexpr std::array<std::string_view, kTerms> kNames{"alpha", "beta", "betaPrefill", "gamma",
                                                        "ttftOffset"};
  return kNames[index(term)];
}

std::string_view name(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames{"decode", "prefill", "ITL", "TTFT"};
  return kNames[static_cast<std::size_t>(phase)];
}

Terms design_row(const FitParameters& parameters, const Observation& observation) {
  return row_of(observation, parameters.form, threshold_of(parameters));
}

double predicted_ms(const FitParameters& parameters, const Observation& observation) {
  const Terms row = design_row(parameters, observation);
  double ms = 0;
  for (std::size_t i = 0; i < kTerms; ++i) ms += row.at(i) * parameters.ms.at(i);
  return ms;
}

Result<Fit> fit(const Measured& measured, const FitOptions& options) {
  Fit fit;
  const auto use = judge_points(measured, options.all, 0, fit.notes);
  if (observations(measured, use, {}).empty())
    return fail(ErrorKind::invalid, "nothing to fit{}{}", fit.notes.empty() ? "" : ": ",
                join(fit.notes, "; "));
  Attempt sum = fit_form(measured, use, StepForm::sum),
          max = fit_form(measured, use, StepForm::max);
  const bool is_max =
      max.missing.empty() && (!sum.missing.empty() || max.error < kPrefersSum * sum.error);
  Attempt& chosen = is_max ? max : sum;
  if (!chosen.missing.empty()) {
    fit.notes.push_back(chosen.missing);
    return fail(ErrorKind::invalid, "the measurements do not show what an iteration costs: {}",
                join(fit.notes, "; "));
  }
  fit.parameters = chosen.fitter.parameters();
  fit.error = chosen.error;
  fit.other_error = (is_max ? sum : max).error;
  fit.standard_error = chosen.fitter.standard_errors();
  std::ranges::move(chosen.notes, std::back_inserter(fit.notes));
  if (!fit.standard_error) fit.notes.push_back(exact_note(chosen.fitter));
  fit.determined = chosen.shape.mask;
  if (chosen.shape.tied) fit.determined[index(Term::beta_prefill)] = false;
  if (fit.parameters.ms[Term::alpha] + fit.parameters.ms[Term::beta] <= 0)
    return fail(ErrorKind::invalid, "the measurements do not show what an iteration costs");
  const auto all = observations(measured, use, fit.parameters);
  fit.errors = phase_errors(fit.parameters, all);
  fit.points = check_points(fit.parameters, measured, use, all);
  add_advice(fit, chosen, measured);
  return fit;
}

}  // namespace berth::fleet
