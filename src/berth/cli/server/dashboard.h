// The page that shows runs, and what it asks for.
//
//   GET  /                                  the page, and the files that it consists of
//   GET  /open?SECRET                       comes in by a link
//   GET  /v1/...                            what a command says (the table in dashboard.cc)
//   POST /v1/runs/RUN/stop|resume, /v1/runs/RUN/retry, /v1/invite
//   GET  /v1/fleets                         the files that /v1/fleets/NUMBER/plan and /day are of
//   GET  /v1/events                         an event whenever the store has changed
//
// Threads: any number at once.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "berth/api/planner.h"
#include "berth/api/sessions.h"
#include "berth/cli/dashboard.h"

namespace berth::cli {

/// Files of the command line, the only ones that requests may have planned.
struct FleetFiles {
  std::vector<std::string> fleets;
  std::string profile;  ///< Their loads over a day; "": none.
};

class Dashboard {
 public:
  /// `berth`: the path of the program; `database`: the file that changes whenever the store does.
  Dashboard(api::Sessions& sessions, std::string berth, std::string database, FleetFiles files,
            bool tls, bool look_only)
      : sessions_(sessions),
        berth_(std::move(berth)),
        database_(std::move(database)),
        files_(std::move(files)),
        tls_(tls),
        look_only_(look_only) {}

  api::Reply answer(const api::Request& request);

 private:
  api::Reply open(const std::string& secret);
  api::Reply events();

  api::Sessions& sessions_;
  const std::string berth_, database_;
  const FleetFiles files_;
  const bool tls_, look_only_;
  std::atomic<int> viewers_ = 0;
};

/// berth dashboard, as berth-server carries it out.
Result<int> dashboard(os::Env& env, const DashboardOptions& options);

}  // namespace berth::cli
