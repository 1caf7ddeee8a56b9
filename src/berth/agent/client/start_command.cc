#include "berth/agent/client/start_command.h"

#include "berth/base/units.h"

namespace berth::agent {

Result<StartCommand> parse_start_command(std::span<const std::string_view> words) {
  StartCommand options;
  if (words.empty() || !words[0].starts_with('/'))
    return fail(ErrorKind::usage, "DIR: expected an absolute path");
  options.directory = words[0];
  bool block = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--outlive") {
      options.outlive = true;
      continue;
    }
    if (words[i] == "--stay") {
      options.stay = true;
      continue;
    }
    if (i + 1 == words.size()) return fail(ErrorKind::usage, "{}: expected a value", words[i]);
    const std::string_view name = words[i];
    const std::string_view value = words[++i];
    if (name == "--block") {
      BERTH_ASSIGN(options.block, machine::read_block(value));
      block = true;
    } else if (name == "--lease-ms") {
      constexpr std::int64_t kLongest_ms = 1'000'000'000;
      BERTH_ASSIGN(const auto lease_ms, parse_integer(value));
      if (lease_ms < 1 || lease_ms > kLongest_ms)
        return fail(ErrorKind::usage, "--lease-ms: expected 1 to {}", kLongest_ms);
      options.lease = from_ms(lease_ms);
    } else if (name == "--ledger") {
      options.ledger_directory = value;
    } else if (name == "--with") {
      options.with = value;
    } else if (name == "--alloc") {
      BERTH_ASSIGN(options.alloc.value, parse_integer(value));
    } else {
      return fail(ErrorKind::usage, "{}: no such option", name);
    }
  }
  if (!block) return fail(ErrorKind::usage, "--block: required");
  if ((options.alloc.value != 0) == options.ledger_directory.empty())
    return fail(ErrorKind::usage, "--ledger and --alloc go together");
  return options;
}

}  // namespace berth::agent
