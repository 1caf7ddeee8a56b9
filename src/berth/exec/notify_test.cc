#include "berth/exec/notify.h"

#include <gtest/gtest.h>

namespace berth::exec {
namespace {

Result<std::vector<Notify>> read(const std::string& text) {
  const auto field = Field::parse(text, "f.yaml");
  if (!field) return std::unexpected(field.error());
  return read_notify(*field);
}

TEST(Notify, ComesBackAsItWas) {
  const auto list = read(R"(notify:
  - {run: 'echo "$BERTH_TEXT" > told', on: stalled, stalled_after: 90s}
  - {run: [./tell, 'a "b"'], on: [end, first_result, end]}
  - {webhook: 'https://host/hook?token=1', secret_file: ../secret}
  - {mail: me@example.com}
)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 4U);
  EXPECT_EQ((*list)[0].stalled_after, std::chrono::seconds(90));
  EXPECT_EQ((*list)[1].on, (std::vector{Notify::Event::end, Notify::Event::first_result}));
  EXPECT_EQ((*list)[3].on, (std::vector{Notify::Event::end, Notify::Event::failure}));
  const auto again = notify_from(to_json(*list));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *list);
  EXPECT_EQ(read("notify: {mail: a@b}")->size(), 1U);
  EXPECT_TRUE(read("a: 1")->empty());
}

TEST(Notify, SaysWhatIsWrong) {
  for (const auto& [text, said] :
       {std::pair("{}", "expected one of run, webhook and mail"),
        {"{run: a, mail: a@b}", "expected one of run, webhook and mail"},
        {"{mail: me}", "expected an address"},
        {"{mail: '-oQ/tmp@x'}", "expected an address"},
        {"{mail: 'a@b, c@d'}", "expected an address"},
        {"{webhook: 'ftp://host/x'}", "expected an http or https URL"},
        {"{webhook: 's3://bucket/x'}", "expected an http or https URL"},
        {"{run: a, secret_file: s}", "only a webhook is signed"},
        {"{run: a, on: begin}", "expected one of end, failure, first_result, stalled"},
        {"{run: a, on: []}", "expected at least one"},
        {"{run: a, stalled_after: 0s}", "stalled_after"},
        {"{ran: a}", "did you mean 'run'?"}}) {
    const auto list = read(std::string("notify: ") + text);
    ASSERT_FALSE(list) << text;
    EXPECT_NE(list.error().message.find(said), std::string::npos) << list.error().message;
  }
}

TEST(Notify, OptionsNameTheSame) {
  EXPECT_EQ(notify_of_option("mail:me@example.com")->mail, "me@example.com");
  EXPECT_EQ(notify_of_option("http://localhost:1/a")->webhook, "http://localhost:1/a");
  EXPECT_EQ(notify_of_option("./tell.sh it")->run.text, "./tell.sh it");
  for (const char* wrong : {"", " ", "mail:", "mail:me", "ftp://host/a"})
    EXPECT_FALSE(notify_of_option(wrong)) << wrong;
}

/// The test cases 1 and 6 of RFC 4231.
TEST(Notify, SignsAsHmacDoes) {
  EXPECT_EQ(signature(std::string(20, '\x0b'), "Hi There"),
            "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(
      signature(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace berth::exec
