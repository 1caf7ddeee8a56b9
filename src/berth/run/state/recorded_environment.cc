#include "berth/run/state/recorded_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "berth/base/digest.h"
#include "berth/base/text.h"
#include "berth/run/drive/workload.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostRecorded = 8 << 20;  // bytes; a process can have no larger environment
constexpr std::size_t kMostShown = 20;          // variables
constexpr std::size_t kMostValue = 400;         // bytes of a value that are shown
constexpr char kPlain = '=', kSecret = '#';     // what an entry of the file begins with

/// By name: a value, or the digest of a secret.
struct Recorded {
  std::map<std::string, std::string> values, digests;
};

std::string digest_of(const std::string& run_name, const std::string& name,
                      const std::string& value) {
  return to_hex(sha256(fmt::format("{}\n{}\n{}", run_name, name, value)));
}

Recorded recorded_of(const std::string& run_name, const exec::Environment& environment) {
  Recorded recorded;
  for (const auto& [name, value] : environment) {
    if (belongs_to_session(name)) continue;
    if (is_secret(name, value))
      recorded.digests[name] = digest_of(run_name, name, value);
    else
      recorded.values[name] = value;
  }
  return recorded;
}

/// nullopt: nothing was recorded.
Result<std::optional<Recorded>> read_recorded(const Context& context, const std::string& run_name) {
  const auto text =
      context.env->read_file(environment_file(run_directory(context, run_name)), kMostRecorded);
  if (!text && text.error().kind == ErrorKind::not_found) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  Recorded recorded;
  for (const auto entry : split(*text, '\0')) {
    const auto equals = entry.find('=', 1);
    if (entry.empty() || equals == std::string_view::npos) continue;
    const std::string name(entry.substr(1, equals - 1));
    auto& into = entry.front() == kSecret ? recorded.digests : recorded.values;
    into[name] = entry.substr(equals + 1);
  }
  return recorded;
}

std::optional<std::string> value_in(const std::map<std::string, std::string>& values,
                                    const std::string& name) {
  const auto found = values.find(name);
  return found != values.end() ? std::optional(found->second) : std::nullopt;
}

std::string shown(const std::optional<std::string>& value) {
  return value ? json_quote(clip(*value, kMostValue)) : "not set";
}

}  // namespace

exec::Environment task_environment(const Context& context) {
  return context.task_environment ? *context.task_environment : inherited_environment(*context.env);
}

bool belongs_to_session(std::string_view name) {
  constexpr std::array<std::string_view, 34> kNames{"_",
                                                    "COLORTERM",
                                                    "COLUMNS",
                                                    "DBUS_SESSION_BUS_ADDRESS",
                                                    "DESKTOP_SESSION",
                                                    "DISPLAY",
                                                    "GPG_AGENT_INFO",
                                                    "GPG_TTY",
                                                    "HISTFILE",
                                                    "INVOCATION_ID",
                                                    "JOURNAL_STREAM",
                                                    "LINES",
                                                    "LS_COLORS",
                                                    "MAIL",
                                                    "MANAGERPID",
                                                    "NOTIFY_SOCKET",
                                                    "OLDPWD",
                                                    "PPID",
                                                    "PWD",
                                                    "RANDOM",
                                                    "SECONDS",
                                                    "SESSION_MANAGER",
                                                    "SHLVL",
                                                    "STY",
                                                    "SYSTEMD_EXEC_PID",
                                                    "TERM",
                                                    "TERM_PROGRAM",
                                                    "TERM_PROGRAM_VERSION",
                                                    "TERM_SESSION_ID",
                                                    "WAYLAND_DISPLAY",
                                                    "WINDOW",
                                                    "WINDOWID",
                                                    "XAUTHORITY",
                                                    "XDG_RUNTIME_DIR"};
  constexpr std::array<std::string_view, 22> kPrefixes{"BERTH_",       "GNOME_TERMINAL_",
                                                       "ITERM_",       "KITTY_",
                                                       "KONSOLE_",     "LC_TERMINAL",
                                                       "LSB_",         "PBS_",
                                                       "PMIX_",        "PMI_",
                                                       "SLURM_",       "SLURMD_",
                                                       "SRUN_",        "SSH_",
                                                       "SUDO_",        "TMUX",
                                                       "VSCODE_",      "VTE_",
                                                       "WEZTERM_",     "XDG_SEAT",
                                                       "XDG_SESSION_", "XDG_VTNR"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_secret(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 10> kParts{
      "TOKEN",      "KEY",        "SECRET", "PASSWORD", "PASSWD",
      "PASSPHRASE", "CREDENTIAL", "COOKIE", "AUTH",     "_PW"};
  std::string upper;
  for (const char c : name) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (std::ranges::any_of(kParts, [&](std::string_view part) { return upper.contains(part); }))
    return true;
  // scheme://user:password@host
  const auto scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const auto rest = value.substr(scheme + 3);
  const auto user = rest.substr(0, rest.find('/'));
  const auto at = user.rfind('@');
  return at != std::string_view::npos && user.substr(0, at).contains(':');
}

Status record_environment(const Context& context, const std::string& run_name) {
  const auto recorded = recorded_of(run_name, inherited_environment(*context.env));
  std::string text;
  for (const auto& [entries, mark] :
       {std::pair(&recorded.values, kPlain), std::pair(&recorded.digests, kSecret)})
    for (const auto& [name, value] : *entries) {
      text += mark;
      text += name + "=" + value + '\0';
    }
  return context.env->replace_file(environment_file(run_directory(context, run_name)), text, 0600);
}

Result<std::vector<ChangedVariable>> changed_variables(const Context& context,
                                                       const std::string& run_name) {
  std::vector<ChangedVariable> changed;
  if (context.env->status(cluster_names_file(run_directory(context, run_name)))) return changed;
  BERTH_ASSIGN(const auto before, read_recorded(context, run_name));
  if (!before) return changed;
  const auto now = recorded_of(run_name, inherited_environment(*context.env));
  std::set<std::string> names;
  for (const auto* entries : {&before->values, &before->digests, &now.values, &now.digests})
    for (const auto& [name, _] : *entries) names.insert(name);
  for (const auto& name : names) {
    const auto value_before = value_in(before->values, name);
    const auto value_now = value_in(now.values, name);
    const auto secret_before = value_in(before->digests, name);
    const auto secret_now = value_in(now.digests, name);
    if (value_before == value_now && secret_before == secret_now) continue;
    if (secret_before || secret_now)
      changed.push_back({.name = name, .before = {}, .now = {}, .secret = true});
    else
      changed.push_back({.name = name, .before = value_before, .now = value_now});
  }
  return changed;
}

std::string to_text(const std::vector<ChangedVariable>& changed) {
  std::string text;
  for (std::size_t i = 0; i < changed.size() && i < kMostShown; ++i) {
    const ChangedVariable& one = changed[i];
    text += one.secret ? fmt::format("  {}: another value, not shown as it looks like a secret\n",
                                     one.name)
                       : fmt::format("  {}: it was {}, now it is {}\n", one.name, shown(one.before),
                                     shown(one.now));
  }
  if (changed.size() > kMostShown)
    text += fmt::format("  and {} more\n", changed.size() - kMostShown);
  return text;
}

Status use_recorded_environment(Context& context, const std::string& run_name) {
  BERTH_ASSIGN(const auto recorded, read_recorded(context, run_name));
  if (!recorded)
    return fail(ErrorKind::not_found,
                "{}: the environment of its submission was not recorded; resume it without "
                "--env-of-submission",
                run_name);
  exec::Environment environment;
  for (auto& variable : inherited_environment(*context.env))
    if (belongs_to_session(variable.first) || is_secret(variable.first, variable.second))
      environment.push_back(std::move(variable));
  for (const auto& [name, value] : recorded->values) set(environment, name, value);
  context.task_environment = std::move(environment);
  return {};
}

}  // namespace berth::run
