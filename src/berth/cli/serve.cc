// berth serve: hands over to berth-server, so that nothing else of Berth loads the libraries that
// serving takes: they would make every start slower by several milliseconds.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "berth/cli/commands.h"

namespace berth::cli {

Result<int> serve_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  const std::string server = self.substr(0, self.rfind('/')) + "/berth-server";
  std::vector<char*> values;
  for (const auto& value : arguments.raw) values.push_back(const_cast<char*>(value.c_str()));
  values.push_back(nullptr);
  ::execv(server.c_str(), values.data());
  return fail(ErrorKind::not_found, "{}: {}", server, std::strerror(errno));
}

}  // namespace berth::cli
