// The charts of a report. Colours are classes, which the page's style gives a light and a dark
// form.
#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/report_page.h"

namespace berth::cli {
namespace {

constexpr double kWidth = 720, kHeight = 260;
constexpr double kLeft = 64, kRight = 12, kTop = 10, kBottom = 36;
constexpr double kRow = 22, kNameWidth = 190;
constexpr std::size_t kColours = 5;  // of lines, in the style
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

/// From values to places along an axis.
struct PlotScale {
  bool is_log = false;
  double least = 0, most = 1;  // of the logarithm, where it is one
  double from = 0, to = 1;

  double scaled(double value) const { return is_log ? std::log10(value) : value; }
  double place(double value) const {
    return from + (scaled(value) - least) / (most - least) * (to - from);
  }
};

/// Ticks at 1, 2 or 5 times a power of ten, or at powers of ten.
std::vector<double> ticks_of(const PlotScale& scale) {
  constexpr double kWanted = 5;
  const double span = scale.most - scale.least;
  const double power = std::pow(10, std::floor(std::log10(span / kWanted)));
  double step = power;
  for (const double times : {2.0, 5.0, 10.0})
    if (span / step > kWanted) step = power * times;
  if (scale.is_log) step = std::max(1.0, std::round(step));
  std::vector<double> ticks;
  for (double at = std::ceil(scale.least / step) * step; at <= scale.most + step * 1e-9; at += step)
    ticks.push_back(scale.is_log ? std::pow(10, at) : std::abs(at) < step * 1e-9 ? 0 : at);
  return ticks;
}

PlotScale scale_of(std::vector<double> values, const ReportAxis& axis, double from, double to) {
  std::erase_if(values,
                [&](double value) { return !std::isfinite(value) || (axis.is_log && value <= 0); });
  PlotScale scale{.is_log = axis.is_log, .from = from, .to = to};
  if (values.empty()) return scale;
  const auto [least, most] = std::ranges::minmax(values);
  scale.least = scale.scaled(least);
  scale.most = scale.scaled(most);
  const double room = std::max((scale.most - scale.least) * 0.04, std::abs(scale.most) * 1e-6);
  scale.least -= room > 0 ? room : 0.5;
  scale.most += room > 0 ? room : 0.5;
  return scale;
}

bool drawn(const ReportPoint& point, const ReportPlot& plot) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!plot.x.is_log || point.x > 0) &&
         (!plot.y.is_log || point.y > 0);
}

std::string axes(const ReportPlot& plot, const PlotScale& x, const PlotScale& y) {
  std::string svg;
  for (const double tick : ticks_of(y)) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
        kLeft, kWidth - kRight, y.place(tick));
    svg += text_at(kLeft - 6, y.place(tick) + 4, "end", fmt::format("{:.4g}", tick));
  }
  for (const double tick : ticks_of(x))
    svg += text_at(x.place(tick), kHeight - kBottom + 16, "middle", fmt::format("{:.4g}", tick));
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 4, "middle", plot.x.name);
  svg += fmt::format(
      "<text class=\"axis\" transform=\"translate(12 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, html_escape(plot.y.name));
  return svg;
}

std::string line_svg(const ReportPlot& plot, const ReportPlot::Line& line, std::size_t index,
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

std::string legend(const std::vector<ReportPlot::Line>& lines) {
  std::string html;
  for (std::size_t i = 0; i < lines.size() && lines.size() > 1; ++i)
    html += fmt::format("<span class=\"k{}\">{}</span> ", i % kColours, html_escape(lines[i].name));
  return html.empty() ? "" : "<p class=\"legend\">" + html + "</p>\n";
}

}  // namespace

std::string svg_of(const ReportPlot& plot) {
  std::vector<double> xs, ys;
  const auto see = [&](const ReportPoint& point) {
    if (!drawn(point, plot)) return;
    xs.push_back(point.x);
    ys.push_back(point.y);
  };
  for (const auto& point : plot.points) see(point);
  for (const auto& line : plot.lines)
    for (const auto& point : line.points) see(point);
  if (xs.empty()) return "";
  const PlotScale x = scale_of(xs, plot.x, kLeft, kWidth - kRight);
  const PlotScale y = scale_of(ys, plot.y, kHeight - kBottom, kTop);
  std::string svg = begin_svg(plot.title, kHeight) + axes(plot, x, y);
  const std::size_t step = plot.points.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < plot.points.size(); i += step)
    if (drawn(plot.points[i], plot))
      svg += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n",
                         x.place(plot.points[i].x), y.place(plot.points[i].y));
  for (std::size_t i = 0; i < plot.lines.size(); ++i) svg += line_svg(plot, plot.lines[i], i, x, y);
  return svg + end_svg(plot.title) + legend(plot.lines);
}

std::string svg_of(const ReportBars& bars) {
  if (bars.bars.empty()) return "";
  const double room = kWidth - kNameWidth - 110;
  std::string svg = begin_svg(bars.title, kRow * static_cast<double>(bars.bars.size()) + 4);
  for (std::size_t i = 0; i < bars.bars.size(); ++i) {
    const auto& [name, part, text] = bars.bars[i];
    const double top = kRow * static_cast<double>(i) + 4;
    const double width = room * std::clamp(std::isfinite(part) ? part : 0, 0.0, 1.0);
    svg += text_at(kNameWidth - 8, top + 13, "end", clip(name, 30));
    svg += fmt::format(
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\"/>\n",
        kNameWidth, top, std::max(width, 1.0));
    svg += text_at(kNameWidth + width + 6, top + 13, "start", text);
  }
  return svg + end_svg(bars.title);
}

std::string svg_of(const ReportTimeline& timeline) {
  if (timeline.spans.empty()) return "";
  double until = 0;
  for (const auto& span : timeline.spans) until = std::max(until, span.to_s);
  const double height = kRow * static_cast<double>(timeline.rows.size()) + 24;
  const PlotScale x{.most = std::max(until, 1e-3), .from = kNameWidth, .to = kWidth - kRight};
  std::string svg = begin_svg(timeline.title, height);
  for (const double tick : ticks_of(x)) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\"/>\n",
        x.place(tick), height - 18);
    svg += text_at(
        x.place(tick), height - 4, "middle",
        format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(tick))));
  }
  for (std::size_t row = 0; row < timeline.rows.size(); ++row)
    svg += text_at(kNameWidth - 8, kRow * static_cast<double>(row) + 15, "end",
                   clip(timeline.rows[row], 30));
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

}  // namespace berth::cli
