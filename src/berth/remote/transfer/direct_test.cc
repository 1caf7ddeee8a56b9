// Objects from one machine straight to another: two stores here, joined by the real berth-agent on
// either side, with a program in the place of ssh.
#include "berth/remote/transfer/direct.h"

#include <gtest/gtest.h>

#include "berth/agent/files/push.h"
#include "berth/base/text.h"
#include "berth/fileset/objects.h"
#include "berth/os/loop.h"
#include "berth/remote/clusters.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/posix.h"

namespace berth::remote {
namespace {

Transport transport(const std::string& name, bool direct = true) {
  return {.name = name, .words = {"ssh", "--", name}, .shell = true, .direct = direct};
}

fileset::Entry file(const std::string& path, const std::string& content, std::int64_t size) {
  fileset::Entry entry;
  entry.path = path;
  entry.digest = sha256(content);
  entry.size = size;
  return entry;
}

agent::Piece piece(const std::string& content, std::int64_t size, std::int64_t offset = 0) {
  return {to_hex(sha256(content)), false, offset, size};
}

TEST(Holders, NameWhoHasTheMostOfWhatIsLacking) {
  constexpr std::int64_t kMuch = Holders::kLeast;
  Holders holders;
  holders.add(transport("a"), {{file("x", "x", kMuch)}});
  holders.add(transport("b"), {{file("x", "x", kMuch), file("y", "y", kMuch)}});
  const std::vector lacking{piece("x", kMuch), piece("y", kMuch), piece("z", kMuch)};
  const auto found = holders.find(transport("c"), lacking);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->transport.name, "b");
  EXPECT_EQ(found->objects.entries.size(), 2U);
  EXPECT_TRUE(fileset::parse_fileset(fileset::to_text(found->objects)));
  EXPECT_EQ(holders.find(transport("b"), lacking)->transport.name, "a")
      << "not the one that lacks it";
}

TEST(Holders, AskNobodyForWhatIsSoonBroughtFromHere) {
  constexpr std::int64_t kMuch = Holders::kLeast;
  Holders holders;
  holders.add(transport("a"), {{file("x", "x", kMuch)}});
  EXPECT_TRUE(holders.find(transport("b"), std::vector{piece("x", kMuch)}));
  EXPECT_FALSE(holders.find(transport("b"), std::vector{piece("x", kMuch, 1)}));
}

TEST(Holders, AskNobodyTwiceWhoRefused) {
  constexpr std::int64_t kMuch = Holders::kLeast;
  Holders holders;
  holders.add(transport("a"), {{file("x", "x", kMuch)}});
  const std::vector lacking{piece("x", kMuch)};
  const auto told = holders.refuse(transport("a"), transport("b"), {ErrorKind::io, "no route"});
  EXPECT_EQ(told,
            "files from a to b go through this machine: no route (direct copying was tried because "
            "of direct: true)");
  EXPECT_FALSE(holders.find(transport("b"), lacking));
  EXPECT_TRUE(holders.find(transport("c"), lacking)) << "it may reach another";
}

TEST(Holders, KeepOutOfItWhoIsNotToTakePart) {
  constexpr std::int64_t kMuch = Holders::kLeast;
  Holders holders;
  holders.add(transport("a", false), {{file("x", "x", kMuch)}});
  holders.add(transport("b"), {{file("y", "y", kMuch)}});
  EXPECT_FALSE(holders.find(transport("c"), std::vector{piece("x", kMuch)}));
  EXPECT_FALSE(holders.find(transport("c", false), std::vector{piece("y", kMuch)}));
}

TEST(PushRequest, IsReadAsItWasWritten) {
  const agent::PushRequest request{{"ssh", "--", "h", "'a\n\"b'"}, sha256("nonce")};
  const auto again = agent::parse_push(agent::to_json(request));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, request);
  for (const auto* wrong : {"", "{}", R"({"command":[],"nonce":"00"})", R"({"command":["a"]})",
                            R"({"command":["a"],"nonce":"x"})"})
    EXPECT_FALSE(agent::parse_push(wrong)) << wrong;
}

TEST(PushOfLittle, IsGivenUpWhereAHostTalksAndNothingMoves) {
  os::FakeEnv env;
  os::Fd far;
  env.program = [](const os::SpawnSpec&) { return os::FakeProgram{}; };
  env.talk = [&](const os::SpawnSpec&, os::Fd end) {
    (void)env.write_some(end, std::string(agent::kHere) + "\n");
    far = std::move(end);
  };
  Transport to = transport("to");
  to.address = "me@to:22";
  Push push(env,
            {.from = transport("from"),
             .to = to,
             .agent = {},
             .directory = "/",
             .nonce = sha256("nonce"),
             .objects = {{file("x", "x", Holders::kLeast)}}},
            [] {});
  const Mono until = env.now() + std::chrono::minutes(10);
  for (bool here = false; !push.over() && env.now() < until; here = true) {
    if (here) (void)env.write_some(far, agent::encode(agent::FrameKind::sent, "0"));
    ASSERT_TRUE(env.loop().turn(env.now()));
    env.freeze(std::chrono::seconds(1));
  }
  ASSERT_TRUE(push.over());
  EXPECT_TRUE(push.over()->error().message.starts_with("nothing moved for 2m"))
      << push.over()->error().message;
}

class DirectPosixTest : public os::PosixTest {
 protected:
  DirectPosixTest() : agent_(agent_file(*env_).value()) {
    EXPECT_TRUE(env_->make_directory(path("bin"), 0700));
    EXPECT_TRUE(env_->make_directory(path("to/berth"), 0700));
    EXPECT_TRUE(env_->symbolic_link(agent_.path, path("to/berth/agent-") + to_hex(agent_.digest)));
    EXPECT_TRUE(env_->make_directory(path("work"), 0700));
    ssh("exec env XDG_CACHE_HOME=" + path("to") + " /bin/sh -c \"$*\"");
    keep("from", content_);
    keep("to", nonce_);
  }

  /// What stands in its place, behind host and options.
  void ssh(const std::string& does) {
    put("bin/ssh", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift 2\n" + does + "\n",
        0700);
  }
  fileset::ObjectStore store(const std::string& side) {
    return fileset::ObjectStore::open(*env_, path(side + "/berth/objects")).value();
  }
  void keep(const std::string& side, const std::string& text) {
    EXPECT_TRUE(env_->make_directory(path(side + "/berth"), 0700));
    EXPECT_TRUE(store(side).capture(put("content", text), fileset::Expect::fresh));
  }
  fileset::Fileset objects() const { return {{file("one", content_, std::ssize(content_))}}; }
  bool arrived() { return store("to").hold(objects()).has_value(); }

  Status push(Transport to = {.name = "to",
                              .words = {"ssh", "--", "to"},
                              .shell = true,
                              .direct = true,
                              .address = "me@to:22"}) {
    Push push(*env_,
              {.from = {.name = "from",
                        .words = {"env", "XDG_CACHE_HOME=" + path("from"),
                                  "PATH=" + path("bin") + ":/usr/bin:/bin"},
                        .direct = true},
               .to = std::move(to),
               .agent = agent_,
               .directory = path("work"),
               .nonce = sha256(nonce_),
               .objects = objects()},
              [] {});
    const Mono until = env_->now() + std::chrono::seconds(60);
    while (!push.over() && env_->now() < until) {
      EXPECT_TRUE(env_->loop().turn(until));
    }
    moved_ = push.moved();
    return push.over().value_or(fail(ErrorKind::busy, "it does not end"));
  }

  const AgentFile agent_;
  const std::string content_ = std::string(5 << 20, 'x') + "end";
  const std::string nonce_ = "0123456789abcdef0123456789abcdef";
  std::int64_t moved_ = 0;
};

TEST_F(DirectPosixTest, WhatIsMissingArrives) {
  const auto pushed = push();
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_TRUE(arrived());
  EXPECT_EQ(moved_, std::ssize(content_));
  ASSERT_TRUE(push());
  EXPECT_EQ(moved_, 0) << "it is there";
}

TEST_F(DirectPosixTest, NothingGoesToAMachineThatLacksTheNonce) {
  ASSERT_TRUE(fileset::remove_all(
      *env_, fileset::object_path(path("to/berth/objects"), sha256(nonce_), false)));
  EXPECT_EQ(push().error().kind, ErrorKind::denied);
  EXPECT_FALSE(arrived());
  EXPECT_FALSE(env_->status(path("to/berth/objects/incoming")));
}

TEST_F(DirectPosixTest, NothingGoesToAMachineThatLies) {
  const auto object = fileset::object_path(path("to/berth/objects"), sha256(nonce_), false);
  ASSERT_TRUE(fileset::remove_all(*env_, object));
  ASSERT_TRUE(env_->replace_file(object, std::string(agent::kNonceBytes, '0'), 0600));
  EXPECT_EQ(push().error().kind, ErrorKind::denied);
  EXPECT_FALSE(arrived());
}

TEST_F(DirectPosixTest, NothingIsBroughtToAMachineThatLacksTheAgent) {
  ASSERT_TRUE(fileset::remove_all(*env_, path("to/berth")));
  const auto pushed = push();
  ASSERT_FALSE(pushed);
  EXPECT_NE(pushed.error().message.find("cannot be found"), std::string::npos)
      << pushed.error().message;
  EXPECT_FALSE(env_->status(path("to/berth")));
}

TEST_F(DirectPosixTest, WhatSshComplainsOfIsTold) {
  ssh("echo 'Host key verification failed.' >&2; exit 255");
  EXPECT_EQ(push().error().message, "Host key verification failed.");
}

TEST_F(DirectPosixTest, AnAddressThatCannotBeHadIsTold) {
  const auto pushed = push({.name = "to",
                            .words = {"ssh", "-F", path("none"), "--", "to"},
                            .shell = true,
                            .direct = true});
  ASSERT_FALSE(pushed);
  EXPECT_TRUE(pushed.error().message.starts_with("ssh -G reports no address of to: "))
      << pushed.error().message;
}

TEST_F(DirectPosixTest, AProgramThatIsNotThereIsTold) {
  put("bin/ssh", "#!/nowhere/sh\n", 0700);
  EXPECT_FALSE(push());
}

TEST_F(DirectPosixTest, AConnectionThatBreaksIsTold) {
  ssh("printf '\\nberth-agent here\\n'; head -c 5 >/dev/null");
  EXPECT_EQ(push().error().kind, ErrorKind::io);
}

TEST_F(DirectPosixTest, AHolderSendsNothingButWhatItWasAskedToSend) {
  const std::string secret(10000, 's');
  keep("from", secret);
  const std::string end = agent::encode(agent::FrameKind::end, "");
  put("says", agent::encode(agent::FrameKind::data, nonce_) + end +
                  agent::encode(agent::FrameKind::missing,
                                agent::to_text(piece(secret, std::ssize(secret)))) +
                  end);
  ssh(fmt::format("printf '\\nberth-agent here\\n'; head -c 1 >/dev/null; cat {0}; cat >{1}",
                  path("says"), path("taken")));
  const auto pushed = push();
  EXPECT_EQ(pushed.error().kind, ErrorKind::invalid) << pushed.error().message;
  EXPECT_NE(pushed.error().message.find("not offered"), std::string::npos);
  EXPECT_EQ(env_->read_file(path("taken"), 1 << 20).value().find("ssss"), std::string::npos);
}

TEST_F(DirectPosixTest, TheHolderReadsNothingBeforeItSends) {
  const auto object = fileset::object_path(path("from/berth/objects"), sha256(content_), false);
  ASSERT_TRUE(fileset::remove_all(*env_, object));
  ASSERT_TRUE(env_->replace_file(object, std::string(content_.size(), 'y'), 0600));
  EXPECT_EQ(push().error().kind, ErrorKind::corrupt) << "who takes it reads it";
  EXPECT_TRUE(env_->list(path("to/berth/objects/incoming"))->empty());
  EXPECT_FALSE(arrived());
}

TEST_F(DirectPosixTest, WhatTheHolderLostIsTold) {
  ASSERT_TRUE(fileset::remove_all(
      *env_, fileset::object_path(path("from/berth/objects"), sha256(content_), false)));
  EXPECT_EQ(push().error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace berth::remote
