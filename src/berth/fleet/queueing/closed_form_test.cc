// The closed form of the calibrated model against the simulator, where it is to be trusted: up to
// 70 % of what a replica serves. bench/closed_form_bench.cc has the errors of more settings.
#include <gtest/gtest.h>

#include "berth/fleet/queueing/latencies.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::fleet {
namespace {

struct ClosedFormCase {
  const char* name;
  Performance performance;
  double in_tokens, out_tokens, in_cv, out_cv;
  int batch;
};

Performance card_of(double alpha_ms, double beta_ms, double gamma_ms, double beta_prefill_ms = 0,
                    double offset_ms = 0, StepForm form = StepForm::sum) {
  return {.alpha_ms = alpha_ms,
          .beta_ms = beta_ms,
          .gamma_ms = gamma_ms,
          .beta_prefill_ms = beta_prefill_ms,
          .ttft_offset_ms = offset_ms,
          .form = form};
}

const ClosedFormCase kClosedFormCases[] = {
    {"chat", card_of(8.3, 0.036, 6.4e-5), 700, 250, 0, 0, 128},
    {"varied chat", card_of(8.3, 0.036, 6.4e-5), 700, 250, 1.3, 1, 256},
    {"long answers", card_of(12, 0.05, 5e-4), 128, 512, 0.5, 1, 128},
    {"prefill of its own and an offset", card_of(12, 0.05, 1e-4, 0.02, 15), 512, 128, 1, 0.5, 64},
    {"form max", card_of(12, 0.05, 1e-4, 0.03, 0, StepForm::max), 800, 200, 0, 0, 64},
    {"form max, varied", card_of(12, 0.05, 1e-4, 0.03, 0, StepForm::max), 800, 200, 1, 1, 64},
};

TEST(ClosedForm, IsNearTheSimulatorUpToSeventyPercent) {
  for (const auto& c : kClosedFormCases)
    for (const double u : {0.3, 0.7}) {
      const Performance& p = c.performance;
      Load load;
      load.in_tokens = c.in_tokens, load.out_tokens = c.out_tokens;
      load.in_cv = c.in_cv, load.out_cv = c.out_cv;
      Server server;
      server.max_queue = 100'000;
      const CalibratedQueue queue(demand_of(load, server, {}), p, c.batch);
      const double rate = u * queue.service_rate(c.batch);
      const auto requests = draw_requests(traffic_of(load, {}), 60'000, 1);
      const Outcome simulated = simulate(deployment_of(p, c.batch, server.max_queue), requests,
                                         1 / rate, steady_window(requests, 1 / rate, 0.1), 1);
      const Operation o = queue.at(rate);
      const Percentiles found = Latencies(queue, rate).percentiles();
      const auto where = fmt::format("{}, {}", c.name, u);
      const auto near = [&](double is, double should, double part, const char* figure) {
        EXPECT_NEAR(is / should, 1, part) << where << ": " << figure << " of " << should;
      };
      near(o.ttft_ms, simulated.mean_ttft_ms(), 0.05, "mean TTFT");
      near(o.itl_ms, simulated.itl.mean_ms(), 0.03, "mean ITL");
      near(o.in_service, simulated.in_service, 0.03, "requests in service");
      const auto ttft = quantiles(simulated.ttft_ms, kPercentiles);
      near(found.ttft_ms[2], ttft[2], 0.15, "p95 TTFT");
      near(found.ttft_ms[3], ttft[3], 0.25, "p99 TTFT");
      const auto itl = simulated.itl.quantiles_ms(kPercentiles);
      near(found.itl_ms[0], itl[0], 0.025, "p50 ITL");
      near(found.itl_ms[3], itl[3], 0.2, "p99 ITL");
    }
}

}  // namespace
}  // namespace berth::fleet
