#include "search/functions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/space.h"

namespace berth::bench {
namespace {

using experiment::Parameter;
using experiment::Values;
using Point = std::vector<double>;
constexpr double kPi = std::numbers::pi;

Parameter range(std::string name, double min, double max, bool integer = false, bool log = false) {
  return {.name = std::move(name),
          .choices = {},
          .min = min,
          .max = max,
          .scale = log ? Parameter::Scale::log : Parameter::Scale::linear,
          .integer = integer};
}

double number(const Values& values, std::string_view name) {
  return *parse_number(*experiment::find_value(values, name));
}

Point point_of(const Values& values) {
  Point point;
  for (const auto& [name, value] : values) point.push_back(*parse_number(value));
  return point;
}

double square(double x) {
  return x * x;
}

double branin(const Point& x) {
  const double a = x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6;
  return a * a + 10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10 - 0.39788735772973816;
}

constexpr double kHartmannWeights[4] = {1, 1.2, 3, 3.2};

double hartmann3(const Point& x) {
  constexpr double kA[4][3] = {{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}};
  constexpr double kP[4][3] = {{0.3689, 0.1170, 0.2673},
                               {0.4699, 0.4387, 0.7470},
                               {0.1091, 0.8732, 0.5547},
                               {0.0381, 0.5743, 0.8828}};
  double sum = 3.8627797873327;
  for (int i = 0; i < 4; ++i) {
    double inner = 0;
    for (std::size_t j = 0; j < 3; ++j) inner += kA[i][j] * square(x[j] - kP[i][j]);
    sum -= kHartmannWeights[i] * std::exp(-inner);
  }
  return sum;
}

double hartmann6(const Point& x) {
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                               {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                               {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                               {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 3.322368011415515;
  for (int i = 0; i < 4; ++i) {
    double inner = 0;
    for (std::size_t j = 0; j < 6; ++j) inner += kA[i][j] * square(x[j] - kP[i][j]);
    sum -= kHartmannWeights[i] * std::exp(-inner);
  }
  return sum;
}

double ackley(const Point& x) {
  double squares = 0, waves = 0;
  for (const double each : x) {
    squares += each * each;
    waves += std::cos(2 * kPi * each);
  }
  const auto n = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(waves / n) + 20 + std::numbers::e;
}

double rastrigin(const Point& x) {
  double sum = 0;
  for (const double each : x) sum += each * each + 10 * (1 - std::cos(2 * kPi * each));
  return sum;
}

double rosenbrock(const Point& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
  return sum;
}

double levy(const Point& x) {
  const auto w = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
  double sum = square(std::sin(kPi * w(0)));
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += square(w(i) - 1) * (1 + 10 * square(std::sin(kPi * w(i) + 1)));
  const double last = w(x.size() - 1);
  return sum + square(last - 1) * (1 + square(std::sin(2 * kPi * last)));
}

double griewank(const Point& x) {
  double sum = 0, product = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += x[i] * x[i] / 4000;
    product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
  }
  return sum - product + 1;
}

double schwefel(const Point& x) {
  double sum = 0;
  for (const double each : x) sum += 418.9828872724338 - each * std::sin(std::sqrt(std::abs(each)));
  return sum;
}

double styblinski_tang(const Point& x) {
  double sum = 0;
  for (const double each : x)
    sum += (std::pow(each, 4) - 16 * each * each + 5 * each) / 2 + 39.16616570377142;
  return sum;
}

double sphere(const Point& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return sum;
}

/// Turned by a product of reflections, with axes from 1 to 1000.
double rotated_ellipsoid(Point x) {
  Rng rng(29);
  for (std::size_t turn = 0; turn < x.size(); ++turn) {
    Point normal;
    for (std::size_t i = 0; i < x.size(); ++i) normal.push_back(rng.uniform() - 0.5);
    double along = 0;
    for (std::size_t i = 0; i < x.size(); ++i) along += x[i] * normal[i];
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 2 * along * normal[i] / sphere(normal);
  }
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += std::pow(1e6, static_cast<double>(i) / static_cast<double>(x.size() - 1)) * x[i] * x[i];
  return sum;
}

/// As the settings of a training are: a choice, two whole numbers and a rate, which depend on each
/// other.
double mixed(const Values& values) {
  const std::string& kind = *experiment::find_value(values, "kind");
  const double offset = kind == "b" ? 0 : kind == "a" ? 0.3 : 1;
  const double layers = number(values, "layers"), width = std::log2(number(values, "width"));
  const double rate = std::log10(number(values, "rate"));
  return offset + square((layers - 7) / 4) + square((width - 7) / 2) +
         square(rate + 2 + (layers - 7) / 4 + (kind == "a" ? 1 : 0));
}

/// Two branches, each with parameters of its own; the better one has the narrower valley.
double conditional(const Values& values) {
  const double shared = number(values, "shared");
  if (*experiment::find_value(values, "net") == "wide")
    return 0.5 + square(number(values, "a") - 0.7) + square(shared - 0.2);
  const double b = number(values, "b"), c = number(values, "c");
  return 20 * square(b - 0.3) + 20 * square(c - b - 0.4) + square(shared - 0.6);
}

std::vector<Parameter> box(int dimensions, double min, double max) {
  std::vector<Parameter> params;
  for (int i = 0; i < dimensions; ++i) params.push_back(range(fmt::format("x{}", i), min, max));
  return params;
}

/// The function of a point, moved by a part of its space that differs from coordinate to
/// coordinate.
Function moved(std::string name, int dimensions, double min, double max,
               double (*of)(const Point&)) {
  return {std::move(name),
          box(dimensions, min, max),
          [=](const Values& values) {
            Point point = point_of(values);
            Rng rng(7);
            for (double& each : point) each -= (max - min) * 0.5 * (rng.uniform() - 0.5);
            return Point{of(point)};
          },
          {}};
}

Function plain(std::string name, std::vector<Parameter> params, double (*of)(const Point&)) {
  return {std::move(name),
          std::move(params),
          [of](const Values& values) { return Point{of(point_of(values))}; },
          {}};
}

/// ZDT1 to ZDT3 (Zitzler, Deb and Thiele, 2000) in ten dimensions.
Function zdt(int which) {
  return {fmt::format("zdt{}", which),
          box(10, 0, 1),
          [which](const Values& values) {
            const Point x = point_of(values);
            double g = 0;
            for (std::size_t i = 1; i < x.size(); ++i) g += x[i];
            g = 1 + 9 * g / static_cast<double>(x.size() - 1);
            const double part = x[0] / g;
            const double h = which == 2 ? 1 - part * part
                                        : 1 - std::sqrt(part) -
                                              (which == 3 ? part * std::sin(10 * kPi * x[0]) : 0);
            return Point{x[0], g * h};
          },
          {1.1, 1.1}};
}

/// DTLZ2 (Deb et al., 2002): three goals, whose front is an eighth of the unit sphere.
Function dtlz2() {
  return {"dtlz2",
          box(7, 0, 1),
          [](const Values& values) {
            const Point x = point_of(values);
            double g = 0;
            for (std::size_t i = 2; i < x.size(); ++i) g += square(x[i] - 0.5);
            const double a = x[0] * kPi / 2, b = x[1] * kPi / 2;
            return Point{(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b),
                         (1 + g) * std::sin(a)};
          },
          {1.1, 1.1, 1.1}};
}

std::vector<Function> all_functions() {
  Parameter a = range("a", 0, 1), b = range("b", 0, 1), c = range("c", 0, 1);
  a.when = {{"net", {"wide"}}};
  b.when = c.when = {{"net", {"deep"}}};
  return {plain("branin", {range("x", -5, 10), range("y", 0, 15)}, branin),
          plain("hartmann3", box(3, 0, 1), hartmann3),
          plain("hartmann6", box(6, 0, 1), hartmann6),
          moved("ackley5", 5, -32.768, 32.768, ackley),
          moved("rastrigin5", 5, -5.12, 5.12, rastrigin),
          plain("rosenbrock5", box(5, -5, 10), rosenbrock),
          moved("levy8", 8, -10, 10, levy),
          moved("griewank5", 5, -60, 60, griewank),
          plain("schwefel4", box(4, -500, 500), schwefel),
          plain("styblinski-tang5", box(5, -5, 5), styblinski_tang),
          moved("sphere10", 10, -5, 5, sphere),
          moved("ellipsoid5", 5, -5, 5, [](const Point& x) { return rotated_ellipsoid(x); }),
          moved("ackley10", 10, -32.768, 32.768, ackley),
          {"mixed",
           {{.name = "kind", .choices = {"a", "b", "c"}},
            range("layers", 1, 16, true),
            range("width", 8, 1024, true, true),
            range("rate", 1e-5, 1, false, true)},
           [](const Values& values) { return Point{mixed(values)}; },
           {}},
          {"conditional",
           {{.name = "net", .choices = {"wide", "deep"}}, range("shared", 0, 1), a, b, c},
           [](const Values& values) { return Point{conditional(values)}; },
           {}},
          zdt(1),
          zdt(2),
          zdt(3),
          dtlz2()};
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all = all_functions();
  return all;
}

double hypervolume(std::vector<std::vector<double>> points, const std::vector<double>& reference) {
  const std::size_t last = reference.size() - 1;
  std::erase_if(points, [&](const Point& point) {
    for (std::size_t i = 0; i <= last; ++i)
      if (point[i] >= reference[i]) return true;
    return false;
  });
  if (points.empty()) return 0;
  if (last == 0) return reference[0] - std::ranges::min(points)[0];
  // In slices along the last goal.
  std::ranges::sort(points, {}, [&](const Point& point) { return point[last]; });
  const Point base(reference.begin(), reference.end() - 1);
  double volume = 0;
  std::vector<Point> slice;
  for (std::size_t i = 0; i < points.size(); ++i) {
    Point flat(points[i].begin(), points[i].end() - 1);
    slice.push_back(std::move(flat));
    const double end = i + 1 < points.size() ? points[i + 1][last] : reference[last];
    if (end > points[i][last]) volume += (end - points[i][last]) * hypervolume(slice, base);
  }
  return volume;
}

}  // namespace berth::bench
