// berth serve, berth agent: hand over to a program beside this one. berth-server, so that nothing
// else of Berth loads the libraries that serving takes: they would make every start slower by
// several milliseconds; berth-agent, because it also travels.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "berth/cli/commands.h"

namespace berth::cli {
namespace {

Result<int> become(os::Env& env, const char* name, const Arguments& arguments) {
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  const std::string program = self.substr(0, self.rfind('/') + 1) + name;
  std::vector<char*> values;
  for (const auto& value : arguments.raw) values.push_back(const_cast<char*>(value.c_str()));
  values.push_back(nullptr);
  ::umask(env.mask());  // as we found it
  ::execv(program.c_str(), values.data());
  return fail(ErrorKind::not_found, "{}: {}", program, std::strerror(errno));
}

}  // namespace

Result<int> serve_command(os::Env& env, const Arguments& arguments) {
  return become(env, "berth-server", arguments);
}

Result<int> agent_command(os::Env& env, const Arguments& arguments) {
  return become(env, "berth-agent", arguments);
}

}  // namespace berth::cli
