// What ssh complains of, sorted by whether a retry can mend it, with what a person can do.
#include <algorithm>
#include <array>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

enum class Advice : std::uint8_t { host_key, user_key, config, address };

struct SshComplaint {
  std::string_view words;
  ErrorKind kind;
  Advice advice;
};

constexpr std::array kSshComplaints{
    SshComplaint{"Host key verification failed", ErrorKind::denied, Advice::host_key},
    SshComplaint{"Permission denied (", ErrorKind::denied, Advice::user_key},
    SshComplaint{"Too many authentication failures", ErrorKind::denied, Advice::user_key},
    SshComplaint{"Bad configuration option", ErrorKind::invalid, Advice::config},
    SshComplaint{"bad configuration options", ErrorKind::invalid, Advice::config},
    SshComplaint{"Bad owner or permissions", ErrorKind::invalid, Advice::config},
    SshComplaint{"Unable to negotiate", ErrorKind::invalid, Advice::config},
    SshComplaint{"Could not resolve hostname", ErrorKind::io, Advice::address},
    SshComplaint{"Connection refused", ErrorKind::io, Advice::address},
    SshComplaint{"No route to host", ErrorKind::io, Advice::address},
    SshComplaint{"timed out", ErrorKind::io, Advice::address},
};

/// The word behind `option`, or behind `prefix` in a word of its own; "": there is none.
std::string word_after(const std::vector<std::string>& words, std::string_view option,
                       std::string_view prefix = "") {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == option && words[i + 1].starts_with(prefix))
      return words[i + 1].substr(prefix.size());
  return "";
}

/// What a person types to log in there: without the options that Berth adds.
std::string login_command(const Transport& transport) {
  constexpr std::array<std::string_view, 6> kOurs{
      "BatchMode=", "LogLevel=", "ConnectTimeout=", "ServerAlive", "Control", "IdentitiesOnly="};
  std::string line;
  for (std::size_t i = 0; i < transport.words.size(); ++i) {
    const std::string& word = transport.words[i];
    const bool ours = word == "-o" && i + 1 < transport.words.size() &&
                      std::ranges::any_of(kOurs, [&](const auto& each) {
                        return transport.words[i + 1].starts_with(each);
                      });
    if (ours) ++i;
    if (ours || word == "-T" || word == "--") continue;
    line += (line.empty() ? "" : " ") + shell_quote(word);
  }
  return line;
}

std::string host_key_advice(const Transport& transport) {
  const std::string& host = transport.words.back();
  const std::string port = word_after(transport.words, "-p");
  const std::string file = word_after(transport.words, "-o", "UserKnownHostsFile=");
  const std::string known = port.empty() || port == "22" ? host : "[" + host + "]:" + port;
  return fmt::format(
      "if it is a new host, accept its key once by hand: {}; if its key was changed on purpose, "
      "remove the old one first: ssh-keygen -R {}{}",
      login_command(transport), shell_quote(known), file.empty() ? "" : " -f " + shell_quote(file));
}

std::string advice_for(const Transport& transport, Advice advice) {
  switch (advice) {
    case Advice::host_key: return host_key_advice(transport);
    case Advice::user_key:
      return fmt::format(
          "it accepts none of your keys; this must work without a question: {}; ssh-copy-id "
          "installs a key on the host, `key` in clusters.yaml names another key, ssh-add unlocks a "
          "key",
          login_command(transport));
    case Advice::config: return "try it by hand: " + login_command(transport);
    case Advice::address:
      return "check that name and port are right and that it is up; try by hand: " +
             login_command(transport);
  }
  return "";
}

}  // namespace

Error explain_ssh(const Transport& transport, Error error) {
  if (transport.words.empty() || transport.words.front() != "ssh") return error;
  const auto known = std::ranges::find_if(kSshComplaints, [&](const SshComplaint& each) {
    return error.message.find(each.words) != std::string::npos;
  });
  if (known == kSshComplaints.end()) return error;
  while (error.message.ends_with('.')) error.message.pop_back();
  return {known->kind, error.message + " (" + advice_for(transport, known->advice) + ")"};
}

}  // namespace berth::remote
