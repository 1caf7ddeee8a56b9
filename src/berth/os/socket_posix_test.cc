// Unix sockets, real and fake: the same for whoever uses them.
#include <sys/stat.h>

#include "berth/testing/fake_env.h"
#include "berth/testing/posix.h"

namespace berth::os {
namespace {

class EnvPosixSocketTest : public PosixTest {};

void converse(Env& env, const std::string& path) {
  EXPECT_EQ(env.connect_local(path).error().kind, ErrorKind::not_found);
  const auto listener = env.listen_local(path);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_FALSE(env.accept_local(*listener)->has_value());
  const auto client = env.connect_local(path);
  ASSERT_TRUE(client) << client.error().message;
  std::array<Watch, 1> watch{Watch{listener->number()}};
  ASSERT_TRUE(env.wait(watch, env.now() + std::chrono::seconds(20)));
  ASSERT_TRUE(watch[0].ready);
  auto server = *env.accept_local(*listener);
  ASSERT_TRUE(server);
  std::array<char, 100> buffer;
  EXPECT_FALSE(env.read_some(*server, buffer)->has_value()) << "nothing is there yet";
  EXPECT_EQ(*env.write_some(*client, "hello"), 5U);
  EXPECT_EQ(*env.read_some(*server, buffer), 5U);
  EXPECT_EQ(std::string_view(buffer.data(), 5), "hello");

  std::size_t sent = 0;
  const std::string much(50'000, 'x');
  for (;;) {
    const auto put = env.write_some(*server, much);
    ASSERT_TRUE(put);
    if (!*put) break;
    sent += **put;
  }
  EXPECT_GT(sent, 50'000U);
  std::array<Watch, 1> room{Watch{server->number(), false}};
  ASSERT_TRUE(env.wait(room, env.now()));
  EXPECT_FALSE(room[0].ready);
  server->reset();
  std::size_t read = 0;
  for (;;) {
    const auto got = env.read_some(*client, buffer);
    ASSERT_TRUE(got && *got);
    if (**got == 0) break;
    read += **got;
  }
  EXPECT_EQ(read, sent) << "what was sent before the end comes before it";
  EXPECT_FALSE(env.write_some(*client, "x")) << "an error, and no signal";
}

TEST_F(EnvPosixSocketTest, Conversation) {
  converse(*env_, path("socket"));
}

TEST(FakeEnvSocket, Conversation) {
  FakeEnv env;
  converse(env, "/d/socket");
  EXPECT_EQ(env.descriptors(), 0U);
}

TEST_F(EnvPosixSocketTest, IsItsOwnersAloneAndReplacesAnOldOne) {
  const mode_t before = ::umask(0);
  auto first = env_->listen_local(path("socket"));
  ::umask(before);
  ASSERT_TRUE(first);
  EXPECT_EQ(env_->status(path("socket"))->mode, 0600U);
  first->reset();
  EXPECT_EQ(env_->connect_local(path("socket")).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(env_->listen_local(path("socket")));
}

TEST_F(EnvPosixSocketTest, APathMayBeLong) {
  std::string deep = directory_;
  for (int i = 0; i < 20; ++i) deep += "/a-rather-long-name-of-a-directory";
  ASSERT_TRUE(env_->make_directory(deep, 0700));
  converse(*env_, deep + "/socket");
}

}  // namespace
}  // namespace berth::os
