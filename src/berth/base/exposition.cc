#include "berth/base/exposition.h"

#include <algorithm>
#include <numeric>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {

std::string escaped_label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void Exposition::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void Exposition::line(std::string_view suffix, const Labels& labels, double value) {
  text_ += fmt::format("{}{}", name_, suffix);
  for (std::size_t i = 0; i < labels.size(); ++i)
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                         escaped_label(labels[i].second));
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", format_number(value));
}

void Exposition::add(const Labels& labels, double value) {
  line("", labels, value);
}

void Exposition::add(const Labels& labels, std::span<const double> bounds,
                     std::span<const double> values) {
  const auto bucket = [&](const std::string& bound, std::ptrdiff_t count) {
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    line("_bucket", with_bound, static_cast<double>(count));
  };
  for (const double bound : bounds)
    bucket(format_number(bound),
           std::ranges::count_if(values, [&](double value) { return value <= bound; }));
  bucket("+Inf", std::ssize(values));
  line("_sum", labels, std::accumulate(values.begin(), values.end(), 0.0));
  line("_count", labels, static_cast<double>(values.size()));
}

}  // namespace berth
