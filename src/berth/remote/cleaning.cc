#include "berth/remote/cleaning.h"

#include <algorithm>
#include <memory>

#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

class Cleaning {
 public:
  Cleaning(os::Env& env, Transport transport, const AgentFile& agent,
           const std::vector<std::string>& words)
      : transport_(std::move(transport)),
        connection_(
            env,
            {.command = through(transport_, agent_command(agent, words)), .agent_file = agent.path},
            [this] { on_connection(); }),
        stream_(env, [this](const Status& status) { on_stream(status); }) {
    if (connection_.lost()) on_connection();
  }

  const std::optional<Result<agent::Cleaned>>& answer() const { return answer_; }
  const std::string& host() const { return transport_.name; }

 private:
  void on_connection() {
    if (connection_.lost()) return fail_with(*connection_.lost());
    stream_.open(connection_.take());
    stream_.send_line("go");
  }
  void on_stream(const Status& status) {
    if (answer_) return;
    if (const auto said = stream_.next())
      answer_ = agent::decode_cleaned(*said);
    else if (!status || stream_.ended())
      fail_with(connection_.because(status ? Error{ErrorKind::io, "the connection ended"}
                                           : status.error()));
    if (answer_) stream_.close();
  }
  void fail_with(Error error) {
    answer_ = std::unexpected(explain_ssh(transport_, std::move(error)));
  }

  const Transport transport_;
  agent::Connection connection_;
  agent::LineStream stream_;
  std::optional<Result<agent::Cleaned>> answer_;
};

}  // namespace

Result<std::vector<HostCleaned>> clean_hosts(os::Env& env, const std::vector<Transport>& transports,
                                             const AgentFile& agent,
                                             const agent::CleanOptions& options) {
  std::vector<std::string> words{"clean", "--older-than-ms",
                                 fmt::format("{}", to_ms(options.older_than))};
  if (options.dry_run) words.emplace_back("--dry-run");
  std::vector<std::unique_ptr<Cleaning>> all;
  for (const auto& transport : transports)
    all.push_back(std::make_unique<Cleaning>(env, transport, agent, words));
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
