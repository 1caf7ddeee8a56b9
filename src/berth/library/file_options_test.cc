#include "berth/library/file_options.h"

#include <gtest/gtest.h>

namespace berth::library {
namespace {

TEST(FileOptionsJson, HasTheFieldsOfTheStruct) {
  const auto options = file_options(R"({"name": "n", "parallel": 4,
      "set": {"lr": 0.1, "samples": ["A", "B"]}, "elsewhere": true, "labels": {"team": "vision"},
      "clusters": ["lab"], "retries": 2, "timeout": "1m30s", "allow_failures": 3,
      "targets": ["map/A"], "force": ["map"], "warm_start": ["n-1"]})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->name, "n");
  EXPECT_EQ(options->parallel, 4);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(options->set, (Pairs{{"lr", "0.1"}, {"samples", "A"}, {"samples", "B"}}));
  EXPECT_TRUE(options->elsewhere);
  EXPECT_EQ(options->labels, (Pairs{{"team", "vision"}}));
  EXPECT_EQ(options->clusters, std::vector<std::string>{"lab"});
  EXPECT_EQ(options->retries, 2);
  EXPECT_EQ(options->timeout, std::chrono::seconds(90));
  EXPECT_EQ(options->allow_failures, 3);
  EXPECT_EQ(options->targets, std::vector<std::string>{"map/A"});
  EXPECT_EQ(options->force, std::vector<std::string>{"map"});
  EXPECT_EQ(options->warm_start, std::vector<std::string>{"n-1"});
}

TEST(FileOptionsJson, RefusesWhatIsNotAnOption) {
  for (const char* json : {"[]", "{", R"({"paralel": 1})", R"({"parallel": "x"})",
                           R"({"retries": -1})", R"({"elsewhere": 2})", R"({"set": [1]})"}) {
    const auto options = file_options(json);
    ASSERT_FALSE(options) << json;
    EXPECT_EQ(options.error().kind, ErrorKind::invalid) << json;
  }
}

}  // namespace
}  // namespace berth::library
