#include "berth/run/trials/enqueued.h"

#include "berth/base/units.h"
#include "berth/experiment/own_point.h"
#include "berth/run/state/layout.h"

namespace berth::run {
namespace {

constexpr std::size_t kLongestPoint = 1U << 20;
constexpr char kTakenBy = '@';  // between a file's name and the number of its trial

std::string named(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}

}  // namespace

Result<std::string> leave_point(os::Env& env, const std::string& run_directory,
                                const experiment::Values& point) {
  const std::string directory = enqueued_directory(run_directory);
  BERTH_TRY(env.make_directory(directory, 0700));
  // In the order in which they were left.
  const auto since = env.wall().time_since_epoch();
  const std::string file = fmt::format(
      "{}/{:020}-{:016x}", directory,
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count(), env.random());
  BERTH_TRY(env.replace_file(file, experiment::values_json(point), 0600));
  BERTH_TRY(env.sync(file));
  BERTH_TRY(env.sync(directory));
  return file;
}

Status Enqueued::take_over(std::int64_t recorded) {
  const auto names = env_.list(directory_);
  if (!names) return {};  // nobody has left any
  for (const auto& name : *names) {
    const auto at = name.find(kTakenBy);
    if (at == std::string::npos) continue;
    const auto number = parse_integer(name.substr(at + 1));
    if (number && *number <= recorded)
      BERTH_TRY(env_.remove_file(named(directory_, name)));
    else
      BERTH_TRY(env_.rename(named(directory_, name), named(directory_, name.substr(0, at))));
  }
  return {};
}

Result<std::optional<experiment::Values>> Enqueued::take(TaskNumber number) {
  const auto names = env_.list(directory_);
  if (!names) return std::nullopt;
  for (const auto& name : *names) {
    if (name.find(kTakenBy) != std::string::npos || !name.starts_with('0')) continue;
    const std::string file = named(directory_, name);
    BERTH_ASSIGN(const std::string text, env_.read_file(file, kLongestPoint));
    BERTH_ASSIGN(auto point, experiment::read_own_point(text));
    taken_.push_back(fmt::format("{}{}{}", file, kTakenBy, number.value));
    BERTH_TRY(env_.rename(file, taken_.back()));
    return point;
  }
  return std::nullopt;
}

void Enqueued::forget_taken() {
  for (const auto& file : taken_) (void)env_.remove_file(file);
  taken_.clear();
}

}  // namespace berth::run
