// dlopen stands here and not in Env: what it gives is code that runs in this process. The few
// declarations that are taken of sd-bus are those of sd-bus(3), sd_bus_call(3),
// sd_bus_set_address(3) and sd_bus_message_append(3); the call is described in
// org.freedesktop.systemd1(5).

#include "berth/os/scope_posix.h"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

constexpr const char* kLibrary = "libsystemd.so.0";
constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kSystemBus = "unix:path=/run/dbus/system_bus_socket";
/// While systemd reads its units anew it answers nobody: more than 5 s were seen.
constexpr Duration kTimeout = std::chrono::seconds(15);
constexpr Duration kLook = std::chrono::milliseconds(2);

struct Bus;
struct Message;
struct BusError {
  const char* name = nullptr;
  const char* message = nullptr;
  int needs_freeing = 0;
};

/// What is called of the library.
struct Functions {
  int (*make)(Bus**) = nullptr;
  int (*set_address)(Bus*, const char*) = nullptr;
  int (*set_client)(Bus*, int) = nullptr;
  int (*start)(Bus*) = nullptr;
  Bus* (*close)(Bus*) = nullptr;
  int (*make_call)(Bus*, Message**, const char*, const char*, const char*, const char*) = nullptr;
  int (*append)(Message*, const char*, ...) = nullptr;
  int (*open_container)(Message*, char, const char*) = nullptr;
  int (*close_container)(Message*) = nullptr;
  int (*call)(Bus*, Message*, std::uint64_t, BusError*, Message**) = nullptr;
  Message* (*drop)(Message*) = nullptr;
  void (*free_error)(BusError*) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<Functions> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(ErrorKind::not_found, "{}", dlerror());
  Functions of;
  const bool whole =
      find(library, "sd_bus_new", of.make) && find(library, "sd_bus_set_address", of.set_address) &&
      find(library, "sd_bus_set_bus_client", of.set_client) &&
      find(library, "sd_bus_start", of.start) &&
      find(library, "sd_bus_flush_close_unref", of.close) &&
      find(library, "sd_bus_message_new_method_call", of.make_call) &&
      find(library, "sd_bus_message_append", of.append) &&
      find(library, "sd_bus_message_open_container", of.open_container) &&
      find(library, "sd_bus_message_close_container", of.close_container) &&
      find(library, "sd_bus_call", of.call) && find(library, "sd_bus_message_unref", of.drop) &&
      find(library, "sd_bus_error_free", of.free_error);
  if (!whole) return fail(ErrorKind::corrupt, "{}: it lacks a function of sd-bus", kLibrary);
  return of;
}

std::string bus_address(Env& env) {
  if (env.user() == 0) return kSystemBus;
  if (const auto named = env.variable("DBUS_SESSION_BUS_ADDRESS"); named && !named->empty())
    return *named;
  return fmt::format("unix:path=/run/user/{}/bus", env.user());
}

/// StartTransientUnit(name, mode, properties, auxiliary units).
int fill(const Functions& of, Message* message, const std::string& name,
         const std::string& part_of) {
  int worst = of.append(message, "ss", name.c_str(), "fail");
  const auto done = [&](int result) { worst = result < 0 ? result : worst; };
  done(of.open_container(message, 'a', "(sv)"));
  done(of.append(message, "(sv)", "Description", "s", "the tasks of a Berth worker"));
  done(of.append(message, "(sv)", "PIDs", "au", 1, static_cast<std::uint32_t>(getpid())));
  done(of.append(message, "(sv)", "Delegate", "b", 1));
  done(of.append(message, "(sv)", "CollectMode", "s", "inactive-or-failed"));
  if (!part_of.empty()) done(of.append(message, "(sv)", "PartOf", "as", 1, part_of.c_str()));
  done(of.close_container(message));
  done(of.append(message, "a(sa(sv))", 0));
  return worst;
}

Status ask(Env& env, const Functions& of, const std::string& name, const std::string& part_of) {
  const std::string address = bus_address(env);
  Bus* bus = nullptr;
  Message* message = nullptr;
  BusError error;
  int result = of.make(&bus);
  if (result >= 0) result = of.set_address(bus, address.c_str());
  if (result >= 0) result = of.set_client(bus, 1);
  if (result >= 0) result = of.start(bus);
  if (result >= 0)
    result = of.make_call(bus, &message, kSystemd, "/org/freedesktop/systemd1",
                          "org.freedesktop.systemd1.Manager", "StartTransientUnit");
  if (result >= 0) result = fill(of, message, name, part_of);
  if (result >= 0) {
    const auto most = std::chrono::duration_cast<std::chrono::microseconds>(kTimeout).count();
    result = of.call(bus, message, static_cast<std::uint64_t>(most), &error, nullptr);
  }
  const std::string said = error.message != nullptr ? error.message : "";
  of.free_error(&error);
  of.drop(message);
  of.close(bus);
  if (result >= 0) return {};
  if (said.empty()) return errno_error(-result, address);
  return fail(ErrorKind::denied, "{}", said);
}

}  // namespace

Status enter_scope_posix(Env& env, const std::string& name, const std::string& part_of) {
  BERTH_ASSIGN(const Functions of, load());
  BERTH_TRY(ask(env, of, name, part_of));
  // The answer comes before the move.
  constexpr std::size_t kMost = 1 << 16;
  for (const Mono until = env.now() + kTimeout; env.now() < until;) {
    BERTH_ASSIGN(const std::string groups, env.read_file("/proc/self/cgroup", kMost));
    if (groups.find("/" + name) != std::string::npos) return {};
    BERTH_TRY(env.wait({}, env.now() + kLook));
  }
  return fail(ErrorKind::busy, "systemd did not move this process into {}", name);
}

}  // namespace berth::os
