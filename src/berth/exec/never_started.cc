#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/exec/command.h"
#include "berth/exec/container.h"

namespace berth::exec {
namespace {

/// How a line of an engine's own begins, and the exit codes of an engine that could not start the
/// process; all where `least` is 0.
struct Speaker {
  std::string_view begin;
  int least = 0, most = 255;
};

std::vector<Speaker> speakers_of(Engine engine) {
  if (engine == Engine::bubblewrap) return {{"bwrap: ", 1, 1}, {"/usr/bin/env: ", 126, 127}};
  if (has_image_files(engine)) return {{"FATAL:", 255, 255}};
  return {{"Error: ", 125, 127}, {"docker: ", 125, 127}, {"ERROR (catatonit"}, {"[FATAL tini"}};
}

}  // namespace

std::string never_started(Engine engine, int exit_code, std::string_view complaints,
                          const std::vector<std::string>& argv, const std::string& image) {
  constexpr std::array<std::string_view, 5> kNoProgram{
      "failed to exec pid1", "executable file", "[FATAL tini", "no such file", "/usr/bin/env: "};
  const auto speakers = speakers_of(engine);
  std::string_view said;
  const Speaker* speaker = nullptr;
  for (const auto line : split(complaints, '\n'))
    for (const auto& each : speakers)
      if (line.starts_with(each.begin)) said = line, speaker = &each;
  if (!speaker || exit_code < speaker->least || exit_code > speaker->most) return {};
  const std::string where = image.empty() ? "sandbox" : "image " + image;
  if (said.contains("xec format error"))
    return fmt::format(
        "{}: {}: it was built for another kind of machine, or it is a script without a first line "
        "such as #!/bin/sh",
        where, argv.front());
  const bool no_program = exit_code != 125 && std::ranges::any_of(kNoProgram, [&](auto text) {
                            return said.find(text) != std::string_view::npos;
                          });
  if (!no_program) return fmt::format("{}: {}", where, said);
  std::string message = fmt::format("{}: it has no program {}", where, argv.front());
  if (image.empty())
    message += fmt::format("; it shows {}, and what `sandbox: [PATH]` names", kSystemShown);
  if (is_given_to(kStrictShell, argv)) message += fmt::format("; {}", kNoStrictShell);
  return message;
}

}  // namespace berth::exec
