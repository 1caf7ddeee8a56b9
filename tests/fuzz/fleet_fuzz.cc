// A fleet document that is read is written as one that reads the same, can be planned, and has
// servers that can be sized. The same text may be a question about one server.
#include <cmath>

#include "berth/fleet/fleet.h"
#include "berth/fleet/solver/server_size.h"

#include "fuzz.h"

namespace {

void ask(const berth::fleet::Document& document) {
  using namespace berth::fleet;
  SizeQuestion question;
  Server server;
  server.current.load.arrivals_per_min = 7;
  if (const auto read = read_question(document, question, server); !read)
    BERTH_ASSERT(read.error().kind == berth::ErrorKind::invalid && !read.error().message.empty());
  else
    BERTH_ASSERT(check(server).has_value());
}

void size_all(const berth::fleet::System& system) {
  using namespace berth::fleet;
  for (const auto& [name, server] : system.servers) {
    const auto size = size_server(system, name);
    BERTH_ASSERT(size && !size_json(*size).empty());
    BERTH_ASSERT(size->best || !why_no_best(*size).empty());
    for (const auto& [accelerator, sized] : size->accelerators)
      BERTH_ASSERT(std::isfinite(sized.value) && std::isfinite(sized.watts) &&
                   std::isfinite(sized.allocation.ttft_ms));
    BERTH_ASSERT(std::isfinite(size->current.allocation.ttft_ms) &&
                 std::isfinite(size->current.watts));
  }
}

}  // namespace

void berth::fuzz(std::string_view text) {
  using namespace berth::fleet;
  ask({"q", std::string(text)});
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
  size_all(system);
}
