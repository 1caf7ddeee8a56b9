// A report as data, and its two forms: one page of HTML without scripts or network access that also
// prints well, and Markdown for a pull request. Everything in it is plain text until it is written,
// so output of a task or a file's name cannot become markup.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "berth/render/table.h"

namespace berth::render {

struct Text {
  std::string text;
};
/// Preformatted text: a command, the last lines that a task printed.
struct Verbatim {
  std::string text;
};

/// One axis of a chart, labelled at both ends. Markdown has no charts: their numbers must be in a
/// table or text too.
struct Axis {
  /// The end whose outliers are drawn at the edge, so that they do not squeeze the other points. A
  /// second chart, in a <details> element, has all values on the axis.
  enum class Cut : std::uint8_t { none, low, high };
  std::string name;
  bool is_log = false;
  Cut cut = Cut::none;
};
struct Point {
  double x = 0, y = 0;
};
/// Points, and lines through points; each line has its name.
struct Plot {
  struct Line {
    std::string name;
    std::vector<Point> points;
    bool steps = false;  // drawn as a step function
  };
  std::string title;
  Axis x, y;
  std::vector<Point> points{};
  std::vector<Line> lines{};
};
/// Bars from 0 to 1, each followed by its text.
struct Bars {
  struct Bar {
    std::string name;
    double part = 0;
    std::string text;
  };
  std::string title;
  std::vector<Bar> bars{};
};
/// Bars in rows over time, in seconds since the start of the first.
struct Timeline {
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

using Part = std::variant<Text, Verbatim, Table, Plot, Bars, Timeline>;
struct Section {
  std::string heading;
  std::vector<Part> parts;
};
struct Document {
  std::string title{}, subtitle{};
  std::vector<Section> sections{};
  std::string footer{};
};

std::string to_html(const Document& page);
std::string to_markdown(const Document& page);

/// The charts as SVG; "" if there is nothing to draw.
std::string to_svg(const Plot& plot);
std::string to_svg(const Bars& bars);
std::string to_svg(const Timeline& timeline);

}  // namespace berth::render
