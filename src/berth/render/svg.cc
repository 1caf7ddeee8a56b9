// The charts of a report. Colours are classes; the page's style has a light and a dark form of
// each.
#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/render/document.h"
#include "berth/render/escape.h"

namespace berth::render {
namespace {

constexpr double kWidth = 720, kHeight = 260;
constexpr double kLeft = 76, kRight = 12, kTop = 10, kBottom = 36;
constexpr double kRow = 22, kNameWidth = 190;
constexpr std::size_t kNameLetters = 27;  // of a wide font fit into kNameWidth
constexpr double kEdge = 16;              // room for outliers beyond the end of an axis
constexpr double kLogSpan = 100;          // an axis whose ends differ by less is not logarithmic
constexpr std::size_t kColours = 5;       // of lines, in the style
constexpr std::size_t kMostPoints = 5000;

std::string begin_svg(const std::string& title, double height) {
  return fmt::format("<figure><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                     kWidth, height, html_escape(title));
}

std::string end_svg(const std::string& title) {
  return fmt::format("</svg><figcaption>{}</figcaption></figure>\n", html_escape(title));
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html_escape(text));
}

/// From values to places along an axis. Outliers are placed beyond its ends.
struct PlotScale {
  bool is_log = false;
  double low = 0, high = 1;  // the values at the ends
  double from = 0, to = 1;   // the places of the ends
  std::size_t below = 0, above = 0;

  double scaled(double value) const { return is_log ? std::log10(value) : value; }
  double span() const { return scaled(high) - scaled(low); }
  int side(double value) const { return value > high ? 1 : value < low ? -1 : 0; }
  double place(double value) const {
    const double beyond = to > from ? kEdge - 5 : 5 - kEdge;
    if (side(value) != 0) return value > high ? to + beyond : from - beyond;
    if (!(span() > 0) || !std::isfinite(span())) return (from + to) / 2;
    return from + (scaled(value) - scaled(low)) / span() * (to - from);
  }
};

/// Ticks at 1, 2 or 5 times a power of ten, or at powers of ten; the ends are not among them.
std::vector<double> ticks_of(const PlotScale& scale) {
  constexpr double kCount = 5;
  std::vector<double> ticks;
  if (!(scale.span() > 0) || !std::isfinite(scale.span())) return ticks;
  const double power = std::pow(10, std::floor(std::log10(scale.span() / kCount)));
  double step = power;
  for (const double times : {2.0, 5.0, 10.0})
    if (scale.span() / step > kCount) step = power * times;
  if (scale.is_log) step = std::max(1.0, std::round(step));
  const double first = std::ceil(scale.scaled(scale.low) / step);
  for (int i = 0; i <= 2 * static_cast<int>(kCount); ++i) {
    const double value = scale.is_log ? std::pow(10, (first + i) * step) : (first + i) * step;
    if (value > scale.low && value < scale.high) ticks.push_back(value);
  }
  return ticks;
}

/// A number with as many digits as tell it from its neighbours on the axis.
std::string number_on(const PlotScale& scale, double value) {
  const double span = scale.high - scale.low;
  const double digits = span > 0 && value != 0 ? std::ceil(std::log10(std::abs(value) / span)) : 0;
  return fmt::format("{:.{}g}", value, static_cast<int>(std::clamp(digits + 2, 4.0, 6.0)));
}

/// The fences beyond which values are outliers: Tukey's outer fences, with wider quantiles where
/// the quartiles are equal.
std::pair<double, double> fences_of(const std::vector<double>& sorted, const PlotScale& scale) {
  constexpr double kReach = 3;
  const auto quantile = [&](double part) {
    return scale.scaled(sorted[static_cast<std::size_t>(
        std::lround(part * static_cast<double>(sorted.size() - 1)))]);
  };
  for (const double part : {0.25, 0.1}) {
    const double low = quantile(part), high = quantile(1 - part);
    if (high > low) return {low - kReach * (high - low), high + kReach * (high - low)};
  }
  return {-INFINITY, INFINITY};
}

/// Leaves out the outliers at one end of the axis if it becomes at least kGain times shorter.
void cut_outliers(PlotScale& scale, std::vector<double> values, Axis::Cut cut) {
  constexpr std::size_t kFewestValues = 8;
  constexpr double kGain = 2;
  if (cut == Axis::Cut::none || values.size() < kFewestValues) return;
  std::ranges::sort(values);
  const auto [low, high] = fences_of(values, scale);
  PlotScale inner = scale;
  std::size_t outliers = 0;
  for (const double value : values)
    outliers += cut == Axis::Cut::low ? scale.scaled(value) < low : scale.scaled(value) > high;
  if (outliers == 0) return;
  if (cut == Axis::Cut::low) {
    inner.low = values[outliers];
    inner.below = outliers;
  } else {
    inner.high = values[values.size() - 1 - outliers];
    inner.above = outliers;
  }
  if (scale.span() < kGain * inner.span()) return;
  inner.is_log = scale.is_log && inner.high >= kLogSpan * inner.low;
  scale = inner;
}

PlotScale scale_of(std::vector<double> values, const Axis& axis, double from, double to) {
  std::erase_if(values,
                [&](double value) { return !std::isfinite(value) || (axis.is_log && value <= 0); });
  PlotScale scale{.is_log = axis.is_log, .from = from, .to = to};
  if (values.empty()) return scale;
  const auto [least, most] = std::ranges::minmax(values);
  scale.low = least;
  scale.high = most;
  cut_outliers(scale, std::move(values), axis.cut);
  const double edge = to > from ? kEdge : -kEdge;
  if (scale.below > 0) scale.from += edge;
  if (scale.above > 0) scale.to -= edge;
  return scale;
}

bool drawn(const Point& point, const Plot& plot) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!plot.x.is_log || point.x > 0) &&
         (!plot.y.is_log || point.y > 0);
}

/// The ends and the ticks that leave the labels of the ends `room`.
std::vector<double> labels_of(const PlotScale& scale, double room) {
  std::vector<double> labels{scale.low};
  if (scale.high > scale.low) labels.push_back(scale.high);
  const std::size_t ends = labels.size();
  for (const double tick : ticks_of(scale))
    if (std::all_of(
            labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(ends),
            [&](double end) { return std::abs(scale.place(end) - scale.place(tick)) >= room; }))
      labels.push_back(tick);
  return labels;
}

std::string axes(const Plot& plot, const PlotScale& x, const PlotScale& y) {
  constexpr double kLine = 14, kColumn = 70;
  std::string svg;
  for (const double value : labels_of(y, kLine)) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
        kLeft, kWidth - kRight, y.place(value));
    svg += text_at(kLeft - 8, y.place(value) + 4, "end", number_on(y, value));
  }
  if (y.below > 0)
    svg += text_at(kLeft - 8, y.from + kEdge - 1, "end", fmt::format("▼ {}", y.below));
  if (y.above > 0) svg += text_at(kLeft - 8, y.to - kEdge + 9, "end", fmt::format("▲ {}", y.above));
  for (const double value : labels_of(x, kColumn))
    svg += text_at(x.place(value), kHeight - kBottom + 16,
                   x.low == x.high  ? "middle"
                   : value == x.low ? "start"
                   : value < x.high ? "middle"
                                    : "end",
                   number_on(x, value));
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 4, "middle", plot.x.name);
  svg += fmt::format(
      "<text class=\"axis\" transform=\"translate(12 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, html_escape(plot.y.name));
  return svg;
}

/// A point, or a triangle at the edge for an outlier.
std::string point_svg(const Point& point, const PlotScale& x, const PlotScale& y) {
  const double right = x.place(point.x), up = y.place(point.y);
  if (const int side = y.side(point.y); side != 0)
    return fmt::format("<path class=\"out\" d=\"M{:.1f} {:.1f}l-4 {}h8z\"/>\n", right,
                       up - 4 * side, 8 * side);
  return fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", right, up);
}

std::string line_svg(const Plot& plot, const Plot::Line& line, std::size_t index,
                     const PlotScale& x, const PlotScale& y) {
  std::string path;
  for (const auto& point : line.points) {
    if (!drawn(point, plot)) continue;
    const double right = x.place(point.x), up = y.place(point.y);
    if (line.steps && !path.empty()) path += fmt::format("H{:.1f}", right);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", right, up);
  }
  return fmt::format("<path class=\"line l{}\" d=\"{}\"><title>{}</title></path>\n",
                     index % kColours, path, html_escape(line.name));
}

std::string legend(const std::vector<Plot::Line>& lines) {
  std::string html;
  for (std::size_t i = 0; i < lines.size() && lines.size() > 1; ++i)
    html += fmt::format("<span class=\"k{}\">{}</span> ", i % kColours, html_escape(lines[i].name));
  return html.empty() ? "" : "<p class=\"legend\">Lines: " + html + "</p>\n";
}

/// One chart; `outliers`: set to a sentence about those that are drawn at the edge.
std::string figure(const Plot& plot, std::string& outliers) {
  std::vector<double> xs, ys;
  const auto see = [&](const Point& point) {
    if (!drawn(point, plot)) return;
    xs.push_back(point.x);
    ys.push_back(point.y);
  };
  for (const auto& point : plot.points) see(point);
  for (const auto& line : plot.lines)
    for (const auto& point : line.points) see(point);
  if (xs.empty()) return "";
  const PlotScale x = scale_of(xs, plot.x, kLeft, kWidth - kRight);
  PlotScale y = scale_of(std::move(ys), plot.y, kHeight - kBottom, kTop);
  // Lines repeat points, so only the points are counted.
  const auto on = [&](int side) {
    return static_cast<std::size_t>(std::ranges::count_if(plot.points, [&](const auto& point) {
      return drawn(point, plot) && y.side(point.y) == side;
    }));
  };
  y.below = on(-1);
  y.above = on(1);
  outliers.clear();
  if (y.below + y.above > 0)
    outliers = fmt::format("{} {} of {} are {} {} and drawn at the edge.", y.below > 0 ? "▼" : "▲",
                           y.below + y.above, plot.points.size(), y.below > 0 ? "below" : "above",
                           number_on(y, y.below > 0 ? y.low : y.high));
  std::string svg = begin_svg(plot.title, kHeight) + axes(plot, x, y);
  const std::size_t step = plot.points.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < plot.points.size(); i += step)
    if (drawn(plot.points[i], plot)) svg += point_svg(plot.points[i], x, y);
  for (std::size_t i = 0; i < plot.lines.size(); ++i) svg += line_svg(plot, plot.lines[i], i, x, y);
  return svg + end_svg(outliers.empty() ? plot.title : plot.title + ". " + outliers) +
         legend(plot.lines);
}

}  // namespace

std::string to_svg(const Plot& plot) {
  std::string outliers;
  std::string html = figure(plot, outliers);
  if (outliers.empty()) return html;
  Plot whole = plot;
  whole.y.cut = Axis::Cut::none;
  return html + "<details><summary>The same chart with all values on the axis</summary>\n" +
         figure(whole, outliers) + "</details>\n";
}

std::string to_svg(const Bars& bars) {
  if (bars.bars.empty()) return "";
  const double room = kWidth - kNameWidth - 110;
  std::string svg = begin_svg(bars.title, kRow * static_cast<double>(bars.bars.size()) + 4);
  for (std::size_t i = 0; i < bars.bars.size(); ++i) {
    const auto& [name, part, text] = bars.bars[i];
    const double top = kRow * static_cast<double>(i) + 4;
    const double width = room * std::clamp(std::isfinite(part) ? part : 0, 0.0, 1.0);
    svg += text_at(kNameWidth - 8, top + 13, "end", clip(name, kNameLetters));
    svg += fmt::format(
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\"/>\n",
        kNameWidth, top, std::max(width, 1.0));
    svg += text_at(kNameWidth + width + 6, top + 13, "start", text);
  }
  return svg + end_svg(bars.title);
}

std::string to_svg(const Timeline& timeline) {
  if (timeline.spans.empty()) return "";
  double until = 0;
  for (const auto& span : timeline.spans) until = std::max(until, span.to_s);
  const double height = kRow * static_cast<double>(timeline.rows.size()) + 24;
  const PlotScale x{.high = std::max(until, 1e-3), .from = kNameWidth, .to = kWidth - kRight};
  std::string svg = begin_svg(timeline.title, height);
  for (const double tick : labels_of(x, 80)) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\"/>\n",
        x.place(tick), height - 18);
    svg += text_at(
        x.place(tick), height - 4,
        tick <= x.low   ? "start"
        : tick < x.high ? "middle"
                        : "end",
        format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(tick))));
  }
  for (std::size_t row = 0; row < timeline.rows.size(); ++row)
    svg += text_at(kNameWidth - 8, kRow * static_cast<double>(row) + 15, "end",
                   clip(timeline.rows[row], kNameLetters));
  constexpr std::string_view kClasses[] = {"bar", "bar bad", "bar soft"};
  for (const auto& span : timeline.spans)
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"16\"><title>{}</title></rect>\n",
        kClasses[static_cast<std::size_t>(span.kind)], x.place(span.from_s),
        kRow * static_cast<double>(span.row) + 3,
        std::max(0.7, x.place(span.to_s) - x.place(span.from_s)), html_escape(span.name));
  return svg + end_svg(timeline.title);
}

}  // namespace berth::render
