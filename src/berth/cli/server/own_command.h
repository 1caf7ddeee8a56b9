// The answers of Berth's own commands, over HTTP: a request is the words of a command, what that
// prints is the answer, and its error is the error. So there is one JSON form of everything, and
// nothing that a page can do and a person at a terminal cannot.
//
// Threads: any number at once. Failure: a Reply that says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/api/routes.h"
#include "berth/cli/server/fleets.h"

namespace berth::cli {

struct OwnCommand {
  std::string program = {};             ///< The path of berth.
  std::vector<std::string> words = {};  ///< {"show", "digits-3", "--json"}
  const char* type = "application/json";
  bool streams = false;         ///< Its output is sent as it comes; else when it has ended.
  FleetDocument document = {};  ///< That it reads.
  std::function<bool()> is_abandoned = {};  ///< As Request has it; then the command is ended.
};

/// Starts the command with this process's environment and directory. What exits with another
/// code than 0 and without a document is the request's fault (400) with 2, else the server's (500).
api::Reply answer_of(const OwnCommand& command);

}  // namespace berth::cli
