// What a far end says, to a TransferQueue that runs the real berth-agent there or a script in its
// place.
#include "berth/remote/transfer/transfer_queue.h"

#include <gtest/gtest.h>

#include "berth/agent/startup.h"
#include "berth/fileset/objects.h"
#include "berth/os/loop.h"
#include "berth/remote/clusters.h"
#include "berth/testing/posix.h"

namespace berth::remote {
namespace {

using agent::FrameKind;

class TransferQueueTest : public os::PosixTest {
 protected:
  TransferQueueTest() : agent_(agent_file(*env_).value()) {
    EXPECT_TRUE(env_->make_directory(path("there/berth"), 0700));
    EXPECT_TRUE(
        env_->symbolic_link(agent_.path, path("there/berth/agent-") + to_hex(agent_.digest)));
    EXPECT_TRUE(env_->make_directory(path("here"), 0700));
    put("content", content_);
    // One that says what it likes at its first word from here, if it was told to, and once.
    put("far",
        fmt::format("#!/bin/sh\ncd {} || exit\n"
                    "if mv says said 2>/dev/null; then\n"
                    "  printf '\\nberth-agent here\\n'; head -c 1 >/dev/null; cat said\n"
                    "  cat >taken; exit\nfi\n"
                    "exec env XDG_CACHE_HOME={} \"$@\"\n",
                    path(""), path("there")),
        0700);
  }

  static agent::Piece piece(const std::string& content) {
    return {to_hex(sha256(content)), false, 0, std::ssize(content)};
  }
  void open(const std::string& below = "", std::shared_ptr<Holders> holders = {}) {
    transfers_ = TransferQueue::open(*env_,
                                     {.transport = far_,
                                      .agent = agent_,
                                      .directory = path("there") + below,
                                      .store = path("here/objects"),
                                      .confirmed = false,
                                      .holders = std::move(holders)},
                                     [] {})
                     .value();
  }
  std::optional<Error> run(TransferRequest request) {
    transfers_->send(std::move(request));
    std::vector<Outcome> done;
    for (const Mono until = env_->now() + std::chrono::seconds(60); done.empty();) {
      if (env_->now() >= until) return Error{ErrorKind::busy, "it does not end"};
      EXPECT_TRUE(env_->loop().turn(until));
      std::ranges::move(transfers_->take_outcomes(), std::back_inserter(done));
    }
    return done[0].failed;
  }
  std::optional<Error> bring() {
    const auto failed = run({TransferRequest::Kind::bring, path("content"), "brought"});
    EXPECT_TRUE(failed || env_->read_file(path("there/brought"), 64 << 20) == content_);
    return failed;
  }

  const AgentFile agent_;
  const Transport far_{
      .name = "far", .words = {path("far")}, .direct = true, .address = "me@far:22"};
  const std::string content_ = std::string(5 << 20, 'x') + "end";
  std::unique_ptr<TransferQueue> transfers_;
};

TEST_F(TransferQueueTest, AnErrorBehindTheAnswerIsAnAnswerToNothing) {
  put("says", agent::encode(FrameKind::end, "") + agent::encode(FrameKind::error, "1 nonsense"));
  open();
  EXPECT_FALSE(run({TransferRequest::Kind::compare, "", path("content")}));
  EXPECT_EQ(bring(), std::nullopt);
}

TEST_F(TransferQueueTest, AnErrorWhileAnotherMachineSendsIsAnAnswerToNothing) {
  const Transport holder{.name = "holder", .words = {"/bin/false"}, .direct = true};
  const auto holders = std::make_shared<Holders>();
  fileset::Entry entry;
  entry.path = "x";
  entry.digest = sha256(content_);
  entry.size = std::ssize(content_);
  holders->add(holder, {{entry}});
  const std::string end = agent::encode(FrameKind::end, "");
  const std::string missing = agent::encode(FrameKind::missing, agent::to_text(piece(content_)));
  // What is missing; the nonce's; what is missing then, and that other one is asked to push.
  put("says", missing + end + end + missing + end + agent::encode(FrameKind::error, "1 nonsense"));
  open("", holders);
  EXPECT_EQ(bring(), std::nullopt);
}

/// After a power cut a file may be a part of what a task wrote.
TEST_F(TransferQueueTest, NothingIsFetchedFromAMachineThatWasStartedAnew) {
  for (const auto* name : {"there/agent", "there/work"})
    EXPECT_TRUE(env_->make_directory(path(name), 0700));
  put("there/work/out", "1");
  const auto fetch = [&](const std::string& host, const std::string& boot) {
    put("there/agent/agent.json", agent::to_json({env_->self(), boot, 1, {}, {}, host}));
    open("/work");
    return run({TransferRequest::Kind::fetch, path("fetched"), "out"});
  };
  EXPECT_EQ(fetch(env_->host_name(), env_->boot_id()), std::nullopt);
  EXPECT_EQ(fetch("another", "b-0"), std::nullopt) << "they share the directory";
  EXPECT_EQ(fetch("", "b-0"), std::nullopt) << "an older agent does not say where it is";
  const auto failed = fetch(env_->host_name(), "b-0");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, ErrorKind::stale);
}

TEST_F(TransferQueueTest, NothingIsSentButWhatWasOffered) {
  open();
  const std::string secret(10000, 's');
  auto store = fileset::ObjectStore::open(*env_, path("here/objects")).value();
  EXPECT_TRUE(store.capture(put("secret", secret), fileset::Expect::fresh));
  put("says", agent::encode(FrameKind::missing, agent::to_text(piece(secret))) +
                  agent::encode(FrameKind::end, ""));
  EXPECT_EQ(bring(), std::nullopt);
  EXPECT_EQ(env_->read_file(path("taken"), 1 << 20).value().find("ssss"), std::string::npos);
}

TEST_F(TransferQueueTest, AWrongBeginningThatAnotherMachineLeftThereIsSentAfresh) {
  EXPECT_TRUE(env_->make_directory(path("there/berth/objects/incoming"), 0700));
  put("there/berth/objects/incoming/" + piece(content_).digest + ".0", std::string(1 << 20, 'y'));
  open();
  EXPECT_EQ(bring(), std::nullopt);
}

}  // namespace
}  // namespace berth::remote
