#include "berth/fleet/fit/least_squares.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace berth::fleet {
namespace {

constexpr double kSingular = 1e-12;  // of a scaled pivot

/// A part of the scaled matrix with as many rows and columns as there are terms in use.
struct Scaled {
  std::size_t size = 0;
  std::array<std::size_t, kTerms> term{};
  Terms length{};  // of each column
  TermMatrix a{};
};

Scaled scaled(const TermMatrix& xx, const TermMask& mask) {
  Scaled s;
  for (std::size_t i = 0; i < kTerms; ++i)
    if (mask[i] && xx[i].at(i) > 0) s.term[s.size++] = i;
  for (std::size_t i = 0; i < s.size; ++i) s.length.at(i) = std::sqrt(xx[s.term[i]].at(s.term[i]));
  for (std::size_t i = 0; i < s.size; ++i)
    for (std::size_t j = 0; j < s.size; ++j)
      s.a[i].at(j) = xx[s.term[i]].at(s.term[j]) / (s.length.at(i) * s.length.at(j));
  return s;
}

/// L of a = L·Lᵀ; nullopt: singular.
std::optional<TermMatrix> cholesky(const Scaled& s) {
  TermMatrix l{};
  for (std::size_t i = 0; i < s.size; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = s.a[i].at(j);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i].at(k) * l[j].at(k);
      if (i == j && !(sum > kSingular)) return std::nullopt;
      l[i].at(j) = i == j ? std::sqrt(sum) : sum / l[j].at(j);
    }
  return l;
}

/// x of a·x = b.
Terms solve(const TermMatrix& l, std::size_t size, Terms b) {
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) b.at(i) -= l[i].at(k) * b.at(k);
    b.at(i) /= l[i].at(i);
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) b.at(i) -= l[k].at(i) * b.at(k);
    b.at(i) /= l[i].at(i);
  }
  return b;
}

double inverse_diagonal(const TermMatrix& l, std::size_t size, std::size_t i) {
  Terms unit{};
  unit.at(i) = 1;
  return solve(l, size, unit).at(i);
}

/// The solution with exactly these terms; nullopt: one would be below 0, or they are singular.
std::optional<LeastSquares> solve_with(const NormalEquations& normal, const TermMask& mask) {
  const Scaled s = scaled(normal.xx, mask);
  const auto l = cholesky(s);
  if (!l) return std::nullopt;
  Terms b{};
  for (std::size_t i = 0; i < s.size; ++i) b.at(i) = normal.xy.at(s.term[i]) / s.length.at(i);
  const Terms x = solve(*l, s.size, b);
  LeastSquares found;
  found.residual = normal.yy;
  for (std::size_t i = 0; i < s.size; ++i) {
    if (x.at(i) < 0) return std::nullopt;
    found.residual -= x.at(i) * b.at(i);
    found.x.at(s.term[i]) = x.at(i) / s.length.at(i);
    found.variance.at(s.term[i]) =
        inverse_diagonal(*l, s.size, i) / (s.length.at(i) * s.length.at(i));
  }
  return found;
}

}  // namespace

void NormalEquations::add(const Terms& x, double y, double w) {
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t j = 0; j < kTerms; ++j) xx[i].at(j) += w * x.at(i) * x.at(j);
    xy.at(i) += w * x.at(i) * y;
  }
  yy += w * y * y;
}

LeastSquares solve_nonnegative(const NormalEquations& normal, const TermMask& mask) {
  LeastSquares best;
  best.residual = normal.yy;
  for (unsigned choice = 1; choice < 1U << kTerms; ++choice) {
    TermMask used{};
    bool within = true;
    for (std::size_t i = 0; i < kTerms; ++i) {
      used[i] = (choice >> i & 1U) != 0;
      within &= !used[i] || (mask[i] && normal.xx[i].at(i) > 0);
    }
    if (!within) continue;
    if (const auto found = solve_with(normal, used); found && found->residual < best.residual)
      best = *found;
  }
  return best;
}

Condition condition_of(const NormalEquations& normal, const TermMask& mask) {
  Scaled s = scaled(normal.xx, mask);
  TermMatrix vectors{};
  for (std::size_t i = 0; i < s.size; ++i) vectors[i].at(i) = 1;
  // Jacobi's rotations until nothing is left beside the diagonal.
  constexpr int kMostSweeps = 50;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep)
    for (std::size_t p = 0; p < s.size; ++p)
      for (std::size_t q = p + 1; q < s.size; ++q) {
        const double beside = s.a[p].at(q);
        if (std::abs(beside) < 1e-300) continue;
        const double theta = (s.a[q].at(q) - s.a[p].at(p)) / (2 * beside);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0), sine = t * c;
        for (std::size_t k = 0; k < s.size; ++k) {
          const double kp = s.a[k].at(p), kq = s.a[k].at(q);
          s.a[k].at(p) = c * kp - sine * kq;
          s.a[k].at(q) = sine * kp + c * kq;
        }
        for (std::size_t k = 0; k < s.size; ++k) {
          const double pk = s.a[p].at(k), qk = s.a[q].at(k);
          s.a[p].at(k) = c * pk - sine * qk;
          s.a[q].at(k) = sine * pk + c * qk;
          const double vp = vectors[k].at(p), vq = vectors[k].at(q);
          vectors[k].at(p) = c * vp - sine * vq;
          vectors[k].at(q) = sine * vp + c * vq;
        }
      }
  Condition condition;
  if (s.size == 0) return condition;
  std::size_t least = 0, most = 0;
  for (std::size_t i = 0; i < s.size; ++i) {
    if (s.a[i].at(i) < s.a[least].at(least)) least = i;
    if (s.a[i].at(i) > s.a[most].at(most)) most = i;
  }
  constexpr double kNothing = 1e-16;
  condition.number = std::sqrt(s.a[most].at(most) / std::max(kNothing, s.a[least].at(least)));
  for (std::size_t i = 0; i < s.size; ++i) condition.weakest.at(s.term[i]) = vectors[i].at(least);
  return condition;
}

Information information_of(const TermMatrix& xx, const TermMask& mask, const Terms& scale) {
  TermMatrix known = xx;
  for (std::size_t i = 0; i < kTerms; ++i) known[i].at(i) += 1 / (scale.at(i) * scale.at(i));
  const Scaled s = scaled(known, mask);
  Information information;
  const auto l = cholesky(s);
  if (!l) return information;
  for (std::size_t i = 0; i < s.size; ++i) {
    information.log_det += 2 * std::log((*l)[i].at(i) * s.length.at(i) * scale.at(s.term[i]));
    information.variance.at(s.term[i]) =
        inverse_diagonal(*l, s.size, i) / (s.length.at(i) * s.length.at(i));
  }
  return information;
}

}  // namespace berth::fleet
