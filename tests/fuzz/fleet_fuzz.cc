// A fleet document that is read is written as one that reads the same, and can be planned.
#include "berth/fleet/fleet.h"

#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  using namespace berth::fleet;
  const auto [first, second] = halves(text);
  const std::array<Document, 2> documents{Document{"a", std::string(first)},
                                          Document{"b", std::string(second)}};
  const auto reading = read_documents(std::span(documents).first(second.empty() ? 1 : 2));
  if (!reading) {
    BERTH_ASSERT(reading.error().kind == ErrorKind::invalid && !reading.error().message.empty());
    return;
  }
  const System& system = reading->system;
  BERTH_ASSERT(check(system).has_value());
  const std::array<Document, 1> written{Document{"w", write_document(system)}};
  const auto again = read_documents(written);
  BERTH_ASSERT(again && again->system == system);
  if (system.servers.size() * system.accelerators.size() > 20) return;
  Execution means;
  means.iteration_limit = 10'000;
  const Plan made = plan(system, means);
  BERTH_ASSERT(made.servers.size() == system.servers.size());
  for (const TypeTotal& total : made.totals)
    BERTH_ASSERT(!total.limit || total.used <= *total.limit);
  BERTH_ASSERT(!(made.proof.gap < 0) && !plan_json(made, nullptr).empty());
}
