#include "berth/remote/door.h"

#include "berth/base/document.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::remote {
namespace {

/// $1 DIGEST, $2 SIZE, then the agent's own words. What comes is checked before it gets its name,
/// where there is something to check it with, and tried: another machine may not be able to run it.
constexpr std::string_view kBootstrapScript = R"sh(umask 077
digest=$1 size=$2; shift 2
case $XDG_CACHE_HOME in /*) cache=$XDG_CACHE_HOME/berth ;; *) cache=$HOME/.cache/berth ;; esac
agent="$cache/agent-$digest"
if [ ! -x "$agent" ] || [ "$(wc -c <"$agent")" -ne "$size" ]; then
  cannot() { printf '\nberth-agent cannot %s\n' "$*"; exit 3; }
  new="$agent.$$"
  said=$(mkdir -p "$cache" 2>&1) || cannot "$said"
  printf '\nberth-agent wanted\n'
  head -c "$size" >"$new" || cannot "be kept in $cache"
  if command -v sha256sum >/dev/null; then
    sum=$(sha256sum "$new") && [ "${sum%% *}" = "$digest" ] || {
      rm -f "$new"; cannot "be brought whole: what came has another digest"; }
  fi
  chmod 700 "$new"
  said=$("$new" --version 2>&1) || { rm -f "$new"; cannot "run there ($(uname -sm)): $said"; }
  mv -f "$new" "$agent"
fi
exec "$agent" "$@"
)sh";

/// $1 DIGEST, then the agent's own words.
constexpr std::string_view kKnownScript = R"sh(
case $XDG_CACHE_HOME in /*) cache=$XDG_CACHE_HOME/berth ;; *) cache=$HOME/.cache/berth ;; esac
agent="$cache/agent-$1"; shift
if [ ! -x "$agent" ]; then printf '\nberth-agent cannot be found in %s there\n' "$cache"; exit 3; fi
exec "$agent" "$@"
)sh";

}  // namespace

std::vector<std::string> through(const Door& door, std::span<const std::string> command) {
  std::vector<std::string> words = door.words;
  for (const auto& word : command) words.push_back(door.shell ? shell_quote(word) : word);
  return words;
}

std::vector<std::string> agent_command(const AgentFile& agent, std::span<const std::string> words) {
  std::vector<std::string> command{"/bin/sh",
                                   "-c",
                                   std::string(kBootstrapScript),
                                   "berth-agent",
                                   to_hex(agent.digest),
                                   fmt::format("{}", agent.size)};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> known_agent_command(const AgentFile& agent,
                                             std::span<const std::string> words) {
  std::vector<std::string> command{"/bin/sh", "-c", std::string(kKnownScript), "berth-agent",
                                   to_hex(agent.digest)};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

agent::LineOptions line_to(const Door& door, const AgentFile& agent,
                           std::span<const std::string> words) {
  return {.command = through(door, agent_command(agent, words)), .agent_file = agent.path};
}

std::string to_json(const Place& place) {
  const Door& door = place.door;
  JsonWriter json;
  json.object().add("machine", door.name).key("door").list(door.words).add("shell", door.shell);
  json.add("direct", door.direct).add("address", door.address).add("directory", place.directory);
  return json.end().take();
}

Result<Place> parse_place(std::string_view text) {
  BERTH_ASSIGN(const auto place, Field::parse(text, "place"));
  BERTH_ASSIGN(const auto machine, place.get("machine"));
  BERTH_ASSIGN(const auto door, place.get("door"));
  BERTH_ASSIGN(const auto items, door.items());
  BERTH_ASSIGN(const auto shell, place.get("shell"));
  BERTH_ASSIGN(const auto directory, place.get("directory"));
  Place read;
  BERTH_ASSIGN(read.door.name, machine.text());
  for (const auto& item : items) {
    BERTH_ASSIGN(auto word, item.text());
    read.door.words.push_back(std::move(word));
  }
  constexpr std::string_view kBooleans[] = {"false", "true"};
  BERTH_ASSIGN(const auto quoted, shell.choice(kBooleans));
  read.door.shell = quoted == 1;
  // Of an older runner it has neither.
  if (const auto direct = place.find("direct")) {
    BERTH_ASSIGN(const auto may, direct->choice(kBooleans));
    read.door.direct = may == 1;
  }
  if (const auto address = place.find("address")) {
    BERTH_ASSIGN(read.door.address, address->text());
  }
  BERTH_ASSIGN(read.directory, directory.text());
  if (!read.directory.starts_with('/')) return directory.error("wanted an absolute path");
  return read;
}

}  // namespace berth::remote
