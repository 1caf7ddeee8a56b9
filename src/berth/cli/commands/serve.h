// What berth and berth-server both read of the words of berth serve.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/options.h"

namespace berth::cli {

/// Who may ask a server, as all programs of berth-server have it: names of files as written; "":
/// none.
struct AccessOptions {
  std::string token_file, read_token_file, certificate, key;

  void add_to(Options& options);
};

struct ServeOptions {
  std::string path;  // of a fleet document, or a directory of them; "": none
  std::string listen;
  AccessOptions access;
  std::string percentiles = "simulated";
  std::vector<std::string> line;  // the whole command line

  void add_to(Options& options);
};

/// Replaces this process by the program of that name beside it, with the same words. It returns
/// only where that fails.
Result<int> become(os::Env& env, const char* name, const std::vector<std::string>& line);

template <class Given>
Result<int> become_server(os::Env& env, const Given& given) {
  return become(env, "berth-server", given.line);
}

Command serve_command(Result<int> (*serve)(os::Env&, const ServeOptions&));

}  // namespace berth::cli
