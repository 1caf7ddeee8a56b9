// Calls that the engine answers, for the server and for programs that have the library: each is a
// row of a table, with a function that gets the request and the open store.
//
// Threads: requests are answered on any number of threads; each has a Work, which one thread uses.
// Failure: a Reply with the error and the status of its kind.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/api/routes.h"
#include "berth/base/visible.h"
#include "berth/engine/context.h"
#include "berth/engine/runs/submission.h"
#include "berth/os/wake.h"
#include "berth/render/table.h"

namespace berth::api {

/// Where runs are, and what drives them.
struct Home {
  std::string program = "/proc/self/exe";  ///< The path of `berth`.
  std::string state_directory = {};        ///< "": the one that the environment names.
};

/// One request: its Env, the store, and what it asks for.
struct Work {
  os::StopSource stop = {};  // stop() counts as a stop signal, which is for this request alone
  std::unique_ptr<os::Env> env = os::posix_env(stop);
  engine::Context context = {};  ///< Open for the calls that need the store.
  std::vector<std::pair<std::string, std::string>> query = {};
  const Request* request = nullptr;  ///< Valid until the call has answered.
  std::vector<std::string> notes = {};
  /// What follows the answer, as Reply::more; the Work lives until its end.
  std::function<Result<std::optional<std::string>>()> more = {};

  std::vector<std::string> names = {};  ///< The parts of the path; "@last" is replaced.

  const std::string& name() const { return names.front(); }
  engine::Note note();
  /// The value of the query; "" if it is not given.
  std::string value(std::string_view key) const;
  /// The values of a name that may be given several times.
  std::vector<std::string> values(std::string_view key) const;
};

/// A call and the function that answers it with JSON, or with text of the type of the call.
struct WorkCall {
  using Answer = Result<std::string>(Work&);
  Call call;
  Answer* answer;
  bool needs_store = true;
};

/// Returns the route of a call. `answer` gets a Work whose store is open if `needs_store`.
Route route_of(const Call& call, const std::function<WorkCall::Answer>& answer,
               const Home& home = {}, bool needs_store = true);
std::vector<Route> routes_of(std::span<const WorkCall> calls, const Home& home = {});

/// The JSON of a result, as commands print it.
template <typename T>
Result<std::string> json_of(const Result<T>& result) {
  if (!result) return std::unexpected(result.error());
  return visible_json(to_json(render::Shown<T>{*result}));
}

/// The JSON object of a result, after the notes of the request.
std::string with_notes(const Work& work, const std::string& json);

/// Answers one request with a whole body: call(routes, "GET", "/v1/compare?run=a-1&run=a-2").
/// Errors: those of the call; not_found and usage, if there is no such call.
Result<Reply> call(std::span<const Route> routes, std::string_view method, std::string_view path,
                   std::string_view body = {});

/// Checks that these may be names of runs and tasks, and none is an option. Errors: usage.
Status check_names(const Request& request, std::span<const std::string> names);

}  // namespace berth::api
