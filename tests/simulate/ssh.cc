// ssh as a Cloud plays it: what it carries, what is on its way, and what it runs at the other end.
#include <algorithm>
#include <array>

#include "berth/agent/files/files.h"
#include "berth/agent/pool.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/stdio.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "simulate/cloud.h"

namespace berth::simulate {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectsWithin = 10s;
constexpr Duration kSilentMost = 15s;
constexpr Duration kSlowMost = 10s;
constexpr Duration kLate = 200ms;
constexpr int kSshFailed = 255;

/// A word as shell_quote() left it.
std::string unquote(std::string_view word) {
  std::string plain;
  bool quoted = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'')
      quoted = !quoted;
    else if (word[i] == '\\' && !quoted)
      plain += word[++i];
    else
      plain += word[i];
  }
  return plain;
}

}  // namespace

/// The client's and the server's part of ssh: bytes go to the far process and back, as long as the
/// machine can be reached.
struct Cloud::Carrier {
  struct Way {
    os::Fd& from;
    os::Fd& to;
    std::string bytes{};  // on their way
    Mono due{};           // when they arrive
  };
  Cloud& cloud;
  os::FakeProcess& client;
  SimulatedMachine& machine;
  os::Fd there{}, here{};
  Way in{here, there}, out{there, here};
  os::ReadBuffer buffer{};
  std::string complaint{};
  bool is_carrying = false;

  bool unreachable() const { return machine.is_cut || !machine.is_up; }
  bool arrived(const Way& way) const { return !way.bytes.empty() && way.due <= client.now(); }
  Duration latency();
  int carry(std::vector<std::string> words);
  bool wait();
  std::optional<int> read(Way& way, const os::FakeProcess& far, const std::string& said);
  bool write(Way& way);
  void let_go();
};

Duration Cloud::Carrier::latency() {
  const bool slow = machine.slow_once_in != 0 && cloud.kernel_.random() % machine.slow_once_in == 0;
  const Duration most = slow ? kSlowMost : cloud.manners_.latency;
  if (most == Duration(0)) return most;
  return Duration(
      static_cast<std::int64_t>(cloud.kernel_.random() % static_cast<std::uint64_t>(most.count())));
}

/// What is on its way there arrives though nobody holds the connection any more.
void Cloud::Carrier::let_go() {
  if (!is_carrying || client.frozen || client.over()) return;
  is_carrying = false;
  for (;;) {
    const auto got = client.read_some(here, buffer);
    if (!got || got->value_or(0) == 0) break;
    in.bytes.append(buffer.data(), **got);
  }
  if (client.over()) return;  // it was killed meanwhile
  const bool late = !in.bytes.empty() && in.due > client.now() + kLate;
  cloud.on_its_way_.push_back({&machine, cloud.kernel_.adopt(std::move(there)),
                               std::exchange(in.bytes, {}), late ? in.due : client.now()});
  cloud.deliver();
}

/// Until something can be read or written, or arrives. false: the client was killed.
bool Cloud::Carrier::wait() {
  std::array<os::Watch, 4> watches{
      os::Watch{.fd = in.bytes.empty() ? here.number() : -1},
      os::Watch{.fd = out.bytes.empty() ? there.number() : -1},
      os::Watch{.fd = arrived(out) ? here.number() : -1, .readable = false},
      os::Watch{.fd = arrived(in) ? there.number() : -1, .readable = false}};
  std::optional<Mono> next;
  for (const Way* way : {&in, &out})
    if (!way->bytes.empty() && !arrived(*way)) next = std::min(next.value_or(way->due), way->due);
  return client.wait(watches, next).has_value();
}

/// The exit code, where the connection ends by that.
std::optional<int> Cloud::Carrier::read(Way& way, const os::FakeProcess& far,
                                        const std::string& said) {
  if (!way.bytes.empty()) return std::nullopt;
  const auto got = client.read_some(way.from, buffer);
  if (!got) return kSshFailed;
  if (*got && **got == 0) {
    let_go();
    complaint = said;
    return far.exit_code();
  }
  if (!*got) return std::nullopt;
  way.bytes.assign(buffer.data(), **got);
  way.due = client.now() + latency();
  return std::nullopt;
}

/// Whether the connection stands.
bool Cloud::Carrier::write(Way& way) {
  if (!arrived(way)) return true;
  const auto put = client.write_some(way.to, way.bytes);
  if (!put) {
    let_go();
    return false;
  }
  way.bytes.erase(0, put->value_or(0));
  if (machine.breaks_once_in == 0 || cloud.kernel_.random() % machine.breaks_once_in != 0)
    return true;
  complaint = fmt::format("Connection to {} closed by remote host.", machine.name);
  return false;
}

int Cloud::Carrier::carry(std::vector<std::string> words) {
  if (unreachable()) {
    (void)client.wait({}, client.now() + kConnectsWithin);
    complaint = fmt::format("ssh: connect to host {} port 22: Connection timed out", machine.name);
    return kSshFailed;
  }
  if (!client.wait({}, client.now() + Duration(cloud.kernel_.random() % 50'000'000)))
    return kSshFailed;
  os::FakeProcess& far =
      cloud.make(machine, words.size() > 6 && words[6] == "pool"    ? Kind::pool
                          : words.size() > 6 && words[6] == "stdio" ? Kind::stdio
                                                                    : Kind::files);
  auto [ours, theirs] = client.connect_to(far);
  far.talk_by(std::move(theirs));
  auto said = std::make_shared<std::string>();
  far.start([&cloud = cloud, &far, words = std::move(words), said] {
    return cloud.remote_command(far, words, *said);
  });
  there = std::move(ours);
  here = os::Fd(client, 0);
  is_carrying = true;
  std::optional<Mono> silent_since;
  for (;;) {
    if (unreachable()) {
      silent_since = silent_since.value_or(client.now());
      if (client.now() - *silent_since >= kSilentMost) {
        complaint = fmt::format("Timeout, server {} not responding.", machine.name);
        let_go();
        return kSshFailed;
      }
      if (!client.wait({}, client.now() + 1s)) return kSshFailed;
      continue;
    }
    silent_since.reset();
    if (!wait()) return kSshFailed;
    if (unreachable()) continue;
    for (Way* way : {&in, &out})
      if (const auto code = read(*way, far, *said)) return *code;
    for (Way* way : {&out, &in}) {
      if (write(*way)) continue;
      if (complaint.empty()) complaint = *said;
      return kSshFailed;
    }
  }
}

os::FakeProgram Cloud::ssh(os::FakeProcess& parent, const os::SpawnSpec& spec) {
  const auto dashes = std::ranges::find(spec.argv, "--");
  if (spec.argv.at(1) == "-G" || !spec.talks || dashes == spec.argv.end())
    return {.err = "ssh: this is not played", .exit_code = kSshFailed};
  const std::string& to = dashes[1];
  const auto host = std::ranges::find(machines_, to, [](const auto& each) { return each->name; });
  std::vector<std::string> words;
  for (auto word = dashes + 2; word != spec.argv.end(); ++word) words.push_back(unquote(*word));
  os::FakeProcess& client = make(machine_of(parent), Kind::ssh);
  speaks_next_ = &client;
  const pid_t script = parent.last_pid();
  const std::shared_ptr<Carrier> carrier(new Carrier{*this, client, **host});
  client.start([carrier, &client, &parent, script, words = std::move(words)] {
    const int code = carrier->carry(words);
    carrier->is_carrying = false;
    carrier->here.reset();
    carrier->there.reset();
    if (!client.killed()) parent.end_script(script, {.err = carrier->complaint, .exit_code = code});
    return code;
  });
  return {.duration = kForEver, .at_kill = [carrier, &client] {
            if (!client.over()) carrier->let_go();
            client.kill();
          }};
}

/// What the shell there makes of it: see remote/transport.cc.
int Cloud::remote_command(os::FakeProcess& far, const std::vector<std::string>& words,
                          std::string& complaint) {
  const bool brings = words.size() > 5 && parse_integer(words[5]).has_value();
  if (words.size() < 6) return 2;
  const std::string agent = "/home/u/.cache/berth/agent-" + words[4];
  const std::vector<std::string> command(words.begin() + (brings ? 6 : 5), words.end());
  if (!far.status(agent)) {
    if (!brings) return 3;
    const os::Fd in(far, 0), out(far, 1);
    if (!far.write_all(out, fmt::format("\n{}\n", agent::kWanted))) return 3;
    std::size_t missing = static_cast<std::size_t>(*parse_integer(words[5]));
    std::string bytes;
    std::vector<char> buffer(4096);
    while (missing > 0) {
      std::array<os::Watch, 1> watches{os::Watch{.fd = 0}};
      if (!far.wait(watches, std::nullopt)) return 3;
      const auto got = far.read_some(in, std::span(buffer).first(std::min(missing, buffer.size())));
      if (!got || (*got && **got == 0)) return 3;
      if (!*got) continue;
      bytes.append(buffer.data(), **got);
      missing -= **got;
    }
    if (!far.make_directory("/home/u/.cache/berth", 0700) || !far.replace_file(agent, bytes, 0700))
      return 3;
  }
  Status status = fail(ErrorKind::usage, "not played: {}", join(command, " "));
  if (command.at(0) == "pool") status = agent::serve_pool(far, agent);
  if (command.at(0) == "stdio") status = agent::serve_stdio(far, command.at(1));
  if (command.at(0) == "files") status = agent::serve_files(far, command.at(1));
  if (!status) complaint = "berth-agent: " + status.error().message;
  return status ? 0 : exit_code(status.error().kind);
}

}  // namespace berth::simulate
