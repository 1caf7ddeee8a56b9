#include "berth/remote/cleaning.h"

#include <algorithm>
#include <memory>
#include <ranges>

#include "berth/agent/line.h"
#include "berth/agent/line_stream.h"
#include "berth/base/units.h"
#include "berth/remote/ssh.h"

namespace berth::remote {
namespace {

class Cleaning {
 public:
  Cleaning(os::Env& env, Door door, const AgentFile& agent, const std::vector<std::string>& words)
      : door_(std::move(door)),
        line_(env,
              {.command = through(door_, agent_command(agent, words)), .agent_file = agent.path}),
        stream_(env) {}

  const std::optional<Result<agent::Cleaned>>& answer() const { return answer_; }
  const std::string& host() const { return door_.name; }

  /// Five watches, always.
  void watch(std::vector<os::Watch>& watches) const {
    line_.watch(watches);
    stream_.watch(watches);
  }
  std::optional<Mono> deadline() const { return line_.deadline(); }

  void turn(std::span<const os::Watch> watches) {
    line_.turn(watches.subspan(0, 3));
    if (line_.lost()) return fail_with(*line_.lost());
    if (!stream_.is_open()) {
      if (!line_.here()) return;
      stream_.open(line_.take());
      stream_.send("go");
      return;
    }
    const auto status = stream_.turn(watches.subspan(3, 2));
    if (const auto said = stream_.next())
      answer_ = agent::decode_cleaned(*said);
    else if (!status || stream_.ended())
      fail_with(
          line_.because(status ? Error{ErrorKind::io, "the connection ended"} : status.error()));
  }

 private:
  void fail_with(Error error) { answer_ = std::unexpected(explain_ssh(door_, std::move(error))); }

  const Door door_;
  agent::Line line_;
  agent::LineStream stream_;
  std::optional<Result<agent::Cleaned>> answer_;
};

}  // namespace

Result<std::vector<HostCleaned>> clean_hosts(os::Env& env, const std::vector<Door>& doors,
                                             const AgentFile& agent,
                                             const agent::CleanOptions& options) {
  std::vector<std::string> words{"clean", "--older-than-ms",
                                 fmt::format("{}", to_ms(options.older_than))};
  if (options.dry_run) words.emplace_back("--dry-run");
  std::vector<std::unique_ptr<Cleaning>> all;
  for (const auto& door : doors) all.push_back(std::make_unique<Cleaning>(env, door, agent, words));
  const auto waits = [](const auto& one) { return !one->answer(); };
  while (std::ranges::any_of(all, waits)) {
    if (env.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped");
    std::vector<os::Watch> watches;
    std::optional<Mono> until;
    for (const auto& one : all) {
      if (!waits(one)) continue;
      one->watch(watches);
      if (const auto at = one->deadline(); at && (!until || *at < *until)) until = at;
    }
    BERTH_TRY(env.wait(watches, until));
    auto rest = std::span<const os::Watch>(watches);
    for (const auto& one : all | std::views::filter(waits)) {
      one->turn(rest.first(5));
      rest = rest.subspan(5);
    }
  }
  std::vector<HostCleaned> cleaned;
  for (const auto& one : all) cleaned.push_back({one->host(), *one->answer()});
  std::ranges::sort(cleaned, {}, &HostCleaned::host);
  return cleaned;
}

}  // namespace berth::remote
