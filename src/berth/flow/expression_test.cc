// Expressions of {attempt}: what they come to, by an evaluation of its own, and what is refused.
#include "berth/flow/expression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/flow/attempt_request.h"

namespace berth::flow {
namespace {

const ExpressionNames kNames{.parameter = [](std::string_view name) -> std::optional<std::string> {
                               if (name == "gb") return "4";
                               if (name == "size") return "2G";
                               if (name == "bad") return "lots";
                               return std::nullopt;
                             },
                             .takes_auto = true};

double value_of(std::string_view text, std::int64_t attempt = 1, Unit unit = Unit::bytes) {
  const auto expression = parse_expression(text, unit, kNames);
  EXPECT_TRUE(expression) << text << ": " << expression.error().message;
  return expression ? evaluate(*expression, attempt).value_or(-1) : -1;
}

std::string refusal_of(std::string_view text, Unit unit = Unit::bytes) {
  const auto expression = parse_expression(text, unit, kNames);
  return expression ? "" : expression.error().message;
}

TEST(Expression, AmountsOfAttempts) {
  EXPECT_EQ(value_of("{attempt} * 2G", 3), 6e9);
  EXPECT_EQ(value_of("2G+{ attempt }*500M", 2), 3e9);
  EXPECT_EQ(value_of("{attempt} * {gb} * 1G", 2), 8e9);
  EXPECT_EQ(value_of("max({size}, {attempt} * 1500M)", 1), 2e9);
  EXPECT_EQ(value_of("max({size}, {attempt} * 1500M)", 2), 3e9);
  EXPECT_EQ(value_of("min({attempt} * 1Gi, 3Gi, 8G)", 9), 3.0 * (1 << 30));
  EXPECT_EQ(value_of("10G - 2G - 1G"), 7e9) << "from the left";
  EXPECT_EQ(value_of("8G / 2 / 2"), 2e9);
  EXPECT_EQ(value_of("2 * (1G + 1G) * {attempt}", 2), 8e9);
  EXPECT_EQ(value_of("{attempt} * (4G / 2G)", 2), 4) << "of two amounts, a number";
  EXPECT_EQ(value_of("{attempt} * 10m", 2, Unit::time), 1200);
  EXPECT_EQ(value_of("min({attempt} * 1h30m, 2d)", 2, Unit::time), 3 * 3600);
  EXPECT_EQ(value_of("{attempt} * 0.5", 3, Unit::none), 1.5);
}

TEST(Expression, Auto) {
  EXPECT_EQ(value_of("auto(2G) * {attempt}", 2), 4e9) << "nothing is known";
  ExpressionNames names = kNames;
  bool used = false;
  names.known = 1e9;
  names.uses_auto = &used;
  const auto expression = parse_expression("1 * auto(2G + {size}) * {attempt}", Unit::bytes, names);
  ASSERT_TRUE(expression);
  EXPECT_TRUE(used);
  EXPECT_EQ(evaluate(*expression, 2), 2e9);
  names.takes_auto = false;
  EXPECT_FALSE(parse_expression("auto(2G)", Unit::bytes, names));
}

TEST(Expression, WrongOnesAreRefused) {
  EXPECT_NE(refusal_of("{atempt} * 2G").find("{atempt} is not available here"), std::string::npos);
  EXPECT_NE(refusal_of("attempt * 2G").find("{attempt}"), std::string::npos);
  EXPECT_NE(refusal_of("gb * 2G").find("{gb}"), std::string::npos);
  EXPECT_NE(refusal_of("{bad} * 1G").find("{bad}: "), std::string::npos);
  EXPECT_NE(refusal_of("1G * 2G").find("multiplied"), std::string::npos);
  EXPECT_NE(refusal_of("1G + 1").find("without one"), std::string::npos);
  EXPECT_NE(refusal_of("min(1G, 1)").find("without one"), std::string::npos);
  EXPECT_NE(refusal_of("1 / 1G").find("divided"), std::string::npos);
  EXPECT_NE(refusal_of("1G / ({attempt} - 1)").find("divides by 0"), std::string::npos);
  EXPECT_NE(refusal_of("2G", Unit::none).find("not a number"), std::string::npos);
  for (const auto* text :
       {"",     "(",      ")",      "1G)",      "(1G",       "1G +",  "* 1G",
        "min",  "min()",  "min(1G", "{attempt", "{}",        "1G 2G", "max(1G,)",
        "auto", "auto()", "--1",    "1G{gb}",   "sum(1, 2)", "1..2",  "{attempt} ^ 2"})
    EXPECT_FALSE(refusal_of(text).empty()) << text;
  EXPECT_FALSE(refusal_of(std::string(200, '(') + "1" + std::string(200, ')')).empty());
  EXPECT_FALSE(refusal_of(std::string(5000, '1')).empty());
}

/// A tree of its own, written with all its parentheses or with those that it needs.
struct Tree {
  char kind = 'n';  // n: a number, a: the attempt, + - * / < >
  double number = 0;
  std::unique_ptr<Tree> left, right;

  double value(double attempt) const {
    switch (kind) {
      case 'n': return number;
      case 'a': return attempt;
      case '+': return left->value(attempt) + right->value(attempt);
      case '-': return left->value(attempt) - right->value(attempt);
      case '*': return left->value(attempt) * right->value(attempt);
      case '/': return left->value(attempt) / right->value(attempt);
      case '<': return std::min(left->value(attempt), right->value(attempt));
      default: return std::max(left->value(attempt), right->value(attempt));
    }
  }
  int rank() const { return kind == '+' || kind == '-' ? 1 : kind == '*' || kind == '/' ? 2 : 3; }
  std::string text() const {
    if (kind == 'n') return format_number(number);
    if (kind == 'a') return "{attempt}";
    if (kind == '<' || kind == '>')
      return fmt::format("{}({}, {})", kind == '<' ? "min" : "max", left->text(), right->text());
    const auto side = [&](const Tree& tree, bool tight) {
      return tree.rank() < rank() + (tight ? 1 : 0) ? "(" + tree.text() + ")" : tree.text();
    };
    return side(*left, false) + kind + side(*right, true);
  }
};

std::unique_ptr<Tree> random_tree(Rng& rng, int depth) {
  auto tree = std::make_unique<Tree>();
  const auto pick = rng.next() % (depth == 0 ? 2 : 8);
  tree->kind = "na+-*/<>"[pick];
  tree->number = static_cast<double>(1 + rng.next() % 999) / 4;
  if (pick < 2) return tree;
  tree->left = random_tree(rng, depth - 1);
  tree->right = random_tree(rng, depth - 1);
  return tree;
}

TEST(Expression, AgreesWithATreeOfItsOwn) {
  Rng rng(7);
  int agreed = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto tree = random_tree(rng, 5);
    const std::string text = tree->text();
    const auto expression = parse_expression(text, Unit::none, kNames);
    for (std::int64_t attempt = 1; attempt <= 3; ++attempt) {
      const double wanted = tree->value(static_cast<double>(attempt));
      const auto found = expression ? evaluate(*expression, attempt) : fail(ErrorKind::invalid, "");
      if (found) {
        ASSERT_DOUBLE_EQ(*found, wanted) << text;
        ++agreed;
      } else if (expression || text.size() <= 1000) {
        // Refused for a division by 0, here or at the first attempt.
        ASSERT_NE(text.find('/'), std::string::npos) << text;
      }
    }
  }
  EXPECT_GT(agreed, 50'000);
}

TEST(Expression, NoTextCrashesIt) {
  Rng rng(11);
  constexpr std::string_view kPieces[] = {"{attempt}", "(", ")",    "*",     "/",    "+",
                                          "-",         ",", "min(", "max(",  "1",    "2G",
                                          " ",         "{", "}",    "auto(", "\xff", "."};
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::uint64_t left = rng.next() % 12; left > 0; --left)
      text += kPieces[rng.next() % std::size(kPieces)];
    if (const auto expression = parse_expression(text, Unit::bytes, kNames))
      (void)evaluate(*expression, 2);
  }
}

Result<Flow> step_with(std::string_view more) {
  return read_flow(
      fmt::format("name: f\nparams: {{gb: 4, list: [1, 2]}}\nsteps:\n  a:\n    run: x\n"
                  "    retries: 3\n{}",
                  more),
      "f.yaml");
}

TEST(AttemptRequest, EachAttemptAsksForItsOwn) {
  const auto flow = step_with(
      "    resources: {mem: '{attempt} * {gb} * 1G', cpu: 'min({attempt}, 2)', disk: 1G}\n"
      "    timeout: '{attempt} * 10m'\n");
  ASSERT_TRUE(flow) << flow.error().message;
  const Step& step = flow->steps.front();
  EXPECT_EQ(resources_of(step, 1), step.resources);
  EXPECT_EQ(to_json(resources_of(step, 1)), R"({"cpu":1,"mem":4000000000,"disk":1000000000})");
  EXPECT_EQ(to_json(resources_of(step, 3)), R"({"cpu":2,"mem":12000000000,"disk":1000000000})");
  EXPECT_EQ(timeout_of(step, 1), std::chrono::minutes(10));
  EXPECT_EQ(timeout_of(step, 4), std::chrono::minutes(40));
  EXPECT_TRUE(step.params.empty()) << "what only the resources name makes no task run again";
  EXPECT_EQ(
      request_notes(step),
      (Words{"mem: 4G, 8G, 12G, 16G, attempt by attempt", "cpu: 1, 2, 2, 2, attempt by attempt",
             "timeout: 10m00s, 20m00s, 30m00s, 40m00s, attempt by attempt"}));
}

TEST(AttemptRequest, WhatALaterAttemptWouldAskForIsCheckedFirst) {
  const auto told = [](std::string_view more) {
    const auto flow = step_with(more);
    return flow ? std::string() : flow.error().message;
  };
  EXPECT_EQ(told("    resources:\n      gpu: '{attempt} / 2'\n"),
            "f.yaml:8: steps.a.resources.gpu: attempt 1 would ask for 0.5, and gpu is counted in "
            "whole ones");
  EXPECT_EQ(
      told("    timeout: '3m - {attempt} * 1m'\n"),
      "f.yaml:7: steps.a.timeout: attempt 3 would have a time limit of 0 s, expected more than 0");
  EXPECT_NE(told("    resources: {gpu: auto}\n").find("auto is for mem, cpu and timeout"),
            std::string::npos);
  EXPECT_NE(told("    resources: {mem: '{list} * 1G'}\n").find("parameter of one value"),
            std::string::npos);
  EXPECT_EQ(told("    resources: {mem: 10Q}\n").find("attempt"), std::string::npos);
}

TEST(AttemptRequest, AmountsAboveZeroNeverBecomeNone) {
  const auto flow = step_with(
      "    resources: {mem: '{attempt} * 0.25', cpu: '{attempt} * 0.0001'}\n"
      "    timeout: '{attempt} * 0.0001'\n");
  ASSERT_TRUE(flow) << flow.error().message;
  const Step& step = flow->steps.front();
  EXPECT_EQ(resources_of(step, 1).get(Known::mem), 1);
  EXPECT_EQ(resources_of(step, 1).get(Known::cpu), 1);
  EXPECT_EQ(timeout_of(step, 1), std::chrono::milliseconds(1));
}

TEST(AttemptRequest, AutoTakesWhatIsKnown) {
  constexpr std::string_view kText =
      "name: f\nsteps:\n  a: {run: x, resources: {mem: auto, cpu: auto(2)}, timeout: auto(1h)}\n"
      "  b: {run: x, resources: {mem: auto}}\n";
  FlowOptions options;
  options.advice = {{"a", "mem", 288'000'000, 4}, {"a", "timeout", 90'000, 1}};
  const auto flow = read_flow(kText, "f.yaml", options);
  ASSERT_TRUE(flow) << flow.error().message;
  const Step& a = flow->steps.front();
  EXPECT_EQ(to_json(a.resources), R"({"cpu":2,"mem":288000000})");
  EXPECT_EQ(a.timeout, std::chrono::seconds(90));
  EXPECT_EQ(a.automatic, (Words{"mem: auto: 288M, as 4 earlier attempts show",
                                "cpu: auto: 2, as no attempt of an earlier run is known",
                                "timeout: auto: 1m30s, as 1 earlier attempt shows"}));
  EXPECT_EQ(flow->steps.back().automatic,
            Words{"mem: auto: not limited, as no attempt of an earlier run is known"});
  EXPECT_EQ(flow->steps.back().resources.get(Known::mem), 0);
}

}  // namespace
}  // namespace berth::flow
