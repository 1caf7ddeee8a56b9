#include "berth/fleet/fit/fit.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>

#include "berth/fleet/fit/least_squares.h"
#include "berth/fleet/fit/observations.h"
#include "berth/fleet/measurements/benchmark_files.h"
#include "berth/testing/fit.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

using testing::SimulatedLoad;

FitParameters truth_of(StepForm form) {
  return {form, {20, 0.2, 0.1, 1e-4, 8}};
}

Fit fitted(const Measured& measured, const FitOptions& options = {}) {
  auto made = fit(measured, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : Fit{};
}

/// |fitted / true − 1|
double error_of_term(const Fit& fit, const FitParameters& truth, Term term) {
  return std::abs(fit.parameters.ms[term] / truth.ms[term] - 1);
}

Measured rows_of(const FitParameters& truth) {
  Measured measured;
  for (const double decoding : {0, 1, 8, 64})
    for (const double prefill : {0, 50, 400, 3000})
      for (const double length : {100, 3000}) {
        if (decoding + prefill == 0) continue;
        const double context = decoding * length + prefill;
        const bool prompts = prefill > 0;
        const Observation iteration{.bare_iterations = prompts ? 0.0 : 1.0,
                                    .prefill_iterations = prompts ? 1.0 : 0.0,
                                    .decoding = decoding,
                                    .prefill_tokens = prefill,
                                    .prefill_square = prefill * prefill,
                                    .context_tokens = context};
        measured.iterations.push_back({decoding, prefill, context, predicted_ms(truth, iteration)});
      }
  return measured;
}

/// The server at five rates, from a tenth to seven tenths of what it can take.
Measured simulated_rates(const FitParameters& truth, std::uint64_t seed, bool gaps, double jitter,
                         int requests) {
  Rng rng(seed);
  Measured measured;
  for (const double part : {0.1, 0.25, 0.4, 0.55, 0.7}) {
    const SimulatedLoad load{
        .rate_per_s = part * 18, .requests = requests, .gaps = gaps, .jitter = jitter};
    measured.points.push_back(testing::simulated_point(truth, load, rng, true));
  }
  return measured;
}

bool has_note(const Fit& fit, std::string_view part) {
  for (const auto& note : fit.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(FleetFit, AnIterationIsSumOrMax) {
  Observation iteration{
      .prefill_iterations = 1, .decoding = 4, .prefill_tokens = 500, .context_tokens = 1000};
  iteration.prefill_square = 500 * 500;
  EXPECT_DOUBLE_EQ(predicted_ms(truth_of(StepForm::sum), iteration), 20 + 0.8 + 50 + 0.1);
  EXPECT_DOUBLE_EQ(predicted_ms(truth_of(StepForm::max), iteration), 50 + 0.8 + 0.1);
  iteration.prefill_tokens = 100, iteration.prefill_square = 1e4;
  EXPECT_DOUBLE_EQ(predicted_ms(truth_of(StepForm::max), iteration), 20 + 0.8 + 0.1);
  iteration.phase = Phase::ttft;
  EXPECT_DOUBLE_EQ(predicted_ms(truth_of(StepForm::max), iteration), 20 + 0.8 + 0.1 + 8);
}

TEST(FleetFit, MeansOfIterationsCountThoseWhosePromptsBind) {
  // Prompts of 100 and of 500 tokens, of which 200 take as long as alpha.
  const Observation both{.prefill_iterations = 2,
                         .prefill_tokens = 600,
                         .prefill_square = 1e4 + 25e4,
                         .prompts = {100, 500}};
  EXPECT_DOUBLE_EQ(predicted_ms(truth_of(StepForm::max), both), 20 + 50);
  // Spread evenly from 0 to 400: half of them for 20, the others for 30 on average.
  const Observation even{.prefill_iterations = 1,
                         .prefill_tokens = 200,
                         .prefill_square = 200 * 200 + 400.0 * 400 / 12};
  EXPECT_NEAR(predicted_ms(truth_of(StepForm::max), even), 10 + 15, 1e-9);
}

TEST(FleetFit, RowsGiveTheirParametersBackInTheirForm) {
  for (const StepForm form : {StepForm::sum, StepForm::max}) {
    const auto truth = truth_of(form);
    const Fit fit = fitted(rows_of(truth));
    EXPECT_EQ(fit.parameters.form, form);
    for (const Term term : {Term::alpha, Term::beta, Term::beta_prefill, Term::gamma})
      EXPECT_LT(error_of_term(fit, truth, term), 1e-6) << name(term);
    EXPECT_FALSE(fit.determined[static_cast<std::size_t>(Term::ttft_offset)]);
    EXPECT_LT(fit.error, 1e-9);
    EXPECT_GT(fit.other_error, 0.01);
  }
}

TEST(FleetFit, AMeasuredTable) {
  const auto path = tests::source_path("tests/data/benchmarks/splitwise.csv");
  const auto file = read_benchmark_file("splitwise.csv", testing::text_of(path));
  ASSERT_TRUE(file);
  const Fit fit = fitted(file->measured.at(0));
  EXPECT_EQ(fit.parameters.form, StepForm::max);
  for (const auto& each : fit.errors) EXPECT_LT(each.median, 0.06) << name(each.phase);
}

TEST(FleetFit, TokenByTokenTimesGiveTheIterationsBack) {
  for (const StepForm form : {StepForm::sum, StepForm::max}) {
    const auto truth = truth_of(form);
    const Fit fit = fitted(simulated_rates(truth, 1, true, 0, 300));
    EXPECT_EQ(fit.parameters.form, form);
    EXPECT_LT(error_of_term(fit, truth, Term::alpha), 0.002);
    EXPECT_LT(error_of_term(fit, truth, Term::beta), 0.005);
    EXPECT_LT(error_of_term(fit, truth, Term::beta_prefill), 0.005);
    EXPECT_LT(error_of_term(fit, truth, Term::gamma), 0.02);
    EXPECT_LT(error_of_term(fit, truth, Term::ttft_offset), 0.25);
  }
}

TEST(FleetFit, MeansOfRequestsGiveThemBackThroughNoise) {
  for (const StepForm form : {StepForm::sum, StepForm::max})
    for (const std::uint64_t seed : {1U, 2U}) {
      const auto truth = truth_of(form);
      const Fit fit = fitted(simulated_rates(truth, seed, false, 0.02, 800));
      EXPECT_EQ(fit.parameters.form, form);
      EXPECT_LT(error_of_term(fit, truth, Term::alpha), 0.01);
      EXPECT_LT(error_of_term(fit, truth, Term::beta), 0.05);
      EXPECT_LT(error_of_term(fit, truth, Term::beta_prefill), 0.03);
      EXPECT_LT(error_of_term(fit, truth, Term::gamma), 0.25);
      for (const auto& point : fit.points)
        EXPECT_NEAR(point.predicted_itl_ms / point.itl_ms, 1, 0.01);
    }
}

TEST(FleetFit, MeansOfPointsTellAlphaAndWhatATokenCosts) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(4);
  Measured open, closed;
  for (const double in_tokens : {100.0, 800.0}) {
    for (const double rate_per_s : {0.5, 2.0, 4.0})
      open.points.push_back(testing::simulated_point(
          truth, {.rate_per_s = rate_per_s, .requests = 600, .in_tokens = in_tokens}, rng, false));
    for (const int concurrency : {1, 4, 16})
      closed.points.push_back(testing::simulated_point(
          truth, {.max_concurrency = concurrency, .requests = 600, .in_tokens = in_tokens}, rng,
          false));
  }
  for (const auto& measured : {open, closed}) {
    const Fit fit = fitted(measured);
    EXPECT_LT(error_of_term(fit, truth, Term::alpha), 0.02);
    EXPECT_LT(error_of_term(fit, truth, Term::beta_prefill), 0.15);
    ASSERT_EQ(fit.points.size(), 6U);
    for (const auto& point : fit.points) {
      EXPECT_NEAR(point.predicted_itl_ms / point.itl_ms, 1, 0.03);
      EXPECT_NEAR(point.predicted_ttft_ms / point.ttft_ms, 1, 0.15);
    }
  }
}

TEST(FleetFit, ALoadMeansWhatTheServerDoesUnderIt) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(9);
  for (const double rate_per_s : {1.0, 4.0, 8.0}) {
    const auto point =
        testing::simulated_point(truth, {.rate_per_s = rate_per_s, .requests = 2000}, rng, false);
    const auto times = mean_times(load_of(point), truth);
    EXPECT_NEAR(times.itl_ms / point.itl_ms.mean, 1, 0.02) << rate_per_s;
    EXPECT_NEAR(times.ttft_ms / point.ttft_ms.mean, 1, 0.04) << rate_per_s;
  }
  for (const int concurrency : {1, 4, 8}) {
    const auto point = testing::simulated_point(
        truth, {.max_concurrency = concurrency, .requests = 800}, rng, false);
    const auto times = mean_times(load_of(point), truth);
    EXPECT_NEAR(times.itl_ms / point.itl_ms.mean, 1, 0.01) << concurrency;
    EXPECT_NEAR(times.ttft_ms / point.ttft_ms.mean, 1, 0.03) << concurrency;
  }
  // While the last of few requests end, none come; at least the mean of a response is known of
  // that.
  const auto brief = testing::simulated_point(truth, {.rate_per_s = 5, .requests = 200}, rng, true);
  const double came_per_ms = 200 / brief.timeline.back().start_ms;
  const double rate_per_ms = brief.rate_per_s / kSecondMs, corrected = load_of(brief).rate_per_ms;
  EXPECT_GT(corrected, 1.04 * rate_per_ms);
  EXPECT_LT(corrected, 1.02 * came_per_ms);
  const MeanLoad too_much{.rate_per_ms = 1, .in_tokens = 300, .out_tokens = 100, .out_square = 1e4};
  EXPECT_EQ(mean_times(too_much, truth).itl_ms, 0);
}

TEST(FleetFit, StandardErrorsAreThoseOfRepeatedMeasurements) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(6);
  double square = 0, told = 0;
  constexpr int kRepeats = 150;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Measured measured = rows_of(truth);
    for (auto& row : measured.iterations) {
      double noise = -6;
      for (int i = 0; i < 12; ++i) noise += rng.uniform();
      row.ms *= 1 + 0.02 * noise;
    }
    const Fit fit = fitted(measured);
    const double error = fit.parameters.ms[Term::beta] - truth.ms[Term::beta];
    square += error * error / kRepeats;
    told += (*fit.standard_error)[Term::beta] / kRepeats;
  }
  EXPECT_NEAR(told / std::sqrt(square), 1, 0.25);
}

/// Iterations of these batches, of which alpha and beta are told, off by `error` times ±1.
Measured decoding(std::span<const double> batches, double error) {
  Measured measured;
  for (const double batch : batches) {
    measured.iterations.push_back({batch, 0, 500 * batch, (20 + 0.25 * batch) * (1 + error)});
    error = -error;
  }
  return measured;
}

TEST(FleetFit, FewMeasurementsAreJudgedByWhatTheirTermsLeaveFree) {
  // Of two terms eight measurements leave six free: their mean square is 8/6 of the variance.
  const Fit fit = fitted(decoding(std::array<double, 8>{1, 1, 8, 8, 64, 64, 512, 512}, 0.02));
  NormalEquations normal;
  for (const double batch : {1, 8, 64, 512}) {
    const double ms = 20 + 0.25 * batch;
    normal.add({1 / ms, batch / ms}, 1, 2 / (0.02 * 0.02 * 8 / 6));
  }
  const auto expected = solve_nonnegative(normal, {true, true});
  constexpr double kTamedVariance = 1.469;  // as if the errors were normal, which these are not
  for (const Term term : {Term::alpha, Term::beta})
    EXPECT_NEAR(std::pow((*fit.standard_error)[term], 2) / expected.variance[term], kTamedVariance,
                0.01);
}

TEST(FleetFit, TermsThatMeetAnythingHaveNoStandardErrors) {
  const Fit two = fitted(decoding(std::array<double, 2>{1, 8}, 0.05));
  EXPECT_FALSE(two.standard_error);
  EXPECT_TRUE(has_note(two, "alpha, beta fit 2 independent measurements exactly"));
  EXPECT_TRUE(has_note(two, "measure 3 or more"));
  // What is expected of the next two does not rest on an exact fit either.
  ASSERT_EQ(two.next.measurements.size(), 2U);
  EXPECT_GT(two.next.standard_error[Term::alpha], 0.005 * two.parameters.ms[Term::alpha]);
  const Fit three = fitted(decoding(std::array<double, 3>{1, 8, 64}, 0.05));
  EXPECT_TRUE(three.standard_error);
  EXPECT_FALSE(has_note(three, "independent measurements exactly"));
}

TEST(FleetFit, WhatAnIterationCostsHasToBeTold) {
  const auto is_refused = [](const Measured& measured, std::string_view why) {
    const auto made = fit(measured, {});
    return !made && made.error().message.contains(why);
  };
  EXPECT_TRUE(is_refused(decoding(std::array<double, 4>{8, 8, 8, 8}, 0.01),
                         "alpha, beta cannot be distinguished"));
  Measured prompts;
  for (const double tokens : {100, 200, 300, 400, 500})
    prompts.iterations.push_back({0, tokens, tokens, 20 + 0.1 * tokens});
  EXPECT_TRUE(is_refused(prompts, "none is about beta"));
}

TEST(FleetFit, OneLengthCannotTellBatchFromContext) {
  const auto truth = truth_of(StepForm::sum);
  Measured measured;
  for (const double batch : {1, 4, 16, 64}) {
    const double context = 500 * batch;
    measured.iterations.push_back({batch, 0, context, 20 + 0.2 * batch + 1e-4 * context});
  }
  const Fit fit = fitted(measured);
  EXPECT_TRUE(has_note(fit, "beta, gamma cannot be distinguished"));
  EXPECT_TRUE(has_note(fit, "betaPrefill is not written"));
  EXPECT_FALSE(fit.determined[static_cast<std::size_t>(Term::gamma)]);
  EXPECT_FALSE(fit.determined[static_cast<std::size_t>(Term::beta_prefill)]);
  EXPECT_NEAR(fit.parameters.ms[Term::beta], 0.25, 1e-6);
  EXPECT_NEAR(fit.parameters.ms[Term::alpha], truth.ms[Term::alpha], 1e-6);
}

TEST(FleetFit, WhatItProposesToMeasureHelps) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(2);
  Measured measured;
  const auto measure = [&](int concurrency, double in_tokens, double out_tokens) {
    measured.points.push_back(testing::simulated_point(truth,
                                                       {.max_concurrency = concurrency,
                                                        .requests = 400,
                                                        .in_tokens = in_tokens,
                                                        .out_tokens = out_tokens},
                                                       rng, false));
  };
  for (const int concurrency : {2, 3, 4}) measure(concurrency, 256, 100);
  const Fit before = fitted(measured);
  ASSERT_EQ(before.next.measurements.size(), 2U);
  for (const auto& next : before.next.measurements)
    measure(next.concurrency, next.in_tokens, next.out_tokens);
  const Fit after = fitted(measured);
  EXPECT_LT(error_of_term(after, truth, Term::alpha), 0.02);
  EXPECT_LT(error_of_term(after, truth, Term::beta_prefill), 0.05);
  EXPECT_LT((*after.standard_error)[Term::beta_prefill],
            (*before.standard_error)[Term::beta_prefill]);
}

TEST(FleetFit, AClosedLoopWithItsRequestsHasNoOffset) {
  FitParameters truth = truth_of(StepForm::sum);
  truth.ms[Term::ttft_offset] = 0;
  Rng rng(5);
  Measured measured;
  for (const int concurrency : {2, 8, 16})
    measured.points.push_back(testing::simulated_point(
        truth, {.max_concurrency = concurrency, .requests = 200, .gaps = true}, rng, true));
  const Fit fit = fitted(measured);
  EXPECT_LT(fit.parameters.ms[Term::ttft_offset], 0.05 * truth.ms[Term::alpha]);
  EXPECT_LT(error_of_term(fit, truth, Term::alpha), 0.01);
}

TEST(FleetFit, AClosedLoopOfOneLengthRunsInStep) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(2);
  Measured measured;
  for (const bool fixed : {true, false})
    measured.points.push_back(testing::simulated_point(
        truth,
        {.max_concurrency = fixed ? 4 : 16, .requests = 400, .in_tokens = 256, .fixed = fixed}, rng,
        false));
  const Fit fit = fitted(measured);
  int notes = 0;
  for (const auto& note : fit.notes) notes += note.find("in step") != std::string::npos ? 1 : 0;
  EXPECT_EQ(notes, 1);
}

TEST(FleetFit, PointsThatAreNotToBeTrustedAreRefused) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(3);
  Measured measured;
  for (const int concurrency : {4, 4, 4, 16})
    measured.points.push_back(testing::simulated_point(
        truth, {.max_concurrency = concurrency, .requests = 150}, rng, false));
  measured.points[0].errors = 2;
  measured.points[1].requests = 99;
  const Fit some = fitted(measured);
  EXPECT_EQ(some.points.size(), 2U);
  EXPECT_TRUE(has_note(some, "2 of 152 requests failed"));
  EXPECT_TRUE(has_note(some, "it has 99 requests, fewer than 100"));
  EXPECT_EQ(fitted(measured, {.all = true}).points.size(), 4U);
  measured.points.resize(2);
  const auto none = fit(measured, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::invalid);
  EXPECT_TRUE(none.error().message.starts_with("nothing to fit: simulated: not used"))
      << none.error().message;
}

TEST(FleetFit, PromptsInAWarmCacheAreLeftOut) {
  const auto truth = truth_of(StepForm::sum);
  Measured measured = simulated_rates(truth, 5, true, 0, 200);
  Rng rng(1);  // whatever the prompt
  for (auto& request : measured.points[1].timeline) request.ttft_ms = 30 + 20 * rng.uniform();
  const Fit fit = fitted(measured);
  EXPECT_TRUE(has_note(fit, "does not depend on the prompt"));
  EXPECT_EQ(fit.points[1].predicted_ttft_ms, 0);
  EXPECT_GT(fit.points[0].predicted_ttft_ms, 0);
  EXPECT_LT(error_of_term(fit, truth, Term::beta_prefill), 0.01);
  EXPECT_FALSE(has_note(fitted(simulated_rates(truth, 5, true, 0, 200)), "does not depend"));
}

TEST(FleetFit, FirstTokensThatWaitForAPlaceAreLeftOut) {
  const auto truth = truth_of(StepForm::sum);
  Rng rng(7);
  Measured measured;
  for (const int concurrency : {2, 4, 8})
    measured.points.push_back(testing::simulated_point(
        truth, {.max_concurrency = concurrency, .requests = 300}, rng, false));
  measured.points[2].ttft_ms.mean += 5000;
  const Fit fit = fitted(measured);
  EXPECT_TRUE(has_note(fit, "looks saturated"));
  EXPECT_EQ(fit.points[2].predicted_ttft_ms, 0);
  EXPECT_NEAR(fit.points[2].predicted_itl_ms / fit.points[2].itl_ms, 1, 0.03);
}

TEST(FleetFit, TheSameMeasurementsGiveTheSameBytes) {
  const auto measured = simulated_rates(truth_of(StepForm::max), 8, false, 0.02, 150);
  const Fit first = fitted(measured), second = fitted(measured);
  EXPECT_EQ(first.parameters.ms, second.parameters.ms);
  EXPECT_EQ(first.standard_error, second.standard_error);
  EXPECT_EQ(first.notes, second.notes);
}

TEST(FleetFit, AnythingMeasuredIsFittedOrRefused) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    Measured measured;
    const auto any = [&] {
      return std::pow(10.0, 12 * rng.uniform() - 4) * double(rng.below(3) > 0);
    };
    for (std::uint64_t left = rng.below(6); left > 0; --left)
      measured.iterations.push_back({any(), any(), any(), any()});
    for (std::uint64_t left = rng.below(4); left > 0; --left) {
      OperatingPoint point;
      point.requests = 100;
      point.rate_per_s = any(), point.duration_s = any();
      point.in_tokens.mean = any(), point.out_tokens.mean = any();
      point.ttft_ms.mean = any(), point.itl_ms.mean = any();
      if (rng.below(2) == 0) point.max_concurrency = 1 + any();
      for (std::uint64_t requests = rng.below(4); requests > 0; --requests)
        point.timeline.push_back({any(), any(), any(), any(), any(), {}});
      measured.points.push_back(std::move(point));
    }
    const auto made = fit(measured, {});
    if (!made) continue;
    for (const double value : made->parameters.ms) EXPECT_TRUE(value >= 0 && std::isfinite(value));
  }
}

}  // namespace
}  // namespace berth::fleet
