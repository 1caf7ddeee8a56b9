// GET /metrics: what berth metrics prints, what the planner's clients have decided, and the
// server's own figures.
//
// Threads: any number at once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "berth/api/planner.h"
#include "berth/api/routes.h"

namespace berth::cli {

/// How many answers of which status a server has given.
class AnswerCounts {
 public:
  void add(int status);
  /// As Prometheus scrapes them.
  std::string metrics() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::int64_t> counts_;
};

/// `berth`: the path of the program. The route refers to the others.
api::Route metrics_route(const std::string& berth, const api::Planner& planner,
                         const AnswerCounts& counts);

}  // namespace berth::cli
