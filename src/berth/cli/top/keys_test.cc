#include "berth/cli/top/keys.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::cli {
namespace {

using Kind = KeyPress::Kind;

std::vector<KeyPress> keys_of(std::string_view bytes) {
  Keys keys;
  auto found = keys(bytes);
  for (auto& key : keys.end()) found.push_back(std::move(key));
  return found;
}

TEST(Keys, AreWhatTerminalsSend) {
  EXPECT_EQ(keys_of("\x1b[A\x1b[B\x1bOC\x1bOD"),
            (std::vector<KeyPress>{{Kind::up}, {Kind::down}, {Kind::right}, {Kind::left}}));
  EXPECT_EQ(keys_of("\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[1;5A"),
            (std::vector<KeyPress>{
                {Kind::page_up}, {Kind::page_down}, {Kind::home}, {Kind::end}, {Kind::up}}));
  EXPECT_EQ(keys_of("\x1bOP\x1b[11~\x1b[[A\x1b[21~"),
            (std::vector<KeyPress>{{Kind::function, "1"},
                                   {Kind::function, "1"},
                                   {Kind::function, "1"},
                                   {Kind::function, "10"}}));
  EXPECT_EQ(keys_of("a\u00e9\r\t\x7f"), (std::vector<KeyPress>{{Kind::text, "a"},
                                                               {Kind::text, "\u00e9"},
                                                               {Kind::enter},
                                                               {Kind::tab},
                                                               {Kind::backspace}}));
}

TEST(Keys, EscAloneIsAKeyOnceNothingFollows) {
  Keys keys;
  EXPECT_TRUE(keys("\x1b").empty());
  EXPECT_TRUE(keys.is_open());
  EXPECT_EQ(keys.end(), std::vector<KeyPress>{{Kind::escape}});
  EXPECT_FALSE(keys.is_open());
  EXPECT_EQ(keys_of("\x1bq"), (std::vector<KeyPress>{{Kind::escape}, {Kind::text, "q"}}));
  EXPECT_EQ(keys_of("\x1b\x1b[A"), (std::vector<KeyPress>{{Kind::escape}, {Kind::up}}));
}

TEST(Keys, WhatIsNoKeyIsPassedOver) {
  EXPECT_EQ(keys_of("\x1b[200~x"), (std::vector<KeyPress>{{}, {Kind::text, "x"}}));
  EXPECT_EQ(keys_of("\xff\xc3q"), (std::vector<KeyPress>{{}, {}, {Kind::text, "q"}}));
  EXPECT_EQ(keys_of("\x1b[" + std::string(100, '1') + "~q").back(), (KeyPress{Kind::text, "q"}));
}

TEST(Keys, CutAnywhereTheyAreTheSame) {
  const std::string all = "a\x1b[A\u6f22\x1b[1;5B\x1bOP\x1b[24~\x1b[[Cz\u00e9\x1b[99;1;1R";
  const auto whole = keys_of(all);
  for (std::size_t at = 0; at <= all.size(); ++at) {
    Keys keys;
    auto found = keys(all.substr(0, at));
    for (auto& key : keys(all.substr(at))) found.push_back(std::move(key));
    EXPECT_EQ(found, whole) << at;
  }
}

TEST(Keys, WhateverComesIsBounded) {
  Rng rng(5);
  Keys keys;
  for (int round = 0; round < 20'000; ++round) {
    (void)keys(std::string(1, static_cast<char>(rng.below(3) == 0 ? 0x1b : rng.below(256))));
    ASSERT_LE(keys.end().size(), 1U);
    ASSERT_FALSE(keys.is_open());
  }
}

}  // namespace
}  // namespace berth::cli
