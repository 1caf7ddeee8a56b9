#include "berth/fleet/benchmark_files.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/fleet/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kKnown =
    "a result of guidellm, vLLM's benchmark, aiperf or genai-perf, or a table with the columns "
    "batch, prefill_tokens, context_tokens, ms";

struct JsonFormat {
  bool (*is)(const JsonPlace&);
  Result<BenchmarkFile> (*read)(const std::string&, const JsonPlace&);
};
constexpr JsonFormat kJsonFormats[] = {
    {is_guidellm, read_guidellm}, {is_vllm, read_vllm}, {is_aiperf, read_aiperf}};

struct CsvFormat {
  bool (*is)(std::span<const CsvRow>);
  Result<BenchmarkFile> (*read)(const std::string&, std::span<const CsvRow>);
};
constexpr CsvFormat kCsvFormats[] = {{is_rows_csv, read_rows_csv},
                                     {is_splitwise_csv, read_splitwise_csv},
                                     {is_aiperf_csv, read_aiperf_csv},
                                     {is_guidellm_csv, read_guidellm_csv}};

Result<BenchmarkFile> unknown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  return fail(ErrorKind::not_found, "wanted {}; found {}", kKnown,
              text.empty() ? "nothing" : fmt::format("'{}'", clip(text.substr(0, kShown), kShown)));
}

Result<BenchmarkFile> read_document(const std::string& name, const JsonPlace& document,
                                    std::string_view text) {
  for (const auto& format : kJsonFormats)
    if (format.is(document)) return format.read(name, document);
  return unknown(text);
}

/// The lines of a file that has one JSON object a line: results that a tool has appended to each
/// other, or requests.
Result<BenchmarkFile> read_lines(const std::string& name, std::string_view text,
                                 const JsonPlace& first) {
  const auto lines = split(text, '\n');
  if (lines.size() > kMostRows)
    return fail(ErrorKind::invalid, "{} lines, at most {} can be", lines.size(), kMostRows);
  if (is_aiperf_request(first)) return read_aiperf_requests(name, lines);
  BenchmarkFile all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const std::string where = fmt::format("line {}", i + 1);
    const auto document = JsonPlace::parse(lines[i]);
    if (!document) return std::unexpected(within(where, document.error()));
    auto part = read_document(name + " " + where, *document, lines[i]);
    if (!part) return std::unexpected(within(where, std::move(part).error()));
    if (all.measured.size() == kMostPoints)
      return fail(ErrorKind::invalid, "more than {} results", kMostPoints);
    all.tool = part->tool;
    all.detail = part->detail;
    std::ranges::move(part->measured, std::back_inserter(all.measured));
    std::ranges::move(part->notes, std::back_inserter(all.notes));
  }
  return all;
}

Result<BenchmarkFile> read_json(const std::string& name, std::string_view text) {
  const std::string_view first_line = text.substr(0, text.find('\n'));
  if (first_line.size() < text.size() && trim(first_line).ends_with('}'))
    if (const auto first = JsonPlace::parse(first_line);
        first && !trim(text.substr(first_line.size())).empty())
      return read_lines(name, text, *first);
  BERTH_ASSIGN(const JsonPlace document, JsonPlace::parse(text));
  if (is_aiperf_request(document)) return read_lines(name, text, document);
  return read_document(name, document, text);
}

Result<BenchmarkFile> read_table(const std::string& name, std::string_view text) {
  BERTH_ASSIGN(const auto rows, read_csv(text));
  if (!rows.empty())
    for (const auto& format : kCsvFormats)
      if (format.is(rows)) return format.read(name, rows);
  return unknown(text);
}

}  // namespace

Result<BenchmarkFile> read_benchmark_file(const std::string& name, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  text = trim(text);
  while (text.starts_with('\n') || text.starts_with('\r')) text = trim(text.substr(1));
  const bool json = text.starts_with('{') || text.starts_with('[');
  auto read = json ? read_json(name, text) : read_table(name, text);
  if (!read) return std::unexpected(within(name, std::move(read).error()));
  return read;
}

Result<double> number_within(const JsonPlace& at, double least, double most) {
  BERTH_ASSIGN(const double number, at.number());
  if (!(number >= least && number <= most))
    return at.error(fmt::format("wanted a number from {} to {}, found {}", least, most, number));
  return number;
}

}  // namespace berth::fleet
