#include "berth/remote/transport.h"

#include <algorithm>

#include "berth/base/document.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::remote {
namespace {

// The login shell of the other machine reads these scripts first, as one word in single quotes, and
// it may be csh, tcsh or fish. So they are sent in one line, have no "!", no backslash and no
// single quote, and are shorter than the 1024 bytes that csh allows a word. Only sh runs them.

/// $1 DIGEST, $2 SIZE, then the words of the agent. The file is checked before it gets its name,
/// and run once: another machine may not be able to run it. Only the file and its directory are
/// private: the agent keeps the umask of the login, which its tasks get.
constexpr std::string_view kBootstrapScript = R"sh(digest=$1; size=$2; shift 2;
case $XDG_CACHE_HOME in /*) cache=$XDG_CACHE_HOME/berth;; *) cache=$HOME/.cache/berth;; esac;
agent=$cache/agent-$digest; new=$agent.$$;
cannot() { rm -f "$new"; echo; printf "berth-agent cannot %s" "$*"; echo; exit 3; };
take() {
umask 077; said=$(mkdir -p "$cache" 2>&1) || cannot "$said";
echo; echo "berth-agent wanted";
said=$(head -c "$size" 2>&1 >"$new") || cannot "be stored in $cache: $said";
if command -v sha256sum >/dev/null; then sum=$(sha256sum "$new") && [ "${sum%% *}" = "$digest" ] ||
cannot "be copied: the received file has another digest"; fi;
chmod 700 "$new"; said=$("$new" --version 2>&1) || cannot "run on this host ($(uname -sm)): $said";
mv -f "$new" "$agent"; };
[ -x "$agent" ] && [ "$(wc -c <"$agent")" -eq "$size" ] || (take) || exit 3;
exec "$agent" "$@")sh";

/// $1 DIGEST, then the words of the agent.
constexpr std::string_view kKnownScript = R"sh(
case $XDG_CACHE_HOME in /*) cache=$XDG_CACHE_HOME/berth;; *) cache=$HOME/.cache/berth;; esac;
agent=$cache/agent-$1; shift; if [ -x "$agent" ]; then exec "$agent" "$@"; fi;
echo; echo "berth-agent cannot be found in $cache"; exit 3)sh";

std::string in_one_line(std::string_view script) {
  std::string line(script);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

/// The word as every login shell reads it (sh, csh, fish): outside of single quotes are a quote,
/// which all of them end with, the "!" of csh's history, and the backslash of fish.
std::string login_shell_quote(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'' || c == '!' || c == '\\')
      quoted += {'\'', '\\', c, '\''};
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::vector<std::string> through(const Transport& transport, std::span<const std::string> command) {
  std::vector<std::string> words = transport.words;
  for (const auto& word : command)
    words.push_back(transport.shell ? login_shell_quote(word) : word);
  return words;
}

std::vector<std::string> agent_command(const AgentFile& agent, std::span<const std::string> words) {
  std::vector<std::string> command{"sh",
                                   "-c",
                                   in_one_line(kBootstrapScript),
                                   "berth-agent",
                                   to_hex(agent.digest),
                                   fmt::format("{}", agent.size)};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> known_agent_command(const AgentFile& agent,
                                             std::span<const std::string> words) {
  std::vector<std::string> command{"sh", "-c", in_one_line(kKnownScript), "berth-agent",
                                   to_hex(agent.digest)};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

agent::ConnectionOptions connection_to(const Transport& transport, const AgentFile& agent,
                                       std::span<const std::string> words) {
  return {.command = through(transport, agent_command(agent, words)), .agent_file = agent.path};
}

std::string to_json(const LeaseDirectory& lease_directory) {
  const Transport& transport = lease_directory.transport;
  JsonWriter json;
  json.object()
      .add("machine", transport.name)
      .key("door")
      .list(transport.words)
      .add("shell", transport.shell);
  json.add("direct", transport.direct)
      .add("address", transport.address)
      .add("directory", lease_directory.path);
  return json.end().take();
}

Result<LeaseDirectory> parse_lease_directory(std::string_view text) {
  BERTH_ASSIGN(const auto lease_directory, Field::parse(text, "place"));
  BERTH_ASSIGN(const auto machine, lease_directory.get("machine"));
  BERTH_ASSIGN(const auto transport, lease_directory.get("door"));
  BERTH_ASSIGN(const auto items, transport.items());
  BERTH_ASSIGN(const auto shell, lease_directory.get("shell"));
  BERTH_ASSIGN(const auto directory, lease_directory.get("directory"));
  LeaseDirectory read;
  BERTH_ASSIGN(read.transport.name, machine.text());
  for (const auto& item : items) {
    BERTH_ASSIGN(auto word, item.text());
    read.transport.words.push_back(std::move(word));
  }
  constexpr std::string_view kBooleans[] = {"false", "true"};
  BERTH_ASSIGN(const auto quoted, shell.choice(kBooleans));
  read.transport.shell = quoted == 1;
  // Of an older runner it has neither.
  if (const auto direct = lease_directory.find("direct")) {
    BERTH_ASSIGN(const auto may, direct->choice(kBooleans));
    read.transport.direct = may == 1;
  }
  if (const auto address = lease_directory.find("address")) {
    BERTH_ASSIGN(read.transport.address, address->text());
  }
  BERTH_ASSIGN(read.path, directory.text());
  if (!read.path.starts_with('/')) return directory.error("expected an absolute path");
  return read;
}

}  // namespace berth::remote
