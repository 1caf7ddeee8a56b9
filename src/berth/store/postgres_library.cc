// dlopen stands here and not in Env: what it gives is code that runs in this process.
#include "berth/store/postgres_library.h"

#include <dlfcn.h>

namespace berth::store {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

Result<Libpq> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorKind::impossible,
                "PostgreSQL's client library is missing: {}; apt install libpq5", dlerror());
  Libpq functions;
  const char* missing = nullptr;
#define BERTH_FIND(name)                                                              \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (functions.name == nullptr) missing = #name;
  BERTH_LIBPQ(BERTH_FIND)
#undef BERTH_FIND
  if (missing != nullptr)
    return fail(ErrorKind::impossible, "{} has no {}: Berth requires libpq 14 or newer", kLibrary,
                missing);
  return functions;
}

}  // namespace

Result<const Libpq*> libpq() {
  static const Result<Libpq> loaded = load();
  if (!loaded) return std::unexpected(loaded.error());
  return &*loaded;
}

}  // namespace berth::store
