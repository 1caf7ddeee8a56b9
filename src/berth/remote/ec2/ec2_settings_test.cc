#include "berth/remote/ec2/ec2_settings.h"

#include <gtest/gtest.h>

#include "berth/testing/ec2.h"
#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

class Ec2SettingsTest : public testing::Test {
 protected:
  Result<Ec2Settings> read(const std::string& text) {
    return read_ec2_settings(env_, "cloud", *Field::parse(text, "clusters.yaml"));
  }
  std::string refusal(const std::string& text) {
    const auto settings = read(text);
    return settings ? "" : settings.error().message;
  }
  os::FakeEnv env_;
};

TEST_F(Ec2SettingsTest, AreReadWithTheirDefaults) {
  const auto settings = read(
      "{kind: ec2, region: eu-west-1, image: ami-1, types: [g5.xlarge, "
      "{type: my.own, cpu: 8, mem: 32Gi, price: 12.5}], budget: 500}");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->endpoint, "https://ec2.eu-west-1.amazonaws.com/");
  ASSERT_EQ(settings->types.size(), 2U);
  EXPECT_EQ(settings->types[0].gpu_model, "NVIDIA A10G");
  EXPECT_EQ(settings->types[1].price, 12'500);
  EXPECT_EQ(settings->end(), Ec2Settings::AtEnd::terminate);
  EXPECT_EQ(settings->most, 1U);
  env_.variables = {{"AWS_REGION", "us-east-1"}, {"AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:99"}};
  const auto named = read("{instances: [i-00000001, i-00000002]}");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->endpoint, "http://127.0.0.1:99/");
  EXPECT_EQ(named->end(), Ec2Settings::AtEnd::stop);
  EXPECT_EQ(named->most, 2U);
}

TEST_F(Ec2SettingsTest, APriceAboveZeroIsNeverFree) {
  const auto settings = read(
      "{region: eu-west-1, image: ami-1, types: [{type: a, cpu: 1, mem: 1Gi, price: 0.0001}, "
      "{type: b, cpu: 1, mem: 1Gi, price: 0}]}");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->types[0].price, 1);
  EXPECT_EQ(settings->types[1].price, 0);
}

TEST_F(Ec2SettingsTest, SayWhatIsWrong) {
  const std::string start = "{region: eu-west-1, image: ami-1, ";
  EXPECT_NE(refusal("{image: ami-1}").find("expected a region"), std::string::npos);
  EXPECT_NE(refusal("{region: eu-west-1}").find("either an image"), std::string::npos);
  EXPECT_NE(refusal(start + "instances: [i-1]}").find("either an image"), std::string::npos);
  EXPECT_NE(refusal(start + "endpoint: 'http://example.org'}").find("neither https"),
            std::string::npos);
  EXPECT_NE(refusal(start + "types: [g9.huge]}").find("does not know"), std::string::npos);
  EXPECT_NE(refusal(start + "user: '-oProxyCommand=x'}").find("expected letters"),
            std::string::npos);
  EXPECT_NE(refusal(start + "key_name: 'a b;c'}").find("expected letters"), std::string::npos);
  EXPECT_NE(refusal(start + "types: [{type: a, cpu: 1, mem: 1Gi}], budget: 5}").find("the price"),
            std::string::npos);
  EXPECT_NE(refusal(start + "at_end: keep}").find("only instances named"), std::string::npos);
  EXPECT_NE(refusal(start + "typs: []}").find("types"), std::string::npos);
}

TEST_F(Ec2SettingsTest, CredentialsComeFromTheEnvironmentOrAProfile) {
  env_.variables = {
      {"HOME", "/home/a"}, {"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SECRET_ACCESS_KEY", "S"}};
  env_.put(
      "/home/a/.aws/credentials",
      "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B\n"
      "[ work ]\naws_access_key_id=C\naws_secret_access_key = D=\naws_session_token = E\n[half]\n"
      "aws_access_key_id = F\n");
  EXPECT_EQ(find_credentials(env_, "")->key_id, "ID");
  EXPECT_EQ(find_credentials(env_, "work")->secret, "D=");
  EXPECT_EQ(find_credentials(env_, "work")->session_token, "E");
  env_.variables.erase("AWS_ACCESS_KEY_ID");
  EXPECT_EQ(find_credentials(env_, "")->secret, "B");
  env_.variables["AWS_PROFILE"] = "work";
  EXPECT_EQ(find_credentials(env_, "")->key_id, "C");
  EXPECT_EQ(find_credentials(env_, "half").error().kind, ErrorKind::denied);
  env_.variables["AWS_SHARED_CREDENTIALS_FILE"] = "/none";
  const auto none = find_credentials(env_, "");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("AWS_ACCESS_KEY_ID"), std::string::npos);
}

TEST(Ec2Types, TheCheapestForWhatIsWishedComesFirst) {
  EXPECT_EQ(fitting(known_ec2_types(), wish(1, 1, 0)).front().name, "t3.medium");
  EXPECT_EQ(fitting(known_ec2_types(), wish(1, 1, 1)).front().name, "g4dn.xlarge");
  EXPECT_EQ(fitting(known_ec2_types(), wish(1, 1, 1, 20)).front().name, "g6.xlarge");
  EXPECT_EQ(fitting(known_ec2_types(), wish(1, 1, 8, 60)).front().name, "p4de.24xlarge");
  EXPECT_TRUE(fitting(known_ec2_types(), wish(1, 1, 9)).empty());
  EXPECT_TRUE(fitting(known_ec2_types(), wish(1000, 1, 0)).empty());
  cluster::Wish large = wish(1, 1, 1);
  large.selection.memory_min = std::int64_t{30} << 30;
  EXPECT_EQ(fitting(known_ec2_types(), large).front().name, "p4d.24xlarge") << "whole";
  large.selection.memory_min = std::int64_t{100} << 30;
  EXPECT_TRUE(fitting(known_ec2_types(), large).empty());
  // Side by side the price of each counts.
  EXPECT_EQ(how_often(fitting(known_ec2_types(), wish(8, 4, 0)).front(), wish(8, 4, 0)), 1);
}

}  // namespace
}  // namespace berth::remote
