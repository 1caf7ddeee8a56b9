// Tables of single iterations: Berth's own, and those of splitwise's performance model (Patel et
// al., Splitwise, ISCA 2024): its prefill is one iteration of whole prompts, its token time the
// mean over the decoding of a batch.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr double kMostRowTokens = 1e9;
constexpr double kChunkTokens = 8192;  // what an engine takes in one iteration

std::string head_text(const CsvRow& head) {
  return clip(join(head.cells, ","));
}

template <std::size_t kCount>
bool has_columns(std::span<const CsvRow> rows, const std::array<std::string_view, kCount>& names) {
  const CsvTable table(rows);
  return std::ranges::all_of(names, [&](auto name) { return table.column(name).has_value(); });
}

/// Rows of one model on one accelerator under its names.
Measured& set_of(std::vector<Measured>& all, const std::string& model,
                 const std::string& accelerator, int accelerators) {
  const auto found = std::ranges::find_if(all, [&](const Measured& each) {
    return each.model == model && each.accelerator == accelerator;
  });
  if (found != all.end()) return *found;
  all.push_back({model, accelerator, accelerators, {}, {}});
  return all.back();
}

constexpr std::array<std::string_view, 4> kRowColumns{"batch", "prefill_tokens", "context_tokens",
                                                      "ms"};
constexpr std::array<std::string_view, 3> kSplitwiseColumns{"prompt_size", "batch_size",
                                                            "token_size"};

}  // namespace

bool is_rows_csv(std::span<const CsvRow> rows) {
  const CsvTable table(rows);
  return table.column(kRowColumns[0]) && table.column(kRowColumns[3]);
}

Result<BenchmarkFile> read_rows_csv(const std::string&, std::span<const CsvRow> rows) {
  const CsvTable table(rows);
  BERTH_TRY(table.check());
  std::array<std::size_t, kRowColumns.size()> at{};
  for (std::size_t c = 0; c < at.size(); ++c) {
    const auto column = table.column(kRowColumns[c]);
    if (!column)
      return rows.front().error(0, fmt::format("expected a column '{}', got {}", kRowColumns[c],
                                               head_text(rows.front())));
    at[c] = *column;
  }
  const auto model = table.column("model"), accelerator = table.column("accelerator");
  BenchmarkFile file{.tool = "rows", .detail = Detail::requests};
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::string names[2];
    if (model) names[0] = table.text(i, *model);
    if (accelerator) names[1] = table.text(i, *accelerator);
    Iteration iteration;
    BERTH_ASSIGN(iteration.decoding, table.number(i, at[0], 0, kMostRowTokens));
    BERTH_ASSIGN(iteration.prefill_tokens, table.number(i, at[1], 0, kMostRowTokens));
    BERTH_ASSIGN(iteration.context_tokens, table.number(i, at[2], 0, kMostRowTokens));
    BERTH_ASSIGN(iteration.ms, table.number(i, at[3], 1e-6, kMostMs));
    set_of(file.measured, names[0], names[1], 0).iterations.push_back(iteration);
    if (file.measured.size() > kMostPoints)
      return table.row(i).error(0, fmt::format("more than {} models", kMostPoints));
  }
  return file;
}

bool is_splitwise_csv(std::span<const CsvRow> rows) {
  return has_columns(rows, kSplitwiseColumns);
}

Result<BenchmarkFile> read_splitwise_csv(const std::string& name, std::span<const CsvRow> rows) {
  const CsvTable table(rows);
  BERTH_TRY(table.check());
  const auto column = [&](std::initializer_list<std::string_view> names) -> Result<std::size_t> {
    for (const auto each : names)
      if (const auto found = table.column(each)) return *found;
    return rows.front().error(
        0, fmt::format("expected a column '{}', got {}", *names.begin(), head_text(rows.front())));
  };
  BERTH_ASSIGN(const auto prompt, column({"prompt_size"}));
  BERTH_ASSIGN(const auto batch, column({"batch_size"}));
  BERTH_ASSIGN(const auto token, column({"token_size"}));
  BERTH_ASSIGN(const auto prompt_ms, column({"prompt_time_ms", "prompt_time"}));
  BERTH_ASSIGN(const auto token_ms, column({"token_time_ms", "token_time"}));
  const auto model = table.column("model"), hardware = table.column("hardware"),
             parallel = table.column("tensor_parallel");
  BenchmarkFile file{.tool = "rows", .detail = Detail::requests};
  std::size_t too_long = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::string names[2];
    double tp = 1;
    if (model) names[0] = table.text(i, *model);
    if (hardware) names[1] = table.text(i, *hardware);
    if (parallel) {
      BERTH_ASSIGN(tp, table.number(i, *parallel, 1, 1024));
    }
    if (tp > 1) names[1] += fmt::format("-tp{}", tp);
    BERTH_ASSIGN(const double n, table.number(i, prompt, 0, kMostRowTokens));
    BERTH_ASSIGN(const double b, table.number(i, batch, 1, kMostRowTokens));
    BERTH_ASSIGN(const double m, table.number(i, token, 0, kMostRowTokens));
    BERTH_ASSIGN(const double prefill_ms, table.number(i, prompt_ms, 0, kMostMs));
    BERTH_ASSIGN(const double decode_ms, table.number(i, token_ms, 0, kMostMs));
    auto& iterations = set_of(file.measured, names[0], names[1], static_cast<int>(tp)).iterations;
    if (file.measured.size() > kMostPoints)
      return table.row(i).error(0, fmt::format("more than {} models", kMostPoints));
    if (n * b > kChunkTokens)
      ++too_long;
    else if (prefill_ms > 0)
      iterations.push_back({0, n * b, n * b, prefill_ms});
    if (decode_ms > 0) iterations.push_back({b, 0, b * (n + m / 2), decode_ms});
  }
  if (too_long > 0)
    file.notes.push_back(
        fmt::format("{}: left out {} prefills of more than {} tokens, which "
                    "engines take in chunks",
                    name, too_long, kChunkTokens));
  return file;
}

}  // namespace berth::fleet
