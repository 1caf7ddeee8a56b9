// berth-server: what berth serve hands over to, with the same arguments.
#include <cstdio>
#include <exception>

#include "berth/api/server.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/arguments.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/table.h"
#include "berth/os/log.h"

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

Result<api::ServerOptions> options_of(os::Env& env, const ServeArguments& arguments) {
  api::ServerOptions options;
  options.certificate = arguments.certificate;
  options.key = arguments.key;
  if (options.certificate.empty() != options.key.empty())
    return fail(ErrorKind::usage, "--tls-cert and --tls-key go together");
  if (!arguments.listen.empty()) {
    BERTH_TRY(read_address("--listen", arguments.listen, options));
  } else {  // as clients of the reference, and its deployments, have it
    const std::string port = env.variable("INFERNO_PORT").value_or("");
    if (!port.empty()) BERTH_TRY(read_address("INFERNO_PORT", port, options));
    const std::string host = env.variable("INFERNO_HOST").value_or("");
    if (!host.empty()) options.host = host;
  }
  if (arguments.token_file.empty()) return options;
  BERTH_ASSIGN(const std::string text, env.read_file(arguments.token_file, kLongestToken));
  options.token = trim(text);
  if (options.token.size() < kShortestToken)
    return fail(ErrorKind::invalid, "{}: wanted a token of at least {} letters, found {}",
                arguments.token_file, kShortestToken, options.token.size());
  return options;
}

Result<int> serve(int count, char** values) {
  BERTH_ASSIGN(const auto parsed, parse_arguments(count, values));
  if (const auto* printout = std::get_if<Printout>(&parsed)) {
    std::fputs(printout->text.c_str(), stdout);
    return 0;
  }
  const auto& arguments = std::get<Arguments>(parsed);
  if (arguments.command != "serve")
    return fail(ErrorKind::usage, "this is what berth serve hands over to; start that");
  os::make_private();
  const auto env = os::posix_env();
  BERTH_TRY(os::open_log(*env));
  BERTH_ASSIGN(const auto options, options_of(*env, arguments.serve));
  fleet::System system;
  if (!arguments.target.empty()) {
    BERTH_ASSIGN(const auto documents, fleet_documents(*env, arguments.target));
    BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
    print_notes(reading.notes);
    system = std::move(reading.system);
    print_notes(fleet::dangling_names(system));
  }
  fleet::Means means;
  means.parallel_for = on_all_cores;
  api::Planner planner(std::move(system), std::move(means));
  os::install_stop_signals();
  const bool tls = !options.certificate.empty();
  const bool v6 = options.host.find(':') != std::string::npos;
  BERTH_TRY(api::serve(*env, planner, options, [&](int port) {
    print(fmt::format("{}://{}:{}\n", tls ? "https" : "http",
                      v6 ? "[" + options.host + "]" : options.host, port));
    std::fflush(stdout);
  }));
  return 0;
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  try {
    const auto code = berth::cli::serve(count, values);
    if (code) return *code;
    std::fprintf(stderr, "berth: %s\n", code.error().message.c_str());
    return berth::exit_code(code.error().kind);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: %s\n", error.what());
    return 3;
  }
}
