// A trace that is read is in order, and each of its requests is served or lost, whatever the
// replicas.
#include "berth/fleet/simulate/simulator.h"

#include <cmath>

#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  using namespace berth::fleet;
  const auto [trace, choices] = halves(text);
  const auto requests = read_trace("t", trace);
  if (!requests) {
    BERTH_ASSERT(requests.error().kind == ErrorKind::invalid &&
                 requests.error().message.starts_with("t:"));
    return;
  }
  double before = 0;
  for (const Request& request : *requests) {
    BERTH_ASSERT(request.arrival >= before && request.in_tokens >= 0 && request.out_tokens >= 0);
    before = request.arrival;
  }
  auto choice = [&, next = std::size_t{0}](int most) mutable {
    return next < choices.size() ? static_cast<unsigned char>(choices[next++]) % (most + 1) : 0;
  };
  Deployment d;
  d.step = {double(1 + choice(9)), double(choice(3)), double(choice(2)), double(choice(9)),
            choice(1) == 0 ? StepForm::sum : StepForm::max};
  d.batch = 1 + choice(20), d.queue = choice(20), d.budget = 1000 + 100 * choice(100);
  d.replicas = 1 + choice(4), d.routing = static_cast<Routing>(choice(2));
  const Outcome o = simulate(d, *requests, choice(3), {}, 1);
  BERTH_ASSERT(std::ssize(o.ttft_ms) + o.lost == std::ssize(*requests));
  BERTH_ASSERT(o.completed == std::ssize(o.ttft_ms));
  BERTH_ASSERT(std::isfinite(o.itl.mean_ms()) && o.utilisation() <= 1 + 1e-9);
  for (const double ms : o.ttft_ms) BERTH_ASSERT(ms > 0);
}
