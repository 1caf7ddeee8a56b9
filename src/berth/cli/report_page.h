// A report as data, and how it is written: as one page of HTML that needs no network, no script and
// prints well, or as Markdown for a pull request. Everything in it is plain text until it is
// written, so nothing that a task printed or a file is called can become markup.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace berth::cli {

struct ReportText {
  std::string text;
};
/// What stands as it is: a command, the last lines that a task printed.
struct ReportVerbatim {
  std::string text;
};
/// Columns of numbers are aligned to the right.
struct ReportTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// One axis of a chart. Markdown has no charts: what they show has to stand in a table or text too.
struct ReportAxis {
  std::string name;
  bool is_log = false;
};
struct ReportPoint {
  double x = 0, y = 0;
};
/// Points, and lines through points; each line has its name.
struct ReportPlot {
  struct Line {
    std::string name;
    std::vector<ReportPoint> points;
    bool steps = false;  // it stays at a height until the next point
  };
  std::string title;
  ReportAxis x, y;
  std::vector<ReportPoint> points{};
  std::vector<Line> lines{};
};
/// Bars from 0 to 1, each with what is written behind it.
struct ReportBars {
  struct Bar {
    std::string name;
    double part = 0;
    std::string text;
  };
  std::string title;
  std::vector<Bar> bars;
};
/// What went on when: bars in rows, in seconds since the first began.
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

/// The text with what would be markup in HTML, or between quotes of an attribute, replaced.
std::string html_escape(std::string_view text);
/// The charts as SVG; "" where there is nothing to draw.
std::string svg_of(const ReportPlot& plot);
std::string svg_of(const ReportBars& bars);
std::string svg_of(const ReportTimeline& timeline);

}  // namespace berth::cli
