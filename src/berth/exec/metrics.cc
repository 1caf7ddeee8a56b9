#include "berth/exec/metrics.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::exec {
namespace {

constexpr std::string_view kMark = "::berth ";
constexpr std::string_view kAuptimizersMark = "#Auptimizer:";
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kLongestName = 128;

/// "0.93,12"; also a list as Python prints it. False: something in it is no finite number.
bool read_scores(std::string_view text, std::vector<std::pair<std::string, double>>& metrics) {
  text = trim(text);
  if (text.size() > 1 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  std::size_t count = 0;
  for (const auto part : split(text, ',')) {
    const auto value = parse_number(trim(part));
    if (!value) return false;
    metrics.emplace_back(++count == 1 ? "score" : fmt::format("score_{}", count), *value);
  }
  return true;
}

}  // namespace

bool valid_metric_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./@").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, allowed);
}

void MetricReader::read_line(std::string_view line, Reading& reading) const {
  const auto malformed = [&](std::string_view wanted, std::string_view found) {
    if (!reading.unreadable.empty()) return;
    reading.unreadable = clip(line);
    reading.because = fmt::format("wanted {}, found '{}'", wanted, clip(found));
  };
  constexpr std::string_view kNumber = "a finite number";
  if (line.starts_with(kAuptimizersMark)) {
    const auto scores = line.substr(kAuptimizersMark.size());
    if (!read_scores(scores, reading.metrics)) malformed("finite numbers", trim(scores));
    return;
  }
  if (stream_ != Stream::out || !line.starts_with(kMark)) return;
  for (const auto word : words(line.substr(kMark.size()))) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || !valid_metric_name(word.substr(0, equals))) {
      malformed("NAME=NUMBER", word);
      continue;
    }
    const auto value = parse_number(word.substr(equals + 1));
    if (value)
      reading.metrics.emplace_back(word.substr(0, equals), *value);
    else
      malformed(kNumber, word.substr(equals + 1));
  }
}

MetricReader::Reading MetricReader::feed(std::string_view bytes) {
  Reading reading;
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const auto piece = bytes.substr(0, newline);
    const bool room = partial_.size() + piece.size() <= kLongestLine;
    if (room && !overlong_)
      partial_ += piece;
    else
      overlong_ = true;
    if (newline == std::string_view::npos) break;
    if (!overlong_) read_line(partial_, reading);
    partial_.clear();
    overlong_ = false;
    bytes.remove_prefix(newline + 1);
  }
  return reading;
}

MetricReader::Reading MetricReader::finish() {
  Reading reading;
  if (!overlong_) read_line(partial_, reading);
  partial_.clear();
  overlong_ = false;
  return reading;
}

}  // namespace berth::exec
