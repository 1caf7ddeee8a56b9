#include "berth/experiment/importance.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kTrees = 64;
constexpr std::size_t kCodes = 64;  // of a parameter's values, a bit each
constexpr std::size_t kGroups = 32;
constexpr std::uint8_t kAbsent = 63;
constexpr std::size_t kSmallestLeaf = 3;
constexpr int kDeepest = 24;

using Codes = std::uint64_t;
constexpr Codes only(std::size_t code) {
  return Codes{1} << code;
}

struct Feature {
  std::string name;
  bool ordered = true;
  std::vector<std::uint8_t> codes;       // by trial
  std::array<double, kCodes> measure{};  // the part of the trials with each
  std::int64_t values = 0;

  double measure_of(Codes set) const {
    double sum = 0;
    for (Codes rest = set; rest != 0; rest &= rest - 1)
      sum += measure[static_cast<std::size_t>(std::countr_zero(rest))];
    return sum;
  }
};

/// Ordered values: their own codes where they are few, groups of about as many trials otherwise.
void code_numbers(const std::vector<std::pair<double, std::size_t>>& sorted, Feature& feature) {
  const auto groups = static_cast<std::size_t>(feature.values);
  std::size_t code = 0, first = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].first != sorted[i - 1].first) {
      first = i;
      ++code;
    }
    feature.codes[sorted[i].second] =
        static_cast<std::uint8_t>(groups <= kGroups ? code : first * kGroups / sorted.size());
  }
}

/// Categories, the most frequent first.
void code_texts(const std::map<std::string, std::vector<std::size_t>>& by_text, Feature& feature) {
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [text, trials] : by_text) groups.push_back(&trials);
  std::ranges::stable_sort(groups, std::greater(),
                           [](const auto* trials) { return trials->size(); });
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const auto trial : *groups[i])
      feature.codes[trial] = static_cast<std::uint8_t>(std::min<std::size_t>(i, kAbsent - 1));
}

Feature feature_of(const std::string& name, std::span<const ScoredTrial> trials) {
  Feature feature{.name = name, .codes = std::vector<std::uint8_t>(trials.size(), kAbsent)};
  std::map<std::string, std::vector<std::size_t>> by_text;
  std::vector<std::pair<double, std::size_t>> numbers;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto* value = find_value(trials[i].params, name);
    if (value == nullptr) continue;
    by_text[*value].push_back(i);
    const auto number = parse_number(*value);
    feature.ordered = feature.ordered && number;
    if (number) numbers.emplace_back(*number, i);
  }
  feature.values = std::ssize(by_text);
  std::ranges::sort(numbers);
  feature.ordered ? code_numbers(numbers, feature) : code_texts(by_text, feature);
  for (const auto code : feature.codes) feature.measure[code] += 1;
  for (auto& part : feature.measure) part /= static_cast<double>(trials.size());
  return feature;
}

/// Scores without outliers.
std::vector<double> bounded_scores(std::span<const ScoredTrial> trials) {
  std::vector<double> scores;
  for (const auto& trial : trials) scores.push_back(trial.score);
  auto sorted = scores;
  std::ranges::sort(sorted);
  const double low = sorted[sorted.size() / 4], high = sorted[sorted.size() * 3 / 4];
  const double reach = 3 * (high - low);
  if (reach > 0 && std::isfinite(reach))
    for (auto& score : scores) score = std::clamp(score, low - reach, high + reach);
  return scores;
}

struct Node {
  std::size_t feature = 0;
  Codes left_codes = 0;
  std::size_t left = 0, right = 0;  // 0: a leaf
  double mean = 0;
};
struct Leaf {
  std::vector<Codes> box;  // by feature
  double mean = 0;
};
struct Split {
  std::size_t feature = 0;
  Codes left = 0;
  double gain = 0;
};

class Tree {
 public:
  Tree(const std::vector<Feature>& features, const std::vector<double>& scores, Rng& rng)
      : features_(features), scores_(scores), rng_(rng), seen_(scores.size()) {
    std::vector<std::size_t> sample;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      sample.push_back(rng_.below(scores.size()));
      seen_[sample.back()] = true;
    }
    grow(std::move(sample), std::vector<Codes>(features.size(), ~Codes{0}), 0);
  }

  bool saw(std::size_t trial) const { return seen_[trial]; }
  double predict(std::size_t trial) const {
    const Node* node = &nodes_.front();
    while (node->left != 0) {
      const bool left = (node->left_codes & only(features_[node->feature].codes[trial])) != 0;
      node = &nodes_[left ? node->left : node->right];
    }
    return node->mean;
  }
  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  std::size_t grow(std::vector<std::size_t> sample, std::vector<Codes> box, int depth) {
    const std::size_t at = nodes_.size();
    double sum = 0;
    for (const auto trial : sample) sum += scores_[trial];
    nodes_.push_back({.mean = sum / static_cast<double>(sample.size())});
    const Split split = depth < kDeepest ? best_split(sample) : Split{};
    if (split.gain <= 0) {
      leaves_.push_back({std::move(box), nodes_[at].mean});
      return at;
    }
    const auto& codes = features_[split.feature].codes;
    const auto middle = std::ranges::stable_partition(
        sample, [&](auto trial) { return (split.left & only(codes[trial])) != 0; });
    auto left = std::vector(sample.begin(), middle.begin()),
         right = std::vector(middle.begin(), middle.end());
    auto left_box = box;
    left_box[split.feature] &= split.left;
    box[split.feature] &= ~split.left;
    nodes_[at].feature = split.feature;
    nodes_[at].left_codes = split.left;
    const auto left_at = grow(std::move(left), std::move(left_box), depth + 1);
    const auto right_at = grow(std::move(right), std::move(box), depth + 1);
    nodes_[at].left = left_at;
    nodes_[at].right = right_at;
    return at;
  }

  /// Of two thirds of the parameters, drawn anew at each node.
  Split best_split(const std::vector<std::size_t>& sample) {
    std::vector<std::size_t> order(features_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t looked_at = (2 * features_.size() + 2) / 3;
    Split best;
    for (std::size_t i = 0; i < looked_at; ++i) {
      std::swap(order[i], order[i + rng_.below(order.size() - i)]);
      const Split split = split_by(order[i], sample);
      if (split.gain > best.gain) best = split;
    }
    return best;
  }

  /// The division of the sample by one parameter that leaves the least variance among the trials
  /// that have it; the others go with the greater part: that they lack it is the doing of another
  /// parameter.
  Split split_by(std::size_t feature, const std::vector<std::size_t>& sample) const {
    struct Sum {
      double sum = 0, count = 0;
    };
    std::array<Sum, kCodes> sums{};
    Sum all;
    double squares = 0;
    for (const auto trial : sample) {
      if (features_[feature].codes[trial] == kAbsent) continue;
      Sum& of = sums[features_[feature].codes[trial]];
      of.sum += scores_[trial];
      ++of.count;
      all.sum += scores_[trial];
      ++all.count;
      squares += scores_[trial] * scores_[trial];
    }
    std::vector<std::size_t> codes;
    for (std::size_t code = 0; code < kCodes; ++code)
      if (sums[code].count > 0) codes.push_back(code);
    const bool ordered = features_[feature].ordered;
    if (!ordered)
      std::ranges::stable_sort(codes, {},
                               [&](auto code) { return sums[code].sum / sums[code].count; });
    // What rounding may make of nothing.
    Split best{.feature = feature, .gain = 1e-9 * squares};
    const double least_gain = best.gain;
    Sum left;
    Codes prefix = 0;
    for (std::size_t i = 0; i + 1 < codes.size(); ++i) {
      left.sum += sums[codes[i]].sum;
      left.count += sums[codes[i]].count;
      prefix |= ordered ? only(codes[i] + 1) - 1 : only(codes[i]);
      const double right_count = all.count - left.count, right_sum = all.sum - left.sum;
      if (std::min(left.count, right_count) < kSmallestLeaf) continue;
      const double gain = left.sum * left.sum / left.count + right_sum * right_sum / right_count -
                          all.sum * all.sum / all.count;
      const Codes with_absent = left.count > right_count ? prefix | only(kAbsent) : prefix;
      if (gain > best.gain) best = {.feature = feature, .left = with_absent, .gain = gain};
    }
    if (best.gain <= least_gain) best.gain = 0;
    return best;
  }

  const std::vector<Feature>& features_;
  const std::vector<double>& scores_;
  Rng& rng_;
  std::vector<char> seen_;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
};

/// The share of each parameter in the variance of one tree; empty where the tree has none.
std::vector<double> shares_of(const Tree& tree, const std::vector<Feature>& features) {
  struct Weighted {
    std::vector<double> sides;  // the measure of each side of the box
    double weight = 1;
  };
  std::vector<Weighted> boxes;
  double mean = 0, square = 0;
  for (const auto& leaf : tree.leaves()) {
    Weighted& box = boxes.emplace_back();
    for (std::size_t i = 0; i < features.size(); ++i) {
      box.sides.push_back(features[i].measure_of(leaf.box[i]));
      box.weight *= box.sides.back();
    }
    mean += box.weight * leaf.mean;
    square += box.weight * leaf.mean * leaf.mean;
  }
  const double variance = square - mean * mean;
  if (variance <= 1e-12 * square) return {};
  std::vector<double> shares;
  for (std::size_t i = 0; i < features.size(); ++i) {
    std::array<double, kCodes> marginal{};
    for (std::size_t leaf = 0; leaf < boxes.size(); ++leaf) {
      if (boxes[leaf].sides[i] <= 0) continue;
      const double others = boxes[leaf].weight / boxes[leaf].sides[i] * tree.leaves()[leaf].mean;
      for (Codes rest = tree.leaves()[leaf].box[i]; rest != 0; rest &= rest - 1)
        marginal[static_cast<std::size_t>(std::countr_zero(rest))] += others;
    }
    // Among the trials that have it.
    double part = 0, sum = 0, squares = 0;
    for (std::size_t code = 0; code < kAbsent; ++code) {
      part += features[i].measure[code];
      sum += features[i].measure[code] * marginal[code];
      squares += features[i].measure[code] * marginal[code] * marginal[code];
    }
    shares.push_back(std::max(0.0, squares - sum * sum / part) / variance);
  }
  return shares;
}

/// How much of the variance trees predict for the trials that they had not seen.
double predicted_part(const std::vector<Tree>& trees, const std::vector<double>& scores) {
  const double mean =
      std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  double errors = 0, variance = 0;
  for (std::size_t trial = 0; trial < scores.size(); ++trial) {
    double sum = 0, count = 0;
    for (const auto& tree : trees)
      if (!tree.saw(trial)) {
        sum += tree.predict(trial);
        ++count;
      }
    if (count == 0) continue;
    errors += (scores[trial] - sum / count) * (scores[trial] - sum / count);
    variance += (scores[trial] - mean) * (scores[trial] - mean);
  }
  return variance > 0 ? 1 - errors / variance : 0;
}

}  // namespace

Result<Importances> importances(std::span<const ScoredTrial> trials, std::uint64_t seed) {
  if (trials.size() > kMostForImportance) trials = trials.last(kMostForImportance);
  if (trials.size() < kFewestForImportance)
    return fail(ErrorKind::busy, "expected at least {} trials with a score, got {}",
                kFewestForImportance, trials.size());
  std::vector<std::string> names;
  for (const auto& trial : trials)
    for (const auto& [name, value] : trial.params)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::vector<Feature> features;
  for (const auto& name : names) features.push_back(feature_of(name, trials));
  const auto scores = bounded_scores(trials);
  if (features.empty() || std::ranges::minmax(scores).min == std::ranges::minmax(scores).max)
    return fail(ErrorKind::busy, "all {} trials have the same {}: there is nothing to explain",
                trials.size(), features.empty() ? "parameters" : "score");
  Rng rng(seed);
  std::vector<Tree> trees;
  trees.reserve(kTrees);
  for (std::size_t i = 0; i < kTrees; ++i) trees.emplace_back(features, scores, rng);

  Importances result;
  result.trials = std::ssize(trials);
  std::vector<double> sums(features.size()), squares(features.size());
  double counted = 0;
  for (const auto& tree : trees) {
    const auto shares = shares_of(tree, features);
    if (shares.empty()) continue;
    ++counted;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      sums[i] += shares[i];
      squares[i] += shares[i] * shares[i];
    }
  }
  double alone = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const double mean = counted > 0 ? sums[i] / counted : 0;
    const double variance = counted > 0 ? squares[i] / counted - mean * mean : 0;
    alone += mean;
    result.parameters.push_back({.parameter = features[i].name,
                                 .share = mean,
                                 .deviation = std::sqrt(std::max(0.0, variance)),
                                 .trials = std::ranges::count_if(
                                     features[i].codes, [](auto code) { return code != kAbsent; }),
                                 .values = features[i].values});
  }
  std::ranges::stable_sort(result.parameters, std::greater(), &Importance::share);
  result.together = counted > 0 ? std::max(0.0, 1 - alone) : 0;
  result.predicted = predicted_part(trees, scores);
  return result;
}

}  // namespace berth::experiment
