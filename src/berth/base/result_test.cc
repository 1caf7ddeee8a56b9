#include "berth/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace berth {
namespace {

TEST(Result, TheKindAloneDecidesNameExitCodeAndRetry) {
  struct Case {
    ErrorKind kind;
    std::string_view name;
    int exit_code;
    bool retryable;
  };
  constexpr Case kCases[] = {{ErrorKind::usage, "usage", 2, false},
                             {ErrorKind::invalid, "invalid", 2, false},
                             {ErrorKind::not_found, "not_found", 2, false},
                             {ErrorKind::exists, "exists", 2, false},
                             {ErrorKind::impossible, "impossible", 3, false},
                             {ErrorKind::busy, "busy", 3, true},
                             {ErrorKind::denied, "denied", 3, false},
                             {ErrorKind::full, "full", 3, true},
                             {ErrorKind::io, "io", 3, true},
                             {ErrorKind::corrupt, "corrupt", 3, false},
                             {ErrorKind::stale, "stale", 3, false},
                             {ErrorKind::interrupted, "interrupted", 130, false}};
  std::set<std::string_view> names;
  for (const auto& [kind, its_name, code, retry] : kCases) {
    EXPECT_EQ(name(kind), its_name);
    EXPECT_EQ(exit_code(kind), code) << its_name;
    EXPECT_EQ(retryable(kind), retry) << its_name;
    names.insert(its_name);
  }
  EXPECT_EQ(names.size(), std::size(kCases));
}

Result<std::unique_ptr<int>> make(bool well) {
  if (!well) return fail(ErrorKind::busy, "held by {}", "digits-3");
  return std::make_unique<int>(7);
}

Result<int> value_through(bool well, int& reached) {
  BERTH_ASSIGN(const auto first, make(true));
  BERTH_ASSIGN(const auto second, make(well));  // twice in one scope, and of what only moves
  ++reached;
  return *first + *second;
}

Status status_through(bool well, int& reached) {
  BERTH_TRY(make(true));
  if (reached == 0) BERTH_TRY(make(well));  // one statement: fit for an if without braces
  ++reached;
  return {};
}

TEST(Result, TryAndAssignHandOnTheErrorAndNothingElse) {
  const Error busy{ErrorKind::busy, "held by digits-3"};
  int reached = 0;
  EXPECT_EQ(value_through(true, reached), 14);
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(value_through(false, reached).error(), busy);
  EXPECT_EQ(reached, 1);
  reached = 0;
  EXPECT_EQ(status_through(false, reached).error(), busy);
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(status_through(true, reached));
  EXPECT_EQ(reached, 1);
}

TEST(Result, WithinPutsThePlaceInFrontAndKeepsTheKind) {
  EXPECT_EQ(within("sweep.yaml", Error{ErrorKind::denied, "no"}),
            (Error{ErrorKind::denied, "sweep.yaml: no"}));
}

TEST(ResultDeathTest, ABrokenInvariantEndsTheProcessAndSaysWhich) {
  EXPECT_DEATH(BERTH_ASSERT(1 + 1 == 3), "broken invariant: 1 \\+ 1 == 3 .*result_test.cc");
}

}  // namespace
}  // namespace berth
