#include "berth/exec/task_container.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/text.h"
#include "berth/os/spawn.h"

namespace berth::exec {
namespace {

/// The shell waits for a child of its own, which, unlike the shell, is not killed when we die. That
/// child reads a line, or the end of what nobody but us can write to. Shells give /dev/null to what
/// runs in the background, so that it reads another descriptor. The first try may fail because the
/// engine does not know yet that the container's processes were killed.
constexpr const char* kWaitAndRemove = R"(exec 3<&0
{
  read -r removed <&3 && exit
  for try in 1 2 3 4 5 6; do
    "$@" >/dev/null 2>&1 && exit
    sleep 0.3
  done
} &
wait)";
/// An engine that hangs holds its task no longer than this.
constexpr Duration kRemovalMost = std::chrono::seconds(60);
constexpr std::size_t kComplaintsMost = 4096;
/// In the task's directory, so that it is on the same disk, and goes with it.
constexpr const char* kTemporary = "/.berth-tmp";

/// Whether the engine has an init program, which Debian's packages only recommend.
bool has_init(os::Env& env, Engine engine) {
  constexpr std::array<std::string_view, 3> kOfPodman{
      "/usr/libexec/podman/catatonit", "/usr/bin/catatonit", "/usr/lib/podman/catatonit"};
  constexpr std::array<std::string_view, 3> kOfDocker{
      "/usr/bin/docker-init", "/usr/libexec/docker/docker-init", "/usr/local/bin/docker-init"};
  return std::ranges::any_of(engine == Engine::podman ? kOfPodman : kOfDocker,
                             [&](auto path) { return env.status(std::string(path)).has_value(); });
}

/// What programs that use GPUs open; which of them they see is said by variables.
std::vector<std::string> device_files(os::Env& env) {
  std::vector<std::string> files;
  const auto names = env.list("/dev");
  for (const auto& name : names ? *names : std::vector<std::string>{})
    if (name.starts_with("nvidia") || name == "dri" || name == "kfd")
      files.push_back("/dev/" + name);
  return files;
}

/// Our user and group, as --user takes them; "" for podman of an ordinary user, which maps them.
std::string user_text(os::Env& env, Engine engine) {
  if (engine == Engine::podman && env.user() != 0) return {};
  std::string group = "0";
  const auto status = env.read_file("/proc/self/status", 1 << 16);
  for (const auto line : split(status ? std::string_view(*status) : "", '\n'))
    if (line.starts_with("Gid:")) group = words(line)[1];
  return fmt::format("{}:{}", env.user(), group);
}

/// A name that an engine accepts, and that no other container has.
std::string container_name(os::Env& env, const Launch& launch) {
  constexpr std::size_t kMost = 60;
  std::string name = "berth-";
  for (const char c : launch.request.holder.substr(0, kMost))
    name += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '-';
  return fmt::format("{}-{}-{:08x}", name, launch.token.value,
                     static_cast<std::uint32_t>(env.random()));
}

}  // namespace

Result<std::unique_ptr<TaskContainer>> TaskContainer::make(os::Env& env, const Launch& launch,
                                                           const machine::Block& block,
                                                           const Environment& host,
                                                           os::SpawnSpec& spec,
                                                           std::function<void()> removed) {
  Container wanted = launch.container;
  for (auto& path : wanted.shown) path = with_home(path, host);
  BERTH_ASSIGN(const EngineProgram program, find_engine(env, host, wanted));
  const Engine engine = program.engine;
  Environment variables;
  for (const auto& variable : spec.environment)
    if (std::ranges::find(launch.environment, variable) != launch.environment.end() ||
        std::ranges::find(host, variable) == host.end())
      variables.push_back(variable);
  ContainerSpec contained{.program = program,
                          .name = container_name(env, launch),
                          .label = launch.request.holder,
                          .container = std::move(wanted),
                          .argv = spec.argv,
                          .directory = spec.directory,
                          .host = host,
                          .variables = std::move(variables),
                          .block = block};
  const auto removal = removal_command(engine, contained.name);
  if (removal.empty()) {
    contained.temporary = spec.directory + kTemporary;
    BERTH_TRY(env.make_directory(contained.temporary, 0700));
    if (!block.devices.empty()) contained.device_files = device_files(env);
  } else {
    contained.user = user_text(env, engine);
    contained.init = has_init(env, engine);
  }
  BERTH_ASSIGN(auto command, engine_command(contained));
  spec.argv = std::move(command.argv);
  spec.environment = std::move(command.environment);
  auto container = std::make_unique<TaskContainer>(env, launch, engine, std::move(removed));
  if (!removal.empty()) BERTH_TRY(container->keep(removal, host));
  return container;
}

TaskContainer::TaskContainer(os::Env& env, const Launch& launch, Engine engine,
                             std::function<void()> removed)
    : env_(env),
      engine_(engine),
      argv_(launch.argv),
      image_(launch.container.image),
      removed_(std::move(removed)) {}

Status TaskContainer::keep(const std::vector<std::string>& removal,
                           const Environment& environment) {
  os::SpawnSpec spec;
  spec.argv = {"/bin/sh", "-c", kWaitAndRemove, "sh"};
  spec.argv.insert(spec.argv.end(), removal.begin(), removal.end());
  spec.environment = environment;
  spec.directory = "/";
  spec.talks = true;
  BERTH_ASSIGN(keeper_, env_.spawn(spec));
  return {};
}

void TaskContainer::take_complaint(std::string_view bytes) {
  complaints_ += bytes;
  if (complaints_.size() > kComplaintsMost)
    complaints_.erase(0, complaints_.size() - kComplaintsMost);
}

std::string TaskContainer::why_never_started(int exit_code) const {
  return never_started(engine_, exit_code, complaints_, argv_, image_);
}

void TaskContainer::end(bool well) {
  if (keeper_.pid == 0) return;
  if (well) (void)env_.write_some(keeper_.out, "\n");
  keeper_.out.reset();
  ending_ = true;
  until_ = env_.now() + kRemovalMost;
  exits_.watch(keeper_.exited.number());
  late_.set(until_);
}

void TaskContainer::look() {
  const auto status = env_.reap(keeper_);
  if (status && !*status) {
    if (env_.now() < until_) return;
    (void)env_.signal_group(keeper_.pid, SIGKILL);
  }
  exits_.stop();
  late_.set(std::nullopt);
  ending_ = false;
  removed_();
}

}  // namespace berth::exec
