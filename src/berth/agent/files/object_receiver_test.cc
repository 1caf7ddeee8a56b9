// Objects that come in pieces, by connections that break and by several at once.
#include "berth/agent/files/object_receiver.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "berth/base/digest.h"
#include "berth/fileset/objects.h"
#include "berth/testing/posix.h"

namespace berth::agent {
namespace {

class ObjectReceiverTest : public os::PosixTest {
 protected:
  ObjectReceiverTest() { EXPECT_TRUE(fileset::ObjectStore::open(*env_, store_)); }

  Piece piece(std::int64_t offset = 0) const {
    return {to_hex(sha256(text_)), false, offset, static_cast<std::int64_t>(text_.size())};
  }
  fileset::Fileset files() const {
    fileset::Entry entry;
    entry.path = "a.txt";
    entry.digest = sha256(text_);
    entry.size = static_cast<std::int64_t>(text_.size());
    return {{entry}};
  }
  std::vector<std::int64_t> missing() {
    std::vector<std::int64_t> offsets;
    const auto pieces = ObjectReceiver(*env_, store_).missing(files()).value();
    for (const auto& one : pieces) offsets.push_back(one.offset);
    return offsets;
  }
  bool whole() {
    const auto object = fileset::object_path(store_, sha256(text_), false);
    return env_->read_file(object, 100).value_or("") == text_;
  }

  const std::string store_ = path("store");
  const std::string text_ = "hello";
};

TEST_F(ObjectReceiverTest, ABrokenOneGoesOnBehindWhatHasCome) {
  EXPECT_EQ(missing(), std::vector<std::int64_t>{0});
  {
    ObjectReceiver first(*env_, store_);
    ASSERT_TRUE(first.begin(piece()));
    ASSERT_TRUE(first.add("he"));
  }
  EXPECT_EQ(missing(), std::vector<std::int64_t>{2});
  ObjectReceiver second(*env_, store_);
  ASSERT_TRUE(second.begin(piece(2)));
  EXPECT_TRUE(second.add("llo"));
  EXPECT_FALSE(second.open());
  EXPECT_TRUE(whole());
  EXPECT_TRUE(missing().empty());
}

TEST_F(ObjectReceiverTest, TwoAtOnceHaveAPartEach) {
  ObjectReceiver first(*env_, store_), second(*env_, store_);
  ASSERT_TRUE(first.begin(piece()));
  ASSERT_TRUE(first.add("he"));
  EXPECT_EQ(missing(), std::vector<std::int64_t>{0}) << "what another adds to is not ours";
  ASSERT_TRUE(second.begin(piece()));
  ASSERT_TRUE(second.add("hel"));
  ASSERT_TRUE(first.add("llo"));
  EXPECT_TRUE(whole());
  EXPECT_TRUE(second.add("lo"));
  EXPECT_TRUE(whole());
  EXPECT_TRUE(env_->list(store_ + "/incoming")->empty());
}

TEST_F(ObjectReceiverTest, APartThatIsNotAsItWasIsAskedForAgain) {
  ObjectReceiver receiver(*env_, store_);
  EXPECT_EQ(receiver.begin(piece(3)).error().kind, ErrorKind::io);
}

TEST_F(ObjectReceiverTest, WhatIsNotAsPromisedIsThrownAway) {
  ObjectReceiver receiver(*env_, store_);
  ASSERT_TRUE(receiver.begin(piece()));
  EXPECT_EQ(receiver.add("hallo").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(missing(), std::vector<std::int64_t>{0});
  ObjectReceiver other(*env_, store_);
  ASSERT_TRUE(other.begin(piece()));
  EXPECT_EQ(other.add("hello!").error().kind, ErrorKind::invalid) << "more than it has";
}

TEST_F(ObjectReceiverTest, AnObjectThatIsLargerThanTheFreeSpaceIsRefusedBeforeItsFirstByte) {
  ObjectReceiver receiver(*env_, store_);
  Piece large = piece();
  large.size = std::int64_t{1} << 60;
  const auto begun = receiver.begin(large);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind, ErrorKind::full);
  EXPECT_NE(begun.error().message.find("no space left in " + store_), std::string::npos);
  EXPECT_FALSE(env_->status(store_ + "/incoming"));
  EXPECT_FALSE(receiver.open());
}

TEST_F(ObjectReceiverTest, APartThatFindsNoRoomIsRemovedAndTheNextObjectComes) {
  ObjectReceiver receiver(*env_, store_);
  const std::string large(100'000, 'x');
  ASSERT_TRUE(receiver.begin({to_hex(sha256(large)), false, 0, std::ssize(large)}));
  ASSERT_TRUE(receiver.add(std::string_view(large).substr(0, 50'000)));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{60'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto added = receiver.add(std::string_view(large).substr(50'000));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, ErrorKind::full);
  EXPECT_TRUE(env_->list(store_ + "/incoming")->empty());
  ASSERT_TRUE(receiver.begin(piece()));
  EXPECT_TRUE(receiver.add(text_));
  EXPECT_TRUE(whole());
}

}  // namespace
}  // namespace berth::agent
