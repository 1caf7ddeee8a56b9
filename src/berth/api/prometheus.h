// A client of Prometheus' HTTP API: instant queries.
//
// Ownership: refers to the Env and the plugin. Threads: one. query() waits, kQueryWithin at most.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/os/env.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::api {

inline constexpr Duration kQueryWithin = std::chrono::seconds(20);

struct Sample {
  std::string figure;  // its label of that name; "": it has none
  double value = 0;    // not finite too: NaN where a quotient has nothing to divide by
};

/// Reads the answer to an instant query. Errors: invalid: it is none, or says no, with its words.
Result<std::vector<Sample>> read_samples(std::string_view body);

class Prometheus {
 public:
  /// `url`: "http://host:9090", with a path where Prometheus has one. `token`: "" or what it wants
  /// of bearers.
  Prometheus(os::Env& env, const remote::Cloud& cloud, std::string url, std::string token);

  /// The samples of an expression that gives a vector. Errors: io, denied, invalid, interrupted;
  /// each names the URL and what was said there.
  Result<std::vector<Sample>> query(const std::string& expression);

 private:
  os::Env& env_;
  std::unique_ptr<remote::HttpSession> session_;
  std::string url_, token_;
};

}  // namespace berth::api
