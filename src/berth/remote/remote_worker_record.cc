#include "berth/remote/remote_worker_record.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/time.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::size_t kAttemptFileMost = 1 << 20;
constexpr std::size_t kContactFileMost = 4 << 10;
constexpr std::string_view kAttempt = "brings.";
constexpr int kContactsALease = 3;

std::string attempt_file(const std::string& directory, Token token) {
  return fmt::format("{}/{}{}", directory, kAttempt, token.value);
}

}  // namespace

Status record_contact(os::Env& env, const std::string& directory, Duration lease) {
  return env.replace_file(directory + "/contact",
                          fmt::format("{} {} {} {}\n", env.boot_id(), env.host_name(),
                                      to_ms(env.boot_clock().time_since_epoch()), to_ms(lease)),
                          0600);
}

Status record_attempt(os::Env& env, const std::string& directory, Token token,
                      const StageOut& stage_out) {
  std::string text(stage_out.if_stopped ? 0 : 1, '\0');
  for (const auto& path : stage_out.paths) text += path + '\0';
  return env.replace_file(attempt_file(directory, token), text, 0600);
}

void forget_attempt(os::Env& env, const std::string& directory, Token token) {
  (void)env.remove_file(attempt_file(directory, token));
}

Result<std::vector<RecordedAttempt>> recorded_attempts(os::Env& env, const std::string& directory) {
  std::vector<RecordedAttempt> attempts;
  BERTH_ASSIGN(const auto names, env.list(directory));
  for (const auto& name : names) {
    if (!name.starts_with(kAttempt)) continue;
    const auto token = parse_integer(std::string_view(name).substr(kAttempt.size()));
    if (!token) continue;
    BERTH_ASSIGN(const auto text, env.read_file(directory + "/" + name, kAttemptFileMost));
    RecordedAttempt& attempt = attempts.emplace_back();
    attempt.token = {*token};
    attempt.stage_out.if_stopped = !text.starts_with('\0');
    for (const auto path : split(text, '\0'))
      if (!path.empty()) attempt.stage_out.paths.emplace_back(path);
  }
  return attempts;
}

std::optional<Duration> recorded_time_left(os::Env& env, const std::string& directory,
                                           Duration timeout) {
  const auto text = env.read_file(directory + "/contact", kContactFileMost);
  const auto fields = text ? words(*text) : std::vector<std::string_view>{};
  if (fields.size() != 4) return std::nullopt;
  const auto at = parse_integer(fields[2]);
  const auto lease_ms = parse_integer(fields[3]);
  if (!at || !lease_ms) return std::nullopt;
  const Duration clock = env.boot_clock().time_since_epoch();
  Duration since{};
  if (fields[0] == env.boot_id())
    since = clock - from_ms(*at);
  else if (fields[1] == env.host_name())
    since = clock;  // all of it happened before this machine was started
  const Duration lease = from_ms(*lease_ms);
  return std::max(Duration(0), std::max(lease, timeout) + lease / kContactsALease - since);
}

}  // namespace berth::remote
