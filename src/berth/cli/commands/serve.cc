// berth serve, berth agent: hand over to a program beside this one. berth-server, so that nothing
// else of Berth loads the libraries that serving takes: they would make every start slower by
// several milliseconds; berth-agent, because it also travels.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "berth/cli/commands/serve.h"
#include "berth/cli/commands/shared_options.h"

namespace berth::cli {
namespace {

struct AgentOptions {
  std::vector<std::string> line;

  void add_to(Options& options) {
    options.whole_line(line);
    options.hide();
  }
};

Result<int> become_agent(os::Env& env, const AgentOptions& options) {
  return become(env, "berth-agent", options.line);
}

}  // namespace

Result<int> become(os::Env& env, const char* name, const std::vector<std::string>& line) {
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  const std::string program = self.substr(0, self.rfind('/') + 1) + name;
  std::vector<char*> values;
  for (const auto& value : line) values.push_back(const_cast<char*>(value.c_str()));
  values.push_back(nullptr);
  ::execv(program.c_str(), values.data());
  return fail(ErrorKind::not_found, "{}: {}{}", program, std::strerror(errno),
              errno == ENOENT ? "; in a clone, ./dev build makes it" : "");
}

void AccessOptions::add_to(Options& options) {
  options
      .value("--token-file", token_file, "File with the token for full access; created if missing")
      .named("FILE");
  options
      .value("--read-token-file", read_token_file,
             "File with the token for read-only access; created if missing")
      .named("FILE");
  options.value("--tls-cert", certificate, "TLS certificate (PEM)").named("FILE");
  options.value("--tls-key", key, "TLS key (PEM)").named("FILE");
}

void ServeOptions::add_to(Options& options) {
  options.whole_line(line);
  options.value("PATH", path, "Fleet document or directory of them to load first");
  options
      .value("--listen", listen,
             "Listen on this address (default: 127.0.0.1:8321; port 0: any free port)")
      .named("HOST:PORT");
  access.add_to(options);
  add_percentiles(options, percentiles);
  options.footer(
      "Prints its address and a link to the dashboard that works once. Other machines can\n"
      "connect only with a token and TLS. INFERNO_HOST and INFERNO_PORT replace the default\n"
      "address.\n"
      "\n"
      "Example:\n"
      "  berth serve examples/fleet\n"
      "  curl -X POST http://127.0.0.1:8321/optimize");
}

Command serve_command(Result<int> (*serve)(os::Env&, const ServeOptions&)) {
  return command("serve", "Serve planning, dashboard and metrics over HTTP", serve);
}

Command serve_command() {
  return serve_command(become_server<ServeOptions>);
}

Command agent_command() {
  Command agent =
      command("agent", "Run as a worker process that other berth processes start", become_agent);
  agent.reads_its_own_words = true;
  return agent;
}

}  // namespace berth::cli
