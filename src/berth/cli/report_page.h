// A report as data, and its two forms: one page of HTML without scripts or network access that also
// prints well, and Markdown for a pull request. Everything in it is plain text until it is written,
// so output of a task or a file's name cannot become markup.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace berth::cli {

struct ReportText {
  std::string text;
};
/// Preformatted text: a command, the last lines that a task printed.
struct ReportVerbatim {
  std::string text;
};
/// Columns of numbers are aligned to the right.
struct ReportTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// One axis of a chart, labelled at both ends. Markdown has no charts: their numbers must be in a
/// table or text too.
struct ReportAxis {
  /// The end whose outliers are drawn at the edge, so that they do not squeeze the other points. A
  /// second chart, in a <details> element, has all values on the axis.
  enum class Cut : std::uint8_t { none, low, high };
  std::string name;
  bool is_log = false;
  Cut cut = Cut::none;
};
struct ReportPoint {
  double x = 0, y = 0;
};
/// Points, and lines through points; each line has its name.
struct ReportPlot {
  struct Line {
    std::string name;
    std::vector<ReportPoint> points;
    bool steps = false;  // drawn as a step function
  };
  std::string title;
  ReportAxis x, y;
  std::vector<ReportPoint> points{};
  std::vector<Line> lines{};
};
/// Bars from 0 to 1, each followed by its text.
struct ReportBars {
  struct Bar {
    std::string name;
    double part = 0;
    std::string text;
  };
  std::string title;
  std::vector<Bar> bars;
};
/// Bars in rows over time, in seconds since the start of the first.
struct ReportTimeline {
  enum class Kind : std::uint8_t { done, failed, other };
  struct Span {
    std::size_t row = 0;
    double from_s = 0, to_s = 0;
    Kind kind = Kind::done;
    std::string name;
  };
  std::string title;
  std::vector<std::string> rows;
  std::vector<Span> spans;
};

using ReportPart =
    std::variant<ReportText, ReportVerbatim, ReportTable, ReportPlot, ReportBars, ReportTimeline>;
struct ReportSection {
  std::string heading;
  std::vector<ReportPart> parts;
};
struct ReportPage {
  std::string title{}, subtitle{};
  std::vector<ReportSection> sections{};
  std::string footer{};
};

std::string to_html(const ReportPage& page);
std::string to_markdown(const ReportPage& page);

/// Escapes text for HTML, also for quoted attributes.
std::string html_escape(std::string_view text);
/// The charts as SVG; "" if there is nothing to draw.
std::string svg_of(const ReportPlot& plot);
std::string svg_of(const ReportBars& bars);
std::string svg_of(const ReportTimeline& timeline);

}  // namespace berth::cli
