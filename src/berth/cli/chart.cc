// The chart under the table of trials: what was tried, and how the best grew.
#include <algorithm>
#include <cmath>

#include "berth/cli/trials_view.h"

namespace berth::cli {
namespace {

constexpr std::size_t kColumns = 64, kRows = 8;
constexpr std::size_t kFewest = 3;
constexpr std::size_t kMany = 20;  // from here on the worst quarter does not stretch the scale
/// Positive scores that span more than this are drawn by their logarithm.
constexpr double kWide = 1000;

struct Point {
  std::int64_t trial = 0;
  double score = 0;
  bool best = false;  // the best of all trials up to this one
};

std::vector<Point> points_of(const std::vector<store::TaskRecord>& tasks,
                             const experiment::Program& program) {
  std::vector<Point> points;
  std::optional<double> best;
  for (const auto& task : tasks) {
    const auto score = score_of(task, program);
    if (!score || !std::isfinite(*score)) continue;
    const bool better = !best || (program.goal->maximize ? *score > *best : *score < *best);
    if (better) best = score;
    points.push_back({task.number.value, *score, better});
  }
  return points;
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

Scale scale_of(const std::vector<Point>& points, bool maximize) {
  std::vector<double> scores;
  for (const auto& point : points) scores.push_back(point.score);
  std::ranges::sort(scores);
  const std::size_t beyond = scores.size() < kMany ? 0 : scores.size() / 4;
  Scale scale{.bottom = maximize ? scores[beyond] : scores.front(),
              .top = maximize ? scores.back() : scores[scores.size() - 1 - beyond]};
  scale.logarithmic = scale.bottom > 0 && scale.top / scale.bottom > kWide;
  return scale;
}

}  // namespace

std::string score_chart(const std::vector<store::TaskRecord>& tasks,
                        const experiment::Program& program) {
  if (!program.goal) return "";
  const auto points = points_of(tasks, program);
  if (points.size() < kFewest) return "";
  const Scale scale = scale_of(points, program.goal->maximize);
  const auto trials = static_cast<std::size_t>(tasks.back().number.value);
  const std::size_t columns = std::min(kColumns, trials);
  std::vector<std::string> rows(kRows, std::string(columns, ' '));
  for (const auto& point : points) {
    const auto column = static_cast<std::size_t>(point.trial - 1) * columns / trials;
    const auto up = static_cast<std::size_t>(
        std::lround(scale.position(point.score) * static_cast<double>(kRows - 1)));
    char& cell = rows[kRows - 1 - up][column];
    if (cell != '*') cell = point.best ? '*' : 'o';
  }
  const std::string top = fmt::format("{:.4g}", scale.top);
  const std::string bottom = fmt::format("{:.4g}", scale.bottom);
  const std::size_t margin = std::max(top.size(), bottom.size());
  std::string text = fmt::format("{}{} of {} trials; * the best so far\n", program.goal->metric,
                                 scale.logarithmic ? " (logarithmic)" : "", points.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto& label = row == 0 ? top : row + 1 == kRows ? bottom : std::string();
    std::string line = fmt::format("{:>{}} |{}", label, margin, rows[row]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string last = fmt::format("{}", trials);
  text += std::string(margin + 1, ' ') + '+' + std::string(columns, '-') + "\n";
  if (columns > last.size() + 1)
    text += fmt::format("{}1{:>{}}\n", std::string(margin + 2, ' '), last, columns - 1);
  return text;
}

}  // namespace berth::cli
