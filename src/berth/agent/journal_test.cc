#include "berth/agent/journal.h"

#include <gtest/gtest.h>

#include "berth/agent/protocol/protocol.h"
#include "berth/base/rng.h"
#include "berth/testing/fake_env.h"

namespace berth::agent {
namespace {

const std::string kDirectory = "/agent";

exec::Output output(std::int64_t token, std::string bytes) {
  return {{1}, {token}, exec::Stream::out, std::move(bytes)};
}
std::vector<std::int64_t> tokens(const UnacknowledgedJournal& unacknowledged) {
  std::vector<std::int64_t> tokens;
  for (const auto& [_, message] : unacknowledged.messages)
    tokens.push_back(std::visit([](const auto& one) { return one.token.value; }, message));
  return tokens;
}
std::vector<std::int64_t> from_to(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> numbers;
  for (auto i = first; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

struct World {
  World() { EXPECT_TRUE(env.make_directory(kDirectory, 0700)); }
  std::vector<std::int64_t> left() {
    const auto unacknowledged = read_journal(env, kDirectory);
    EXPECT_TRUE(unacknowledged) << unacknowledged.error().message;
    EXPECT_EQ(unacknowledged->unreadable, 0U);
    return tokens(*unacknowledged);
  }
  os::FakeEnv env;
  Journal journal{env, kDirectory};
};

TEST(AgentJournal, KeepsWhatIsNotAcknowledged) {
  World world;
  EXPECT_TRUE(world.left().empty());
  for (std::int64_t i = 1; i <= 5; ++i) world.journal.append(output(i, "x"));
  world.journal.write();
  EXPECT_EQ(world.left(), from_to(1, 5));
  ASSERT_TRUE(world.journal.acknowledge(3));
  world.journal.write();
  EXPECT_EQ(world.left(), from_to(4, 5));
  EXPECT_EQ(world.journal.acknowledge(6).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(world.journal.acknowledge(2)) << "an old word changes nothing";
  EXPECT_EQ(world.journal.acknowledged(), 3);
  ASSERT_TRUE(world.journal.acknowledge(5));
  world.journal.write();
  EXPECT_TRUE(world.left().empty());
}

/// They took the room that they waited for.
TEST(AgentJournal, WhatIsAcknowledgedDoesNotWaitForRoom) {
  World world;
  world.journal.append(output(1, "x"));
  world.journal.write();
  world.env.fault = [](std::string_view call) -> std::optional<Error> {
    if (call == "write_all") return Error{ErrorKind::full, "no"};
    return std::nullopt;
  };
  world.journal.append(output(2, "y"));
  ASSERT_TRUE(world.journal.acknowledge(1));
  world.journal.write();
  EXPECT_GT(world.journal.unwritten(), 0U) << "the second is in memory alone";
  ASSERT_TRUE(world.journal.acknowledge(2));
  world.journal.write();
  EXPECT_EQ(world.journal.unwritten(), 0U);
  EXPECT_EQ(world.journal.begin(), world.journal.end());
  EXPECT_EQ(world.env.find(kDirectory + "/journal.1"), nullptr);
  world.env.fault = nullptr;
  const auto position = world.journal.end();
  world.journal.append(output(3, "z"));
  world.journal.write();
  EXPECT_EQ(world.left(), from_to(3, 3));
  EXPECT_NE(world.journal.read_lines(position, 1000)->find("\"number\":3"), std::string::npos);
}

TEST(AgentJournal, FilesGoWhenAllInThemIsAcknowledged) {
  World world;
  const std::string chunk(100'000, 'x');
  std::string all;
  for (std::int64_t i = 1; i <= 100; ++i) {
    world.journal.append(output(i, chunk));
    world.journal.write();
    ASSERT_TRUE(world.journal.acknowledge(i - 1));
    EXPECT_LE(world.journal.end() - world.journal.begin(), 2'300'000) << i;
  }
  world.journal.write();
  EXPECT_LE(world.env.list(kDirectory)->size(), 3U);
  EXPECT_EQ(world.left(), from_to(100, 100));
  EXPECT_LE(world.env.descriptors(), 2U);
}

TEST(AgentJournal, ReadsWholeLinesAcrossFilesAndWhatIsNotWrittenYet) {
  World world;
  Rng rng(1);
  std::string all;
  for (std::int64_t i = 1; i <= 60; ++i) {
    const auto message = output(i, std::string(rng.below(200'000), 'x'));
    world.journal.append(message);
    all += encode(i, message) + "\n";
    if (i < 58 && rng.below(3) == 0) world.journal.write();
  }
  ASSERT_GT(world.journal.unwritten(), 0U);
  std::string read;
  while (world.journal.begin() + static_cast<std::int64_t>(read.size()) < world.journal.end()) {
    const auto lines =
        world.journal.read_lines(static_cast<std::int64_t>(read.size()), 1 + rng.below(300'000));
    ASSERT_TRUE(lines);
    ASSERT_TRUE(lines->ends_with('\n'));
    read += *lines;
  }
  EXPECT_TRUE(read == all);
}

TEST(AgentJournal, TornAtAnyByteItLosesOnlyTheTornLine) {
  World world;
  for (std::int64_t i = 1; i <= 4; ++i) world.journal.append(output(i, "some\nbytes"));
  ASSERT_TRUE(world.journal.acknowledge(1));
  world.journal.append(output(5, "last"));
  world.journal.write();
  const std::string whole = *world.env.find(kDirectory + "/journal.1");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    world.env.put(kDirectory + "/journal.1", whole.substr(0, size));
    const auto lines =
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    // The fifth line is the acknowledgement of the first message.
    const auto wanted = lines < 5 ? from_to(1, lines) : from_to(2, lines - 1);
    EXPECT_EQ(world.left(), wanted) << size;
  }
}

TEST(AgentJournal, DamageElsewhereLosesOnlyThatLine) {
  World world;
  for (std::int64_t i = 1; i <= 3; ++i) world.journal.append(output(i, "x"));
  world.journal.write();
  std::string text = *world.env.find(kDirectory + "/journal.1");
  text[text.find('\n') + 5] = '\x01';
  world.env.put(kDirectory + "/journal.1", text);
  const auto unacknowledged = read_journal(world.env, kDirectory);
  ASSERT_TRUE(unacknowledged);
  EXPECT_EQ(tokens(*unacknowledged), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(unacknowledged->unreadable, 1U);
}

/// A disk on which writing and taking back fail now and then, half of the writes half-way.
TEST(AgentJournal, NothingIsLostOrTwiceOnADiskThatFails) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    struct TornEnv final : os::FakeEnv {
      using FakeEnv::FakeEnv;
      Status write_all(const os::Fd& fd, std::string_view bytes) override {
        if (chance->below(3) != 0) return FakeEnv::write_all(fd, bytes);
        (void)FakeEnv::write_all(fd, bytes.substr(0, chance->below(bytes.size() + 1)));
        return fail(ErrorKind::full, "no space left");
      }
      Rng* chance = nullptr;
    };
    Rng rng(seed);
    TornEnv env;
    env.chance = &rng;
    ASSERT_TRUE(env.make_directory(kDirectory, 0700));
    env.fault = [&](std::string_view call) -> std::optional<Error> {
      const bool fails = (call == "truncate" || call == "open_append") && rng.below(3) == 0;
      return fails ? std::optional(Error{ErrorKind::full, "no space left"}) : std::nullopt;
    };
    Journal journal(env, kDirectory);
    for (std::int64_t i = 1; i <= 30; ++i) {
      journal.append(output(i, std::string(rng.below(100), 'x')));
      journal.write();
      const auto up_to = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(i)));
      if (rng.below(4) == 0) {
        ASSERT_TRUE(journal.acknowledge(up_to));
      }
    }
    while (journal.unwritten() > 0) journal.write();
    env.fault = nullptr;
    const auto unacknowledged = read_journal(env, kDirectory);
    ASSERT_TRUE(unacknowledged);
    EXPECT_EQ(tokens(*unacknowledged), from_to(journal.acknowledged() + 1, 30)) << "seed " << seed;
    std::string sent;
    for (auto at = journal.begin(); at < journal.end();) {
      const auto lines = journal.read_lines(at, 50);
      ASSERT_TRUE(lines);
      sent += *lines;
      at += static_cast<std::int64_t>(lines->size());
    }
    for (auto number = journal.acknowledged() + 1; number <= 30; ++number)
      EXPECT_NE(sent.find(fmt::format("\"number\":{},", number)), std::string::npos) << number;
  }
}

TEST(AgentJournal, IsNotReadWhileItsAgentLives) {
  World world;
  const auto lock = world.env.lock(kDirectory + "/lock", false);
  EXPECT_EQ(read_journal(world.env, kDirectory).error().kind, ErrorKind::busy);
}

}  // namespace
}  // namespace berth::agent
