#include "berth/exec/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::exec {
namespace {

constexpr std::string_view kMark = "::berth";
constexpr std::string_view kAuptimizersMark = "#Auptimizer:";
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kLongestName = 128;
constexpr std::string_view kBlanks = " \t\b\v\f";
constexpr char kEscape = '\x1b';

bool is_between(char c, char first, char last) {
  return c >= first && c <= last;
}

char to_lower(char c) {
  return is_between(c, 'A', 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The position behind the escape sequence at `at` (ECMA-48); what is unfinished ends the text.
std::size_t skip_escape(std::string_view text, std::size_t at) {
  const auto skip = [&](char first, char last) {
    while (at < text.size() && is_between(text[at], first, last)) ++at;
  };
  if (++at == text.size()) return at;
  const char kind = text[at++];
  if (kind == '[') {
    skip('0', '?');
    skip(' ', '/');
    return std::min(at + 1, text.size());
  }
  if (std::string_view("]PX^_").find(kind) == std::string_view::npos) {
    if (!is_between(kind, ' ', '/')) return at;
    skip(' ', '/');
    return std::min(at + 1, text.size());
  }
  for (; at < text.size(); ++at) {  // a string, such as the title of the window
    if (text[at] == '\a') return at + 1;
    if (text[at] == kEscape) return std::min(at + 2, text.size());
  }
  return at;
}

std::string without_escapes(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();)
    if (line[at] == kEscape)
      at = skip_escape(line, at);
    else
      text += line[at++];
  return text;
}

/// A number, or a value that is not finite as programs print it: nan, inf, -Infinity, 1e999.
std::optional<double> read_value(std::string_view text) {
  if (const auto value = parse_number(text)) return *value;
  std::string word;
  for (const char c : text) word += to_lower(c);
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.erase(0, 1);
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const char* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, value);
  const bool out_of_range = error == std::errc::result_out_of_range && end == last;
  if (out_of_range && word.find("e-") != std::string::npos) return 0;
  if (out_of_range || word == "inf" || word == "infinity") return negative ? -HUGE_VAL : HUGE_VAL;
  return std::nullopt;
}

/// What one report says.
struct Report {
  std::vector<std::pair<std::string, double>> metrics;
  std::string because;  // what was expected and found; "" where all of it could be read
  std::string missing;

  void add(std::string name, double value, std::string_view text) {
    if (!std::isfinite(value) && missing.empty()) missing = missing_note(name, text);
    metrics.emplace_back(std::move(name), value);
  }
  void expect(std::string_view what, std::string_view found) {
    if (because.empty()) because = fmt::format("expected {}, got '{}'", what, clip(found));
  }
};

/// "acc=0.9 epoch=3". A word without "=" may be the first part of a name with a blank in it, so the
/// metric after it is not recorded: its name could be cut.
Report read_pairs(std::string_view text) {
  Report report;
  bool may_be_cut = false;
  for (const auto word : words(text)) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    if (equals == std::string_view::npos || !valid_metric_name(name) || may_be_cut) {
      report.expect("NAME=NUMBER", word);
      may_be_cut = equals == std::string_view::npos;
      continue;
    }
    const auto number = word.substr(equals + 1);
    if (const auto value = read_value(number))
      report.add(std::string(name), *value, number);
    else
      report.expect("a number", number);
  }
  return report;
}

/// "0.93,12"; also a list as Python prints it.
Report read_scores(std::string_view text) {
  Report report;
  text = trim(text);
  const std::string_view all = text;
  if (text.size() > 1 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  std::size_t count = 0;
  for (const auto part : split(text, ',')) {
    const auto value = read_value(trim(part));
    if (!value) {
      report.expect("numbers", all);
      break;
    }
    report.add(++count == 1 ? "score" : fmt::format("score_{}", count), *value, trim(part));
  }
  return report;
}

/// The report that begins at the mark; nullopt: there is no mark.
std::optional<Report> read_report(std::string_view text, Stream stream) {
  if (text.starts_with(kAuptimizersMark)) return read_scores(text.substr(kAuptimizersMark.size()));
  if (stream != Stream::out || !text.starts_with(kMark)) return std::nullopt;
  text.remove_prefix(kMark.size());
  if (!text.starts_with(' ') && !text.starts_with('\t')) return std::nullopt;
  return read_pairs(text);
}

/// Whether a person would take the line for a report: it has the mark in any case, and a number.
bool looks_like_report(std::string_view line) {
  std::string text;
  for (const char c : line) text += to_lower(c);
  const auto mark = std::min(text.find(":berth"), text.find("#auptimizer"));
  return mark != std::string::npos && text.find_first_of("0123456789", mark) != std::string::npos;
}

}  // namespace

std::string missing_note(std::string_view name, std::string_view text) {
  return fmt::format("{}: {} is not a finite number, and was recorded as missing", clip(name),
                     clip(text));
}

std::string_view non_finite_text(double value) {
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

bool valid_metric_name(std::string_view name) {
  const auto allowed = [](char c) {
    return is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || is_between(c, '0', '9') ||
           std::string_view("_-./@").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, allowed);
}

void MetricNotes::take(const MetricReader::Reading& reading) {
  has_metrics_ = has_metrics_ || !reading.metrics.empty();
  const auto keep_first = [](std::string& kept, const std::string& text) {
    if (kept.empty()) kept = text;
  };
  if (!reading.unreadable.empty())
    keep_first(unreadable_, fmt::format("a metric line could not be read: {}: {}",
                                        reading.unreadable, reading.because));
  keep_first(missing_, reading.missing);
  keep_first(lookalike_, reading.lookalike);
}

std::string MetricNotes::text() const {
  std::vector<std::string> notes;
  if (!unreadable_.empty()) notes.push_back(unreadable_);
  if (!missing_.empty()) notes.push_back(missing_);
  if (!has_metrics_ && notes.empty() && !lookalike_.empty()) notes.push_back(lookalike_);
  return join(notes, "; ");
}

void MetricReader::read_line(Reading& reading) const {
  const std::string line = without_escapes(partial_);
  const std::string_view text = line;
  const auto begin = std::min(text.find_first_not_of(kBlanks), text.size());
  std::optional<Report> report;
  if (!cut_) report = read_report(text.substr(begin), stream_);
  for (const auto mark : {kMark, kAuptimizersMark}) {  // no report has a mark within it
    const auto at = text.rfind(mark);
    if (report || at == std::string_view::npos) continue;
    report = read_report(text.substr(at), stream_);
    if (report && (!report->because.empty() || report->metrics.empty())) report.reset();
  }
  if (report) {
    std::ranges::move(report->metrics, std::back_inserter(reading.metrics));
    if (reading.missing.empty()) reading.missing = std::move(report->missing);
    if (report->because.empty() || !reading.unreadable.empty()) return;
    reading.unreadable = clip(text.substr(begin));
    reading.because = std::move(report->because);
  } else if (reading.lookalike.empty() && looks_like_report(text)) {
    reading.lookalike = fmt::format(
        "this line looks like a report: '{}'; {}", clip(text.substr(begin)),
        stream_ == Stream::err
            ? "reports are read from standard output"
            : "expected ::berth NAME=NUMBER … at its beginning, or as all that follows other text");
  }
}

/// The kept text begins with a mark.
void MetricReader::note_overlong(Reading& reading) const {
  const std::string_view text = partial_;
  const bool is_report = !text.starts_with(kMark) || text.substr(kMark.size()).starts_with(' ') ||
                         text.substr(kMark.size()).starts_with('\t');
  if (!is_report || !reading.unreadable.empty()) return;
  reading.unreadable = clip(text);
  reading.because = "expected a line of at most 64 KiB, got a longer one, which was not read";
}

/// Keeps what can still be a report: everything from a mark on, or what may be the beginning of
/// one.
void MetricReader::add(std::string_view piece) {
  if (overlong_) return;
  partial_ += piece;
  if (partial_.size() <= kLongestLine) return;
  auto mark = partial_.rfind(kAuptimizersMark);
  const auto own = stream_ == Stream::out ? partial_.rfind(kMark) : std::string::npos;
  if (mark == std::string::npos || (own != std::string::npos && own > mark)) mark = own;
  const auto begin = mark != std::string::npos ? mark : partial_.size() - kAuptimizersMark.size();
  partial_.erase(0, begin);
  cut_ = cut_ || begin > 0;
  overlong_ = partial_.size() > kLongestLine;
}

void MetricReader::end_line(Reading& reading) {
  if (!overlong_)
    read_line(reading);
  else
    note_overlong(reading);
  partial_.clear();
  cut_ = overlong_ = false;
}

MetricReader::Reading MetricReader::feed(std::string_view bytes) {
  Reading reading;
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of("\r\n");
    add(bytes.substr(0, end));
    if (end == std::string_view::npos) break;
    end_line(reading);
    bytes.remove_prefix(end + 1);
  }
  return reading;
}

MetricReader::Reading MetricReader::finish() {
  Reading reading;
  end_line(reading);
  return reading;
}

}  // namespace berth::exec
