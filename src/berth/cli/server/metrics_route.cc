#include "berth/cli/server/metrics_route.h"

#include "berth/api/autoscale_metrics.h"
#include "berth/api/exposition.h"
#include "berth/base/text.h"
#include "berth/cli/server/own_command.h"

namespace berth::cli {
namespace {

constexpr std::string_view kNamespace = "default";

}  // namespace

void AnswerCounts::add(int status) {
  const std::lock_guard lock(mutex_);
  ++counts_[status];
}

std::string AnswerCounts::metrics() const {
  const std::lock_guard lock(mutex_);
  api::Exposition out;
  out.begin("berth_http_answers_total", "counter", "Answers of this server, by status.");
  for (const auto& [status, count] : counts_)
    out.add({{"status", fmt::format("{}", status)}}, static_cast<double>(count));
  return out.take();
}

api::Route metrics_route(const std::string& berth, const api::Planner& planner,
                         const AnswerCounts& counts) {
  return {{"GET", "/metrics", api::Role::read, "metrics",
           "metrics of runs, this machine and plans, for Prometheus", api::kExpositionType},
          [berth, &planner, &counts](const api::Request&) {
            api::Reply reply =
                answer_of({.program = berth, .words = {"metrics"}, .type = api::kExpositionType});
            if (reply.status == 200)
              reply.body += api::planned_metrics(planner.system(), kNamespace) + counts.metrics();
            return reply;
          }};
}

}  // namespace berth::cli
