#include <dlfcn.h>

#include "berth/os/plugin.h"

namespace berth::os {

Result<void*> load_plugin(Env& env, const std::string& file, const std::string& symbol) {
  BERTH_ASSIGN(const std::string program, env.real_path("/proc/self/exe"));
  const std::string directory = program.substr(0, program.rfind('/'));
  for (const std::string& path : {directory + "/" + file, directory + "/../lib/berth/" + file}) {
    if (!env.status(path)) continue;
    void* part = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (part == nullptr) return fail(ErrorKind::not_found, "{}", dlerror());
    if (void* found = dlsym(part, symbol.c_str()); found != nullptr) return found;
    return fail(ErrorKind::corrupt, "{} is of another build than {}", path, program);
  }
  return fail(ErrorKind::not_found, "no {} in {} or {}/../lib/berth: it is part of berth", file,
              directory, directory);
}

}  // namespace berth::os
