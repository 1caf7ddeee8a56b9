#include "berth/fleet/measurements/benchmark_files.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kKnown =
    "a result of guidellm, vLLM's benchmark, sglang.bench_serving, aiperf, genai-perf, llmperf or "
    "trtllm-bench, or a table with the columns batch, prefill_tokens, context_tokens, ms";

struct JsonFormat {
  bool (*is)(const JsonPlace&);
  Result<BenchmarkFile> (*read)(const std::string&, const JsonPlace&);
};
constexpr JsonFormat kJsonFormats[] = {{is_guidellm, read_guidellm}, {is_vllm, read_vllm},
                                       {is_sglang, read_sglang},     {is_aiperf, read_aiperf},
                                       {is_llmperf, read_llmperf},   {is_trtllm, read_trtllm}};

struct CsvFormat {
  bool (*is)(std::span<const CsvRow>);
  Result<BenchmarkFile> (*read)(const std::string&, std::span<const CsvRow>);
};
constexpr CsvFormat kCsvFormats[] = {{is_rows_csv, read_rows_csv},
                                     {is_splitwise_csv, read_splitwise_csv},
                                     {is_aiperf_csv, read_aiperf_csv},
                                     {is_guidellm_csv, read_guidellm_csv}};

Result<BenchmarkFile> unknown(std::string_view name, std::string_view text) {
  constexpr std::size_t kShown = 40;
  return fail(ErrorKind::not_found, "{}: expected {}; got {}", name, kKnown,
              text.empty() ? "nothing" : fmt::format("'{}'", clip(text.substr(0, kShown), kShown)));
}

/// `place` is the document's, for errors; `name` what is told of.
Result<BenchmarkFile> read_document(std::string_view place, const std::string& name,
                                    const JsonPlace& document, std::string_view text) {
  const auto* const format =
      std::ranges::find_if(kJsonFormats, [&](const auto& each) { return each.is(document); });
  if (format == std::end(kJsonFormats)) return unknown(place, text);
  auto read = format->read(name, document);
  if (!read) return std::unexpected(within(place, std::move(read).error()));
  return read;
}

Result<JsonPlace> parse_at(std::string_view place, std::string_view text) {
  auto document = parse_tool_json(text);
  if (!document) return std::unexpected(within(place, std::move(document).error()));
  return document;
}

/// The lines of a file that has one JSON object a line: results that a tool has appended to each
/// other, or requests, which `first` is one of then.
Result<BenchmarkFile> read_lines(const std::string& name, std::string_view text,
                                 const JsonPlace& first) {
  const auto lines = split(text, '\n');
  if (lines.size() > kMostRows)
    return fail(ErrorKind::invalid, "{0}: expected at most {2} lines, got {1}", name, lines.size(),
                kMostRows);
  if (is_aiperf_request(first)) return read_aiperf_requests(name, lines);
  BenchmarkFile all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    if (all.measured.size() == kMostPoints)
      return fail(ErrorKind::invalid, "{}: more than {} results", line_place(name, i), kMostPoints);
    const std::string place = line_place(name, i);
    BERTH_ASSIGN(const auto document, parse_at(place, lines[i]));
    BERTH_ASSIGN(auto part,
                 read_document(place, fmt::format("{}:{}", name, i + 1), document, lines[i]));
    all.tool = part.tool;
    all.detail = part.detail;
    std::ranges::move(part.measured, std::back_inserter(all.measured));
    std::ranges::move(part.notes, std::back_inserter(all.notes));
  }
  return all;
}

Result<BenchmarkFile> read_json(const std::string& name, std::string_view text, std::size_t begin) {
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  const std::string_view first_line = text.substr(begin, end - begin);
  if (trim(first_line).ends_with('}') &&
      text.find_first_not_of(kBlanks, end) != std::string_view::npos)
    if (const auto first = parse_tool_json(first_line)) return read_lines(name, text, *first);
  BERTH_ASSIGN(const JsonPlace document, parse_at(name, text));
  if (is_aiperf_request(document)) return read_lines(name, text, document);
  return read_document(name, name, document, text.substr(begin));
}

Result<BenchmarkFile> read_table(const std::string& name, std::string_view text) {
  BERTH_ASSIGN(const auto rows, read_csv(name, text));
  if (!rows.empty())
    for (const auto& format : kCsvFormats)
      if (format.is(rows)) return format.read(name, rows);
  return unknown(name, trim(text));
}

}  // namespace

Result<BenchmarkFile> read_benchmark_file(const std::string& name, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t begin = text.find_first_not_of(kBlanks);
  const bool json = begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
  return json ? read_json(name, text, begin) : read_table(name, text);
}

Result<JsonPlace> parse_tool_json(std::string_view text) {
  auto strict = JsonPlace::parse(text);
  if (strict) return strict;
  struct Word {
    std::string_view found, json;
  };
  constexpr Word kWords[] = {{"NaN", "null"}, {"-Infinity", R"("-inf")"}, {"Infinity", R"("inf")"}};
  std::string replaced;
  bool in_text = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_text = !in_text;
    if (in_text && text[i] == '\\' && i + 1 < text.size()) replaced += text[i++];
    const auto* const word = std::ranges::find_if(
        kWords, [&](const Word& each) { return text.substr(i).starts_with(each.found); });
    if (in_text || word == std::end(kWords)) {
      replaced += text[i];
      continue;
    }
    any = true;
    replaced += word->json;
    i += word->found.size() - 1;
  }
  return any ? JsonPlace::parse(replaced) : strict;
}

double closed_loop_of(double mean_concurrency) {
  constexpr double kOne = 1.05;  // up to this a request is alone
  return mean_concurrency < kOne ? 1 : mean_concurrency;
}

BenchmarkFile file_of(std::string_view tool, Detail detail, OperatingPoint point,
                      std::string model) {
  BenchmarkFile file{.tool = tool, .detail = detail};
  Measured& measured = file.measured.emplace_back();
  measured.model = std::move(model);
  measured.points.push_back(std::move(point));
  return file;
}

std::int64_t whole_count(double count) {
  return static_cast<std::int64_t>(std::min<double>(count, kMostPointRequests));
}

std::string line_place(std::string_view name, std::size_t i) {
  return fmt::format("{}:{}:1", name, i + 1);
}

Result<double> number_within(const JsonPlace& at, double least, double most) {
  BERTH_ASSIGN(const double number, at.number());
  if (!(number >= least && number <= most))
    return at.error(fmt::format("expected a number from {} to {}, got {}", least, most, number));
  return number;
}

}  // namespace berth::fleet
