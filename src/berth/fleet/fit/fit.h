// Performance parameters from measurements. An iteration of the engine takes
//   sum:  alpha + beta·B + betaPrefill·P + gamma·K
//   max:  max(alpha, betaPrefill·P) + beta·B + gamma·K
// ms, for B requests that decode, P tokens of prompts and K tokens that these attend to; the first
// token takes ttftOffset more, which is spent outside the engine. What is measured is a sum of
// iterations (Observation), linear in the parameters, so that these are linear least squares of the
// relative errors, none below 0. docs/explanation/fleet-fitting.md has the equations.
//
// Pure; the same measurements give the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

enum class Term : std::uint8_t { alpha, beta, beta_prefill, gamma, ttft_offset };
inline constexpr std::size_t kTerms = 5;
/// As documents spell them: "alpha", "betaPrefill", …
std::string_view name(Term term);

/// A value for each term, in ms, and ms a token.
struct Terms : std::array<double, kTerms> {
  double& operator[](Term term) { return at(static_cast<std::size_t>(term)); }
  double operator[](Term term) const { return at(static_cast<std::size_t>(term)); }
};

struct FitParameters {
  StepForm form = StepForm::sum;
  Terms ms{};
};

/// What an observation is about: an iteration without or with tokens of prompts, the mean between
/// two tokens, or the first token.
enum class Phase : std::uint8_t { decode, prefill, itl, ttft };
inline constexpr std::size_t kPhases = 4;
std::string_view name(Phase phase);

/// A time and what it is made of.
struct Observation {
  static constexpr std::uint32_t kNoPoint = UINT32_MAX;
  Phase phase = Phase::decode;
  std::uint32_t point = kNoPoint;                      // index into Measured::points
  double bare_iterations = 0, prefill_iterations = 0;  // without and with tokens of prompts
  double decoding = 0, prefill_tokens = 0;             // summed over these
  double prefill_square = 0;     // the sum of the squares of an iteration's tokens of prompts
  std::vector<float> prompts{};  // the tokens of each, or of some of them, where they are known
  double context_tokens = 0;
  double ms = 0;
  double weight = 1;       // how much it counts
  double independent = 1;  // independent measurements that it is worth, at most 1
};
double predicted_ms(const FitParameters& parameters, const Observation& observation);
/// What each term is multiplied by in the prediction.
Terms design_row(const FitParameters& parameters, const Observation& observation);

struct PhaseErrors {
  Phase phase = Phase::decode;
  std::size_t count = 0;
  double median = 0, p90 = 0;  // of |predicted / measured − 1|
};

/// A closed loop that would tell much about the parameters.
struct NextMeasurement {
  int concurrency = 0;  // requests side by side
  int in_tokens = 0, out_tokens = 0;
};
/// Those that together would tell most.
struct NextMeasurements {
  std::vector<NextMeasurement> measurements;
  Terms standard_error{};  // that would be left
};

/// A point held against the parameters.
struct PointCheck {
  std::string name;
  double rate_per_s = 0, concurrency = 0, in_tokens = 0, out_tokens = 0;
  double itl_ms = 0, ttft_ms = 0;                      // measured
  double predicted_itl_ms = 0, predicted_ttft_ms = 0;  // 0: not to be compared
  bool held_out = false;                               // not fitted
};

struct Fit {
  FitParameters parameters;
  /// Of the terms that are determined and above 0; nullopt: there are hardly more measurements than
  /// terms, and nothing tells how far off these are.
  std::optional<Terms> standard_error;
  std::array<bool, kTerms> determined{};  // by the measurements; false: set, and a note says why
  double condition = 0;                   // of the scaled design; above 30: hard to tell apart
  double error = 0,
         other_error = 0;  // mean over phases of their median, of this form and of the other
  std::vector<PhaseErrors> errors;
  std::vector<PointCheck> points;
  NextMeasurements next;
  std::vector<std::string> notes;
};

struct FitOptions {
  bool all = false;  // points with errors or few requests too, and prompts that may be cached
};

/// Fits the parameters. Errors: invalid, where there are no measurements, or these cannot tell what
/// an iteration costs from what a request in it does.
Result<Fit> fit(const Measured& measured, const FitOptions& options);

/// Holds measurements that were not fitted against parameters; their errors by phase, and points.
struct Held {
  std::vector<PhaseErrors> errors;
  std::vector<PointCheck> points;
  std::vector<std::string> notes;
};
Held hold(const FitParameters& parameters, const Measured& measured, const FitOptions& options);

}  // namespace berth::fleet
