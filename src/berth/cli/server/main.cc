// berth-server: what berth serve hands over to, with the same arguments.
#include <cstdio>

#include "berth/api/server.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/print.h"
#include "berth/cli/program.h"
#include "berth/cli/serve.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestToken = 4096;
constexpr std::size_t kShortestToken = 16;

/// "127.0.0.1:8321", "[::1]:0", or a port alone. `source`: where it was written.
Status read_address(std::string_view source, const std::string& text, api::ServerOptions& options) {
  const auto colon = text.rfind(':');
  const auto port = parse_integer(colon == text.npos ? text : text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || colon == 0)
    return fail(ErrorKind::usage, "{}: wanted HOST:PORT, such as 127.0.0.1:8321, found '{}'",
                source, clip(text));
  options.port = static_cast<int>(*port);
  if (colon == text.npos) return {};
  options.host = text.substr(0, colon);
  if (options.host.starts_with('[') && options.host.ends_with(']'))
    options.host = options.host.substr(1, options.host.size() - 2);
  return {};
}

Result<api::ServerOptions> options_of(os::Env& env, const ServeOptions& given) {
  api::ServerOptions options;
  options.certificate = given.certificate;
  options.key = given.key;
  if (options.certificate.empty() != options.key.empty())
    return fail(ErrorKind::usage, "--tls-cert and --tls-key go together");
  if (!given.listen.empty()) {
    BERTH_TRY(read_address("--listen", given.listen, options));
  } else {  // as clients of the reference, and its deployments, have it
    const std::string port = env.variable("INFERNO_PORT").value_or("");
    if (!port.empty()) BERTH_TRY(read_address("INFERNO_PORT", port, options));
    const std::string host = env.variable("INFERNO_HOST").value_or("");
    if (!host.empty()) options.host = host;
  }
  if (given.token_file.empty()) return options;
  BERTH_ASSIGN(const std::string text, env.read_file(given.token_file, kLongestToken));
  options.token = trim(text);
  if (options.token.size() < kShortestToken)
    return fail(ErrorKind::invalid, "{}: wanted a token of at least {} letters, found {}",
                given.token_file, kShortestToken, options.token.size());
  return options;
}

Result<int> serve(os::Env& env, const ServeOptions& given) {
  BERTH_ASSIGN(const auto options, options_of(env, given));
  fleet::System system;
  if (!given.path.empty()) {
    BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
    BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
    print_notes(reading.notes);
    system = std::move(reading.system);
    print_notes(fleet::dangling_names(system));
  }
  api::Planner planner(std::move(system), planning_execution(given.percentiles));
  os::install_stop_signals();
  const bool tls = !options.certificate.empty();
  const bool v6 = options.host.find(':') != std::string::npos;
  BERTH_TRY(api::serve(env, planner, options, [&](int port) {
    print(fmt::format("{}://{}:{}\n", tls ? "https" : "http",
                      v6 ? "[" + options.host + "]" : options.host, port));
    std::fflush(stdout);
  }));
  return 0;
}

struct NoOptions {
  void add_to(Options&) {}
};

Result<int> refuse(os::Env&, const NoOptions&) {
  return fail(ErrorKind::usage, "this is what berth serve hands over to; start that");
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  using namespace berth::cli;
  const std::vector<Command> commands{command("", "", refuse), serve_command(serve)};
  return run_program(commands, count, values);
}
