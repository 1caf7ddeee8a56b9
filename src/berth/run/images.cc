#include "berth/run/images.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/container.h"

namespace berth::run {
namespace {

constexpr Duration kAnswersWithin = std::chrono::minutes(2);
constexpr Duration kPullMost = std::chrono::hours(6);
constexpr std::size_t kSaidMost = 64 << 10;
/// The id, and the names with digests, which docker does not have of an image made on its machine.
constexpr const char* kFormat = "{{.Id}}{{range .RepoDigests}} {{.}}{{end}}";

struct EngineEnd {
  bool good = false;
  std::string out, err;
};

/// Runs the engine and waits for it; `line` gets each line of its standard error.
Result<EngineEnd> run_engine(os::Env& env, std::vector<std::string> argv, Duration most,
                             const std::function<void(const std::string&)>& line = {}) {
  const std::string name = argv.front();
  os::SpawnSpec spec;
  spec.argv = std::move(argv);
  spec.environment = env.environment();
  spec.directory = "/";
  BERTH_ASSIGN(os::Child child, env.spawn(spec));
  EngineEnd end;
  std::size_t told = 0;
  const auto read = [&](os::Fd& fd, std::string& into) {
    os::ReadBuffer buffer;
    while (fd) {
      const auto got = env.read_some(fd, buffer);
      if (got && !*got) return;
      if (!got || **got == 0) return fd.reset();
      if (into.size() < kSaidMost) into.append(buffer.data(), **got);
    }
  };
  const int stops = env.stop_signals();
  const Mono until = env.now() + most;
  for (;;) {
    std::array watches{os::Watch{.fd = child.exited.number()}, os::Watch{.fd = child.out.number()},
                       os::Watch{.fd = child.err.number()}};
    const auto waited = env.wait(watches, until);
    read(child.out, end.out);
    read(child.err, end.err);
    for (std::size_t stop; line && (stop = end.err.find('\n', told)) != std::string::npos;
         told = stop + 1)
      line(end.err.substr(told, stop - told));
    BERTH_ASSIGN(const auto status, env.reap(child));
    if (status) {
      end.good = status->signal == 0 && status->code == 0;
      return end;
    }
    if (waited && env.stop_signals() == stops && env.now() < until) continue;
    (void)env.signal_group(child.pid, SIGKILL);
    if (env.stop_signals() != stops) return fail(ErrorKind::interrupted, "{}: stopped", name);
    return fail(ErrorKind::busy, "{}: no answer within {}", name, format_duration(most));
  }
}

/// What the engine knows of the image; nullopt: it has none of that name.
Result<std::optional<Image>> inspect(os::Env& env, exec::Engine engine, const std::string& image) {
  const std::string program(exec::kEngineNames.name(engine));
  BERTH_ASSIGN(
      const auto end,
      run_engine(env, {program, "image", "inspect", "--format", kFormat, image}, kAnswersWithin));
  const auto found = words(end.out);
  if (end.good && !found.empty())
    return Image{std::string(found[0]), std::string(found.size() > 1 ? found[1] : found[0])};
  // podman: "no such image", "image not known"; docker: "No such image".
  if (end.err.find("such image") != std::string::npos ||
      end.err.find("image not known") != std::string::npos)
    return std::nullopt;
  return fail(ErrorKind::impossible, "{} image inspect {}: {}", program, image, trim(end.err));
}

}  // namespace

Result<flow::Words> find_images(Context& context, FlowProgram& program, bool here) {
  os::Env& env = *context.env;
  flow::Words missing;
  if (program.image.empty() && !mentions(program, "image")) return missing;
  BERTH_ASSIGN(const auto flow, read_flow(program));
  for (const auto& step : flow.steps) {
    if (step.image.empty() || !step.image_id.empty() ||
        std::ranges::find(missing, step.image) != missing.end() ||
        program.answers.image.contains(step.image))
      continue;
    const auto engine = exec::find_engine(env, env.environment());
    if (!engine && !here) {
      missing.push_back(step.image);
      continue;
    }
    if (!engine)
      return std::unexpected(within(
          fmt::format("{}:{}: steps.{}.image", step.file, step.line, step.name), engine.error()));
    BERTH_ASSIGN(auto image, inspect(env, *engine, step.image));
    if (image)
      program.answers.image[step.image] = *std::move(image);
    else
      missing.push_back(step.image);
  }
  return missing;
}

Status pull_images(Context& context, FlowProgram& program, const flow::Words& images,
                   const std::function<void(const std::string&)>& tell) {
  os::Env& env = *context.env;
  if (images.empty()) return {};
  BERTH_ASSIGN(const exec::Engine engine, exec::find_engine(env, env.environment()));
  const std::string name(exec::kEngineNames.name(engine));
  for (const auto& image : images) {
    tell(fmt::format("{} is not on this machine: {} pull {}", image, name, image));
    BERTH_ASSIGN(const auto end, run_engine(env, {name, "pull", image}, kPullMost, tell));
    if (!end.good)
      return fail(ErrorKind::not_found,
                  "image {}: it is not on this machine and cannot be fetched. `{} pull {}` said:\n"
                  "{}\nIs the name right, with its registry and tag? A private registry wants "
                  "`{} login` first; an image of your own is made by `{} build` or `{} import`",
                  image, name, image, trim(end.err), name, name, name);
    BERTH_ASSIGN(auto found, inspect(env, engine, image));
    if (!found)
      return fail(ErrorKind::not_found, "image {}: {} has fetched it but does not know it", image,
                  name);
    program.answers.image[image] = *std::move(found);
  }
  return {};
}

}  // namespace berth::run
