// The charts of a search: what was tried and how the best grew, what a parameter does, and how the
// leading trials learn.
#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/trials.h"
#include "berth/render/runs/trials.h"

namespace berth::render {
namespace {

constexpr std::size_t kColumns = 64, kRows = 8;
constexpr std::size_t kFewest = 3;
constexpr std::size_t kMany = 20;  // from here on the worst quarter does not stretch the scale
/// Positive scores that span more than this are drawn by their logarithm, in text and on a page.
constexpr double kWide = 1000, kWideOnPage = 100;

bool is_better(double score, double than, const experiment::Goal& goal) {
  return goal.maximize ? score > than : score < than;
}

/// Returns true if the point was the best when it was added. The last point of the line ends it.
bool was_best(const Plot& history, const Point& point) {
  const auto& line = history.lines.front().points;
  return std::ranges::binary_search(line.begin(), line.end() - 1, point.x, {}, &Point::x);
}

/// The range of scores that is drawn: it leaves out the worst, so that trials that diverged do not
/// flatten the others.
struct Scale {
  double bottom = 0, top = 0;
  bool logarithmic = false;

  double position(double score) const {  // 0 at the bottom, 1 at the top
    const double low = logarithmic ? std::log(bottom) : bottom;
    const double high = logarithmic ? std::log(top) : top;
    // Halved first: the difference of two finite numbers may be none.
    const double height = high / 2 - low / 2;
    const double at = (logarithmic ? std::log(std::max(score, bottom)) : score) / 2 - low / 2;
    return height > 0 ? std::clamp(at / height, 0.0, 1.0) : 0.5;
  }
};

Scale scale_of(std::vector<double> scores, bool maximize) {
  std::ranges::sort(scores);
  const std::size_t beyond = scores.size() < kMany ? 0 : scores.size() / 4;
  Scale scale{.bottom = maximize ? scores[beyond] : scores.front(),
              .top = maximize ? scores.back() : scores[scores.size() - 1 - beyond]};
  scale.logarithmic = scale.bottom > 0 && scale.top / scale.bottom > kWide;
  return scale;
}

/// Dots above an axis.
class Canvas {
 public:
  Canvas(std::size_t columns, const Scale& scale)
      : scale_(scale), rows_(kRows, std::string(columns, ' ')) {}

  std::size_t columns() const { return rows_.front().size(); }
  /// Draws a mark, or 'v' or '^' at the edge for a score below or above the scale. Nothing covers a
  /// star, and the marks of the edge cover nothing.
  void put(std::size_t column, double score, char mark) {
    const auto up = static_cast<std::size_t>(
        std::lround(scale_.position(score) * static_cast<double>(kRows - 1)));
    char& cell = rows_[kRows - 1 - up][std::min(column, columns() - 1)];
    const bool is_below = score<scale_.bottom, is_above = score> scale_.top;
    below_ += is_below ? 1 : 0;
    above_ += is_above ? 1 : 0;
    if (is_below || is_above)
      cell = cell == ' ' ? (is_below ? 'v' : '^') : cell;
    else if (cell != '*')
      cell = mark;
  }
  /// `below`: what stands under the axis.
  std::string text(const std::string& title, const std::string& below) const {
    const std::string top = fmt::format("{:.4g}", scale_.top);
    const std::string bottom = fmt::format("{:.4g}", scale_.bottom);
    const std::size_t margin = std::max(top.size(), bottom.size());
    std::string text = title;
    if (below_ > 0) text += fmt::format("; v {} below the scale", below_);
    if (above_ > 0) text += fmt::format("; ^ {} above the scale", above_);
    text += "\n";
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto& label = row == 0 ? top : row + 1 == kRows ? bottom : std::string();
      std::string line = fmt::format("{:>{}} |{}", label, margin, rows_[row]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    text += std::string(margin + 1, ' ') + '+' + std::string(columns(), '-') + "\n";
    if (!below.empty()) text += std::string(margin + 2, ' ') + below + "\n";
    return text;
  }

 private:
  Scale scale_;
  std::vector<std::string> rows_;
  std::size_t below_ = 0, above_ = 0;  // how many scores the scale leaves out
};

/// What stands below the ends of an axis; "" where it has no room.
std::string ends(const std::string& left, const std::string& right, std::size_t columns) {
  if (columns <= left.size() + right.size()) return "";
  return left + fmt::format("{:>{}}", right, columns - left.size());
}

std::vector<double> scores_of(const std::vector<Point>& points) {
  std::vector<double> scores;
  for (const auto& point : points) scores.push_back(point.y);
  return scores;
}

std::string title_of(const experiment::Program& program, const Scale& scale,
                     const std::string& rest) {
  return fmt::format("{}{} {}", program.goal->metric, scale.logarithmic ? " (logarithmic)" : "",
                     rest);
}

/// Where the values of a parameter stand on the axis, and what is written below it.
struct Places {
  std::vector<std::size_t> columns;  // of each value
  std::string below;
  bool logarithmic = false;
};

/// As the space has the range; of numbers without one, logarithmic where they are wide.
Places places_of_numbers(const std::vector<double>& values, const experiment::Parameter* range) {
  constexpr double kWideParameter = 100;
  const auto [low, high] = std::ranges::minmax(values);
  const bool wide = range == nullptr ? high / low >= kWideParameter
                                     : range->scale == experiment::Parameter::Scale::log;
  Places places{.columns = {},
                .below = ends(fmt::format("{:.4g}", low), fmt::format("{:.4g}", high), kColumns),
                .logarithmic = low > 0 && wide};
  const Scale across{.bottom = low, .top = high, .logarithmic = places.logarithmic};
  for (const double value : values)
    places.columns.push_back(static_cast<std::size_t>(
        std::lround(across.position(value) * static_cast<double>(kColumns - 1))));
  return places;
}

/// Each has a strip of its own, in the order of their first appearance; further ones share the
/// last.
Places places_of_texts(const std::vector<std::string>& values) {
  constexpr std::size_t kMostStrips = 8;
  std::vector<std::string> texts;
  for (const auto& value : values)
    if (std::ranges::find(texts, value) == texts.end()) texts.push_back(value);
  const std::size_t strips = std::min(texts.size(), kMostStrips), width = kColumns / strips;
  Places places;
  std::vector<std::size_t> used(strips);  // so that trials of one value stand beside one another
  for (const auto& value : values) {
    const auto at = std::min<std::size_t>(
        static_cast<std::size_t>(std::ranges::find(texts, value) - texts.begin()), strips - 1);
    places.columns.push_back(at * width + used[at]++ % (width - 1));
  }
  if (texts.size() > strips) texts[strips - 1] = fmt::format("{} more", texts.size() - strips + 1);
  for (std::size_t i = 0; i < strips; ++i)
    places.below += fmt::format("{:<{}}", clip(texts[i], width - 1), width);
  return places;
}

}  // namespace

Plot history_plot(const std::vector<store::TaskRecord>& tasks, const experiment::Program& program) {
  const auto& goal = *program.goal;
  Plot plot{.title = fmt::format("{} of each trial, and the best so far", goal.metric),
            .x = {"trial"},
            .y = {.name = goal.metric, .cut = goal.maximize ? Axis::Cut::low : Axis::Cut::high},
            .lines = {{.name = "best so far", .points = {}, .steps = true}}};
  auto& best = plot.lines.front().points;
  for (const auto& task : tasks) {
    const auto score = engine::score_of(task, program);
    if (!score || !std::isfinite(*score)) continue;
    plot.points.push_back({static_cast<double>(task.number.value), *score});
    if (best.empty() || is_better(*score, best.back().y, goal)) best.push_back(plot.points.back());
  }
  if (plot.points.empty()) return plot;
  best.push_back({plot.points.back().x, best.back().y});
  const auto [low, high] = std::ranges::minmax(scores_of(plot.points));
  plot.y.is_log = low > 0 && high / low >= kWideOnPage;
  return plot;
}

Plot curves_plot(const std::vector<engine::Curve>& curves, const experiment::Program& program) {
  const std::string& metric = program.goal->metric;
  Plot plot{.title = fmt::format("Learning curves of the best trials: {}", metric),
            .x = {"report"},
            .y = {metric}};
  for (const auto& curve : curves) {
    auto& points = plot.lines.emplace_back(curve.label).points;
    for (const double value : curve.values)
      points.push_back({static_cast<double>(points.size() + 1), value});
  }
  return plot;
}

std::string score_chart(const std::vector<store::TaskRecord>& tasks,
                        const experiment::Program& program) {
  if (!program.goal) return "";
  const Plot plot = history_plot(tasks, program);
  if (plot.points.size() < kFewest) return "";
  const Scale scale = scale_of(scores_of(plot.points), program.goal->maximize);
  const auto trials = static_cast<std::size_t>(tasks.back().number.value);
  Canvas canvas(std::min(kColumns, trials), scale);
  for (const auto& point : plot.points)
    canvas.put(static_cast<std::size_t>(point.x - 1) * canvas.columns() / trials, point.y,
               was_best(plot, point) ? '*' : 'o');
  return canvas.text(
      title_of(program, scale,
               fmt::format("of {} trials; * marks the best so far", plot.points.size())),
      ends("1", fmt::format("{}", trials), canvas.columns()));
}

std::string scatter_chart(const std::vector<store::TaskRecord>& tasks,
                          const experiment::Program& program, const std::string& parameter) {
  if (!program.goal) return "";
  const Plot history = history_plot(tasks, program);
  std::vector<Point> points;
  std::vector<std::string> texts;
  std::vector<double> numbers;
  std::size_t best = 0;  // the last that was better than all before
  for (const auto& point : history.points) {
    const std::string text =
        engine::value_of(tasks[static_cast<std::size_t>(point.x - 1)], parameter);
    if (text == "-") continue;
    if (was_best(history, point)) best = points.size();
    points.push_back(point);
    texts.push_back(text);
    if (const auto number = parse_number(text)) numbers.push_back(*number);
  }
  if (points.size() < kFewest) return "";
  const Scale scale = scale_of(scores_of(points), program.goal->maximize);
  const auto declared = std::ranges::find(program.params, parameter, &experiment::Parameter::name);
  const bool ranged = declared != program.params.end() && declared->choices.empty();
  const Places places = numbers.size() == texts.size()
                            ? places_of_numbers(numbers, ranged ? &*declared : nullptr)
                            : places_of_texts(texts);
  Canvas canvas(kColumns, scale);
  for (std::size_t i = 0; i < points.size(); ++i)
    canvas.put(places.columns[i], points[i].y, i == best ? '*' : 'o');
  return canvas.text(
      title_of(program, scale,
               fmt::format("by {}{}, {} trials; * the best", parameter,
                           places.logarithmic ? " (logarithmic)" : "", points.size())),
      places.below);
}

std::string curve_chart(const std::vector<engine::Curve>& curves,
                        const experiment::Program& program) {
  if (!program.goal) return "";
  const Plot plot = curves_plot(curves, program);
  std::vector<double> values;
  std::size_t steps = 0;
  for (const auto& line : plot.lines) {
    for (const auto& point : line.points) values.push_back(point.y);
    steps = std::max(steps, line.points.size());
  }
  if (steps < 2) return "";
  const Scale scale = scale_of(std::move(values), program.goal->maximize);
  Canvas canvas(std::min(kColumns, std::max<std::size_t>(steps, kColumns / 2)), scale);
  std::string legend;
  for (std::size_t i = plot.lines.size(); i-- > 0;) {  // the best last, above the others
    const auto mark = static_cast<char>('1' + i);
    for (const auto& point : plot.lines[i].points)
      canvas.put(static_cast<std::size_t>(point.x - 1) * (canvas.columns() - 1) / (steps - 1),
                 point.y, mark);
    legend = fmt::format("  {} /{}", mark, plot.lines[i].name) + legend;
  }
  return canvas.text(title_of(program, scale, "by report, leading trials:" + legend),
                     ends("1", fmt::format("{}", steps), canvas.columns()));
}

}  // namespace berth::render
