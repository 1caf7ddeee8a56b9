// Requests as botocore's model and signer judge them: the real client against tests/ec2_fake.py.
#include <gtest/gtest.h>

#include <csignal>

#include "berth/os/spawn.h"
#include "berth/remote/ec2/ec2_api.h"
#include "berth/remote/ec2/ec2_settings.h"
#include "paths.h"

namespace berth::remote {
namespace {

using namespace std::chrono_literals;

/// The fake endpoint, as a child, for as long as it lives.
class Endpoint {
 public:
  explicit Endpoint(os::Env& env) : env_(env) {
    // Its end is that of its standard input, which for spawn()'s children is at its end at once.
    const std::string keep = "sleep 60 | " + tests::source_path("tests/ec2_fake.py");
    os::SpawnSpec spec;
    spec.argv = {"/bin/sh", "-c", keep};
    spec.environment = env.environment();
    spec.directory = "/";
    auto child = env.spawn(spec);
    if (!child) return;
    child_ = *std::move(child);
    std::string text;
    char buffer[64];
    while (!text.ends_with('\n')) {
      os::Watch watch{child_.out.number()};
      (void)env.wait({&watch, 1}, env.now() + 20s);
      const auto some = env.read_some(child_.out, buffer);
      if (!some || !*some || **some == 0) return;
      text.append(buffer, **some);
    }
    text.pop_back();
    url = "http://127.0.0.1:" + text + "/";
  }
  ~Endpoint() {
    if (child_.pid != 0) (void)env_.signal_group(child_.pid, SIGKILL);
  }
  std::string url;

 private:
  os::Env& env_;
  os::Child child_;
};

class Ec2Http : public testing::Test {
 protected:
  Ec2Api api(const Credentials& credentials, const std::string& url) {
    const Cloud* cloud = *load_cloud(*env_);
    return {*env_, *cloud,
            cloud->open({.url = url, .region = "eu-west-1", .credentials = credentials}), url};
  }
  Result<Xml> ask(Ec2Api& api, const std::string& action, Ec2Parameters parameters) {
    Result<Xml> result = fail(ErrorKind::io, "no answer");
    api.call(action, std::move(parameters), [&](Result<Xml> came) { result = std::move(came); });
    (void)api.finish(20s);
    return result;
  }
  static Ec2Parameters run() {
    return {{"ImageId", "ami-0123"},
            {"InstanceType", "t3.medium"},
            {"MinCount", "1"},
            {"MaxCount", "1"},
            {"ClientToken", "token 1/ü+&=~*"},
            {"TagSpecification.1.ResourceType", "instance"},
            {"TagSpecification.1.Tag.1.Key", "berth run"},
            {"TagSpecification.1.Tag.1.Value", "digits-3 (%2F) ünï"}};
  }

  std::unique_ptr<os::Env> env_ = os::posix_env();
  Endpoint endpoint_{*env_};
  Credentials right_{"AKIAFAKE", "secret/with+signs=", ""};
};

TEST_F(Ec2Http, IsUnderstoodAndSignedAsBotocoreWants) {
  ASSERT_FALSE(endpoint_.url.empty());
  auto right = api(right_, endpoint_.url);
  const auto made = ask(right, "RunInstances", run());
  ASSERT_TRUE(made) << made.error().message;
  const auto page = read_instances(*made);
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->instances.size(), 1U);
  EXPECT_EQ(page->instances[0].client_token, "token 1/ü+&=~*");
  EXPECT_EQ(page->instances[0].tags.at(0).second, "digits-3 (%2F) ünï");
  const auto described =
      ask(right, "DescribeInstances",
          {{"Filter.1.Name", "tag:berth run"}, {"Filter.1.Value.1", "digits-3 (%2F) ünï"}});
  ASSERT_TRUE(described) << described.error().message;
  EXPECT_EQ(read_instances(*described)->instances.at(0).id, page->instances[0].id);
  EXPECT_TRUE(ask(right, "TerminateInstances",
                  {{"InstanceId.1", page->instances[0].id}, {"DryRun", "true"}}));

  const auto unknown = ask(right, "RunInstances", {{"Colour", "red"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::invalid);
  const auto missing = ask(right, "TerminateInstances", {{"InstanceId.1", "i-00000000000000000"}});
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
}

TEST_F(Ec2Http, SaysThatCredentialsAreWrongWithoutShowingThem) {
  ASSERT_FALSE(endpoint_.url.empty());
  for (const Credentials& wrong : {Credentials{"AKIAFAKE", "not-the-secret", ""},
                                   Credentials{"AKIAOTHER", "secret/with+signs=", ""},
                                   Credentials{"AKIAFAKE", "secret/with+signs=", "a-token"}}) {
    auto refused = api(wrong, endpoint_.url);
    const auto answer = ask(refused, "DescribeInstances", {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::denied);
    EXPECT_NE(answer.error().message.find("are key and secret right?"), std::string::npos)
        << answer.error().message;
    for (const auto& secret : {wrong.secret, right_.secret, std::string("a-token")})
      EXPECT_EQ(answer.error().message.find(secret), std::string::npos) << answer.error().message;
  }
}

TEST_F(Ec2Http, ANetworkThatIsAwayIsToldPlainly) {
  auto nowhere = api(right_, "http://127.0.0.1:1/");
  nowhere.call("DescribeInstances", {}, [](const Result<Xml>&) { FAIL() << "given up at once"; });
  EXPECT_FALSE(nowhere.finish(1500ms));  // it is tried again
  auto wrong = api(right_, "gopher://127.0.0.1:1/");
  const auto answer = ask(wrong, "DescribeInstances", {});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("EC2 does not answer at gopher"), std::string::npos)
      << answer.error().message;
}

}  // namespace
}  // namespace berth::remote
