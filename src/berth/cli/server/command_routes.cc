#include "berth/cli/server/command_routes.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/server/own_command.h"
#include "berth/cli/server/work.h"

namespace berth::cli {
namespace {

using api::Role;

constexpr std::string_view kMachines = "machines", kPlans = "plans";

/// A call is a command. In `words` each * is the next part of the path; @ is the fleet of that
/// number; % is the day. What the query has, NAME=VALUE, follows as --NAME=VALUE. Text is sent as
/// it comes, JSON when it is whole.
struct CommandCall {
  api::Call call;
  std::string_view words;
};
constexpr CommandCall kCalls[] = {
    {{"GET", "/v1/machine", Role::read, kMachines, "this machine and its allocations", "Machine"},
     "machine --json"},
    {{"GET", "/v1/top", Role::read, kMachines, "the current state of this machine and the clusters",
      "Top"},
     "top --json"},
    {{"GET", "/v1/topology", Role::read, kMachines, "the topology of the GPUs", "Topology"},
     "topo --json"},
    {{"GET", "/v1/clusters", Role::read, kMachines, "the configured clusters", "Clusters"},
     "cluster list --json"},
    {{"GET", "/v1/fleets/{number}/plan", Role::read, kPlans, "the plan of a fleet", "FleetPlan", "",
      "set percentiles solver"},
     "plan @ --json"},
    {{"GET", "/v1/fleets/{number}/day", Role::read, kPlans, "its plan over the day", "Day", "",
      "set percentiles startup min-up"},
     "plan @ --json --profile %"},
};

/// usage: a part is no name, the query has what is no option of the call, or there is no such
/// fleet.
Result<OwnCommand> command_of(const CommandCall& own, const api::Request& request,
                              const Fleets& fleets) {
  OwnCommand command;
  BERTH_ASSIGN(const auto query, api::read_query(request.query, own.call.query));
  BERTH_TRY(check_names(request, request.parts));
  auto next = request.parts.begin();
  for (const auto word : berth::words(own.words)) {
    if (word == "@") {
      BERTH_ASSIGN(command.document, fleets.document(*next++));
      command.words.push_back(command.document.path);
    } else if (word == "%") {
      if (fleets.profile.empty()) return fail(ErrorKind::usage, "no --profile was given");
      command.words.push_back(fleets.profile);
    } else {
      command.words.push_back(word == "*" ? *next++ : std::string(word));
    }
  }
  for (const auto& [name, value] : query)
    command.words.push_back(fmt::format("--{}={}", name, value));
  command.streams = own.call.answer.find('/') != std::string_view::npos;
  if (command.streams) command.type = own.call.answer.data();  // of a literal
  return command;
}

}  // namespace

std::vector<api::Route> command_routes(const std::string& berth, const Fleets& fleets) {
  std::vector<api::Route> routes{
      {{"GET", "/v1/fleets", Role::read, kPlans, "the fleets that can be planned", "Fleets"},
       [&fleets](const api::Request&) {
         JsonWriter json;
         json.object().add("version", 1).key("fleets").list(fleets.names());
         return api::Reply{200, json.add("profile", fleets.profile).end().take()};
       }}};
  for (const CommandCall& own : kCalls)
    routes.push_back({own.call, [&own, berth, &fleets](const api::Request& request) {
                        auto command = command_of(own, request, fleets);
                        if (!command) return api::failed(command.error());
                        command->program = berth;
                        command->is_abandoned = request.is_abandoned;
                        return answer_of(*command);
                      }});
  return routes;
}

}  // namespace berth::cli
