#include "berth/remote/cleaning.h"

#include <algorithm>
#include <memory>

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
              {.command = through(door_, agent_command(agent, words)), .agent_file = agent.path},
              [this] { on_line(); }),
        stream_(env, [this](const Status& status) { on_stream(status); }) {
    if (line_.lost()) on_line();
  }

  const std::optional<Result<agent::Cleaned>>& answer() const { return answer_; }
  const std::string& host() const { return door_.name; }

 private:
  void on_line() {
    if (line_.lost()) return fail_with(*line_.lost());
    stream_.open(line_.take());
    stream_.send_line("go");
  }
  void on_stream(const Status& status) {
    if (answer_) return;
    if (const auto said = stream_.next())
      answer_ = agent::decode_cleaned(*said);
    else if (!status || stream_.ended())
      fail_with(
          line_.because(status ? Error{ErrorKind::io, "the connection ended"} : status.error()));
    if (answer_) stream_.close();
  }
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
    BERTH_TRY(env.loop().turn());
  }
  std::vector<HostCleaned> cleaned;
  for (const auto& one : all) cleaned.push_back({one->host(), *one->answer()});
  std::ranges::sort(cleaned, {}, &HostCleaned::host);
  return cleaned;
}

}  // namespace berth::remote
