#include "berth/run/flows/placed_outputs.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

using fileset::Entry;
using fileset::Fileset;

Entry file(std::string path, std::string_view content) {
  Entry entry;
  entry.path = std::move(path);
  entry.digest = sha256(content);
  entry.size = std::ssize(content);
  return entry;
}

class PlacedOutputsTest : public ::testing::Test {
 protected:
  PlacedOutputsTest() {
    EXPECT_TRUE(env_.make_directory("/state/cache", 0700));
    EXPECT_TRUE(env_.make_directory("/flow", 0700));
  }
  /// As another process would, which has read nothing yet.
  std::optional<std::string> edited(const std::string& place, const Fileset& there) {
    const auto edit = PlacedOutputs("/state/cache").find_edit(env_, place, there);
    if (!edit) return std::nullopt;
    return edit->path + (edit->is_added ? " is new" : "");
  }

  std::string record_file() {
    return "/state/cache/placed/" + env_.list("/state/cache/placed").value().front();
  }

  os::FakeEnv env_;
  PlacedOutputs placed_{"/state/cache"};
};

TEST_F(PlacedOutputsTest, WhatBerthNeverPutThereIsNotKnownAsEdited) {
  EXPECT_FALSE(placed_.has(env_, "/flow/o"));
  EXPECT_EQ(edited("/flow/o", {{file(".", "mine")}}), std::nullopt);
}

TEST_F(PlacedOutputsTest, EachContentThatBerthPutThereIsItsOwn) {
  for (const char* content : {"1", "2"})
    ASSERT_TRUE(placed_.record(env_, "/flow/o", {{file(".", content)}}));
  EXPECT_EQ(edited("/flow/o", {{file(".", "1")}}), std::nullopt) << "the second was not put yet";
  EXPECT_EQ(edited("/flow/o", {{file(".", "2")}}), std::nullopt);
  EXPECT_EQ(edited("/flow/o", {{file(".", "3")}}), "/flow/o");
  EXPECT_EQ(edited("/flow/p", {{file(".", "3")}}), std::nullopt) << "another place";
}

TEST_F(PlacedOutputsTest, AnExecutableBitIsNotAnEdit) {
  Fileset script{{file(".", "1")}};
  ASSERT_TRUE(placed_.record(env_, "/flow/o", script));
  script.entries[0].kind = Entry::Kind::executable;
  EXPECT_EQ(edited("/flow/o", script), std::nullopt);
}

TEST_F(PlacedOutputsTest, TheEditedFileOfADirectoryIsNamed) {
  ASSERT_TRUE(placed_.record(env_, "/flow/d", {{file("a", "1"), file("b", "2")}}));
  EXPECT_EQ(edited("/flow/d", {{file("a", "1"), file("b", "3")}}), "/flow/d/b");
  EXPECT_EQ(edited("/flow/d", {{file("a", "1"), file("b", "2"), file("c", "")}}),
            "/flow/d/c is new");
  EXPECT_EQ(edited("/flow/d", {{file("a", "1")}}), std::nullopt) << "a file was removed";
  EXPECT_EQ(edited("/flow/d", {{file(".", "1")}}), "/flow/d") << "a file in its place";
}

TEST_F(PlacedOutputsTest, AnotherProcessIsSeen) {
  ASSERT_TRUE(placed_.record(env_, "/flow/o", {{file(".", "1")}}));
  PlacedOutputs other("/state/cache");
  ASSERT_TRUE(other.record(env_, "/flow/o", {{file(".", "2")}}));
  EXPECT_FALSE(placed_.find_edit(env_, "/flow/o", {{file(".", "2")}}));
}

TEST_F(PlacedOutputsTest, ATornRecordCostsThatRecordAlone) {
  ASSERT_TRUE(placed_.record(env_, "/flow/o", {{file(".", "1")}}));
  const std::string text = *env_.find(record_file());
  env_.put(record_file(), text.substr(0, text.size() - 10));
  ASSERT_TRUE(PlacedOutputs("/state/cache").record(env_, "/flow/o", {{file(".", "2")}}));
  EXPECT_EQ(edited("/flow/o", {{file(".", "2")}}), std::nullopt);
  EXPECT_EQ(edited("/flow/o", {{file(".", "3")}}), "/flow/o");
}

TEST_F(PlacedOutputsTest, RecordsStayShort) {
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(
        PlacedOutputs("/state/cache").record(env_, "/flow/o", {{file(".", std::to_string(i))}}));
  EXPECT_LT(env_.find(record_file())->size(), 10'000U);
  EXPECT_EQ(edited("/flow/o", {{file(".", "999")}}), std::nullopt);
}

TEST_F(PlacedOutputsTest, RecordsOfFoldersThatAreGoneAreCollected) {
  ASSERT_TRUE(env_.make_directory("/gone", 0700));
  ASSERT_TRUE(placed_.record(env_, "/gone/d", {{file("a", "1")}}));
  ASSERT_TRUE(placed_.record(env_, "/flow/o", {{file(".", "1")}}));
  ASSERT_TRUE(env_.remove_tree("/gone"));
  ASSERT_TRUE(placed_.collect(env_));
  EXPECT_EQ(edited("/flow/o", {{file(".", "2")}}), "/flow/o");
  EXPECT_FALSE(PlacedOutputs("/state/cache").has(env_, "/gone/d"));
}

}  // namespace
}  // namespace berth::run
