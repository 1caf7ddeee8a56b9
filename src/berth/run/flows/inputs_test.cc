// What a run takes in is what it was when it was first looked at.
#include "berth/run/flows/inputs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "berth/testing/fake_env.h"
#include "berth/testing/posix.h"

namespace berth::run {
namespace {

class InputsTest : public os::PosixTest {
 protected:
  InputsTest() : cache_(*fileset::ObjectStore::open(*env_, path("cache"))) {}
  void write(const std::string& name, std::string_view text) { std::ofstream(path(name)) << text; }
  fileset::ObjectStore cache_;
};

TEST_F(InputsTest, EachIsReadOnceHoweverManyThereAre) {
  Inputs inputs(*env_, cache_, directory_);
  std::vector<fileset::Fileset> first;
  for (int i = 0; i < 20; ++i) {
    write(std::to_string(i), "one");
    first.push_back(inputs.get(std::to_string(i)).value());
  }
  for (int i = 0; i < 20; ++i) write(std::to_string(i), "another");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(inputs.get(std::to_string(i)).value(), first[static_cast<std::size_t>(i)]);
  EXPECT_EQ(inputs.get("none").error().kind, ErrorKind::not_found);
}

TEST_F(InputsTest, WhatWasCollectedIsReadAgainUnlessItHasChanged) {
  Inputs inputs(*env_, cache_, directory_);
  write("a", "a");
  write("b", "b");
  const auto a = inputs.get("a").value();
  for (int i = 0; i < 20; ++i) {
    write(std::to_string(i), std::to_string(i));
    (void)inputs.get(std::to_string(i));
  }
  const auto b = inputs.get("b").value();
  ASSERT_TRUE(cache_.collect([](auto&) { return Status(); }));
  EXPECT_FALSE(cache_.hold(a)) << "its hold has gone to later ones";
  EXPECT_TRUE(cache_.hold(b));
  ASSERT_TRUE(inputs.restore("a"));
  EXPECT_TRUE(cache_.hold(a));
  write("a", "changed");
  EXPECT_EQ(inputs.restore("a").error().kind, ErrorKind::stale);
  EXPECT_EQ(inputs.get("a").value(), a);
}

TEST(Inputs, ATaskIsNamedOnceTheLastOfItsFilesIsReadAndEachIsReadOnce) {
  os::FakeEnv env;
  for (const auto* path : {"/state", "/work"}) (void)env.make_directory(path, 0700);
  for (const auto* name : {"a", "b"}) env.put(std::string("/work/") + name, name);
  auto cache = *fileset::ObjectStore::open(env, "/state/cache");
  Inputs inputs(env, cache, "/work");
  env.background_takes = std::chrono::seconds(1);
  const auto task = [](std::int64_t index, const std::vector<std::string>& worlds) {
    PreparedTask prepared{.index = {index}};
    for (const auto& world : worlds)
      prepared.spec.inputs.push_back({.place = world, .world = world});
    return prepared;
  };
  PreparedTask first = task(1, {"a", "b"}), second = task(2, {"b"}), third = task(3, {"none"});
  for (auto* each : {&first, &second, &third}) EXPECT_FALSE(inputs.fill(*each, true).value());
  EXPECT_EQ(inputs.oldest()->what, "reading /work/a");
  EXPECT_TRUE(inputs.turn().empty());
  env.freeze(std::chrono::seconds(1));
  EXPECT_EQ(inputs.turn(), (std::vector<flow::TaskIndex>{{2}, {1}, {3}}));
  EXPECT_FALSE(inputs.busy());
  EXPECT_TRUE(inputs.fill(first, true).value());
  ASSERT_TRUE(inputs.publish(first, "/work/task"));
  EXPECT_EQ(*env.find("/work/task/b"), "b");
  EXPECT_TRUE(inputs.fill(second, true).value());
  EXPECT_EQ(inputs.fill(third, true).error().kind, ErrorKind::not_found);
  EXPECT_FALSE(inputs.fill(third, true).value()) << "its error was told: it is read again";
}

}  // namespace
}  // namespace berth::run
