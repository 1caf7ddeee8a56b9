#include "berth/run/drive/images.h"

#include <algorithm>
#include <csignal>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/exec/container.h"
#include "berth/os/child_process.h"
#include "berth/run/flows/delivery.h"
#include "berth/run/flows/flow_run.h"

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
  EngineEnd end;
  std::size_t reported = 0;
  const auto status = os::run_child(
      env, spec,
      [&](os::ChildProcess::Stream stream, std::string_view text) {
        const bool is_error = stream == os::ChildProcess::Stream::err;
        auto& into = is_error ? end.err : end.out;
        if (into.size() < kSaidMost) into.append(text);
        if (!is_error || !line) return;
        for (std::size_t stop; (stop = end.err.find('\n', reported)) != std::string::npos;
             reported = stop + 1)
          line(end.err.substr(reported, stop - reported));
      },
      env.now() + most);
  if (!status && status.error().kind == ErrorKind::interrupted)
    return std::unexpected(within(name, status.error()));
  if (!status && status.error().kind == ErrorKind::busy)
    return fail(ErrorKind::busy, "{}: no answer within {}", name, format_duration(most));
  if (!status) return std::unexpected(status.error());
  end.good = status->signal == 0 && status->code == 0;
  return end;
}

/// An image in a file is what that holds.
Result<Image> image_of_file(Context& context, std::string path) {
  BERTH_ASSIGN(auto cache, open_cache(context));
  BERTH_ASSIGN(const auto content, cache.read(path));
  return Image{"sha256:" + to_hex(fileset::digest(content)), std::move(path)};
}

/// How the files of images that were fetched begin: by the name, then "@" and a part of the digest.
std::string fetched_file(const Context& context, const std::string& image) {
  return fmt::format("{}/{}@", images_directory(context.state_directory), percent_encoded(image));
}

/// The file that an engine made of an image before.
Result<std::optional<Image>> find_fetched(Context& context, const std::string& image) {
  const std::string begin = fetched_file(context, image);
  const std::string folder = images_directory(context.state_directory);
  auto names = context.env->list(folder);
  if (!names && names.error().kind == ErrorKind::not_found) return std::nullopt;
  if (!names) return std::unexpected(names.error());
  std::ranges::sort(*names);
  for (const auto& name : *names) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (!path.starts_with(begin) || !path.ends_with(".sif")) continue;
    BERTH_ASSIGN(auto found, image_of_file(context, std::move(path)));
    return found;
  }
  return std::nullopt;
}

/// What the engine knows of the image; nullopt: it has none of that name.
Result<std::optional<Image>> inspect(Context& context, exec::Engine engine,
                                     const std::string& image) {
  if (exec::has_image_files(engine)) return find_fetched(context, image);
  os::Env& env = *context.env;
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

/// Calls the file by what it holds, so that no other content ever has its path.
Status keep_fetched(Context& context, const std::string& image, const std::string& file) {
  constexpr std::size_t kDigits = 16;
  BERTH_ASSIGN(const auto found, image_of_file(context, file));
  const auto digits = found.id.substr(found.id.find(':') + 1, kDigits);
  return context.env->rename(file, fmt::format("{}{}.sif", fetched_file(context, image), digits));
}

}  // namespace

Result<flow::Words> find_images(Context& context, FlowProgram& program, const std::string& folder,
                                bool here) {
  os::Env& env = *context.env;
  flow::Words missing;
  if (program.image.empty() && !mentions(program, "image")) return missing;
  BERTH_ASSIGN(const auto flow, read_flow(program));
  for (const auto& step : flow.steps) {
    if (step.container.image.empty() || !step.image_id.empty() ||
        std::ranges::find(missing, step.container.image) != missing.end() ||
        program.answers.image.contains(step.container.image))
      continue;
    const std::string& name = step.container.image;
    const auto at = [&](Error error) {
      return std::unexpected(within(
          fmt::format("{}:{}: steps.{}.image", step.file, step.line, step.name), std::move(error)));
    };
    const auto engine = exec::find_engine(env, env.environment(), step.container);
    if (!engine && here) return at(engine.error());
    if (exec::is_image_file(name)) {
      auto image = image_of_file(context, place_in(folder, name));
      const bool may_be_there = !here && name.starts_with('/');
      if (image)
        program.answers.image[name] = *std::move(image);
      else if (may_be_there && image.error().kind == ErrorKind::not_found)
        missing.push_back(name);
      else
        return at(image.error());
      continue;
    }
    BERTH_ASSIGN(auto image, engine ? inspect(context, engine->engine, name) : std::nullopt);
    if (image)
      program.answers.image[name] = *std::move(image);
    else
      missing.push_back(name);
  }
  return missing;
}

Status pull_images(Context& context, FlowProgram& program, const flow::Words& images,
                   const std::function<void(const std::string&)>& tell) {
  os::Env& env = *context.env;
  if (images.empty()) return {};
  BERTH_ASSIGN(const auto found, exec::find_engine(env, env.environment(), {images.front()}));
  const std::string name(exec::kEngineNames.name(found.engine));
  const bool to_file = exec::has_image_files(found.engine);
  for (const auto& image : images) {
    const std::string called = to_file ? exec::image_url(image) : image;
    tell(fmt::format("{} is not on this machine: {} pull {}", image, name, called));
    std::vector<std::string> argv{name, "pull", called};
    const std::string file =
        fmt::format("{}{:08x}.part", fetched_file(context, image), env.random());
    if (to_file) argv.insert(argv.end() - 1, file);
    if (to_file) BERTH_TRY(env.make_directory(images_directory(context.state_directory), 0700));
    const auto end = run_engine(env, argv, kPullMost, tell);
    if (to_file && (!end || !end->good)) (void)env.remove_file(file);
    if (!end) return std::unexpected(end.error());
    if (!end->good)
      return fail(ErrorKind::not_found,
                  "image {}: it is not on this machine and cannot be downloaded. `{}` said:\n"
                  "{}\n"
                  "Is the name right, with its registry and tag? A private registry requires a "
                  "login first (`{} {}`); to build your own image use `{} build`{}",
                  image, join(argv, " "), trim(end->err), name,
                  to_file ? "registry login" : "login", name,
                  to_file ? "" : fmt::format(" or `{} import`", name));
    if (to_file) BERTH_TRY(keep_fetched(context, image, file));
    BERTH_ASSIGN(auto known, inspect(context, found.engine, image));
    if (!known)
      return fail(ErrorKind::not_found, "image {}: {} has downloaded it but does not find it",
                  image, name);
    program.answers.image[image] = *std::move(known);
  }
  return {};
}

}  // namespace berth::run
