#include "berth/machine/ledger/ledger_file.h"

#include <limits>
#include <optional>

#include "berth/base/text.h"
#include "berth/machine/block_words.h"

namespace berth::machine {
namespace {

constexpr std::string_view kTitle = "berth-ledger 2 ";
constexpr std::size_t kFields = 11;
constexpr std::int64_t kLatestMs = 9'000'000'000'000;  // the year 2255; in ns it still fits

std::optional<LedgerEntry> read_entry(std::string_view line, uid_t user) {
  const auto fields = split(line, ' ');
  if (fields.size() != kFields || (fields[0] != "held" && fields[0] != "waiting"))
    return std::nullopt;
  LedgerEntry entry;
  entry.user = user;
  entry.waiting = fields[0] == "waiting";
  std::int64_t since_ms = 0;
  auto label = unescaped(fields[7]);
  const bool good =
      label && read_number(fields[1], 1, INT64_MAX, entry.id.value) &&
      read_number(fields[2], 1, std::numeric_limits<pid_t>::max(), entry.holder.pid) &&
      read_number(fields[3], 0, INT64_MAX, entry.holder.started_at) &&
      read_number(fields[4], 0, kLatestMs, since_ms) &&
      read_number(fields[5], INT64_MIN, INT64_MAX, entry.priority) &&
      read_number(fields[6], 0, kLatestMs, entry.sequence);
  if (!good) return std::nullopt;
  auto block = read_block(line.substr(static_cast<std::size_t>(fields[8].data() - line.data())));
  if (!block) return std::nullopt;
  entry.block = *std::move(block);
  entry.label = *std::move(label);
  entry.since = wall_from_ms(since_ms);
  return entry;
}

void append_entry(std::string& text, const LedgerEntry& entry) {
  text += entry.waiting ? "waiting " : "held ";
  for (const std::int64_t number :
       {entry.id.value, std::int64_t{entry.holder.pid}, entry.holder.started_at, to_ms(entry.since),
        entry.priority, entry.sequence})
    append_number(text, number, ' ');
  append_escaped(text, entry.label);
  text += ' ';
  append_block(text, entry.block);
  text += '\n';
}

}  // namespace

std::string write_ledger_file(std::string_view boot, std::span<const LedgerEntry> entries) {
  std::string text = fmt::format("{}{}\n", kTitle, boot);
  for (const auto& entry : entries) append_entry(text, entry);
  return text;
}

Result<std::vector<LedgerEntry>> read_ledger_file(std::string_view text, std::string_view boot,
                                                  uid_t user) {
  const auto malformed = [](std::size_t line) {
    return fail(ErrorKind::corrupt, "line {} is not a part of a ledger", line);
  };
  if (text.size() > kLedgerFileMost || !text.starts_with(kTitle) || !text.ends_with('\n'))
    return malformed(1);
  text.remove_suffix(1);
  const auto lines = split(text, '\n');
  if (lines[0].substr(kTitle.size()) != boot) return std::vector<LedgerEntry>{};
  if (lines.size() > kLedgerEntriesMost + 1) return malformed(kLedgerEntriesMost + 2);
  std::vector<LedgerEntry> entries;
  entries.reserve(lines.size() - 1);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto entry = read_entry(lines[i], user);
    if (!entry) return malformed(i + 1);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace berth::machine
