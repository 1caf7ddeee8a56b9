#include "berth/base/document.h"

#include <gtest/gtest.h>

#include <array>

namespace berth {
namespace {

using namespace std::chrono_literals;

Field read(std::string_view text) {
  auto field = Field::parse(text, "f.yaml");
  EXPECT_TRUE(field) << text << ": " << field.error().message;
  return *std::move(field);
}

/// What the tree holds, in one line: quoted text in quotes, ~ for nothing.
std::string shown(const DocumentNode& node) {
  std::string text;
  switch (node.kind) {
    case DocumentNode::Kind::null: return "~";
    case DocumentNode::Kind::scalar:
      return fmt::format(fmt::runtime(node.quoted ? "'{}'" : "{}"), node.text);
    case DocumentNode::Kind::list:
      for (const auto& item : node.children) text += (text.empty() ? "" : ",") + shown(item);
      return "[" + text + "]";
    case DocumentNode::Kind::map:
      for (const auto& value : node.children)
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",", value.key, shown(value));
      return "{" + text + "}";
  }
  return text;
}

TEST(Document, APlaceholderIsTextWhereYamlWouldBeginAMap) {
  constexpr std::string_view kCases[][2] = {
      {"out: {n: counts/{index}.txt}", "{out:{n:counts/{index}.txt}}"},
      {"[a{b}{c-d}, x/{in.e}/{f}, {g}]", "[a{b}{c-d},x/{in.e}/{f},{g:~}]"},
      {"run: wc < x{part}  # a{b}", "{run:wc < x{part}}"},
      {"{\"run\": \"a{b}\", 'c': 'd{e}'}", "{run:'a{b}',c:'d{e}'}"},
      {"a: |\n  x{y}\n  z\n", "{a:'x{y}\nz\n'}"},
      {"{k{x}: 1}", "{k{x}:1}"},
      {"{a: {b: 1}, c: {d: [2]}}", "{a:{b:1},c:{d:[2]}}"},
      {"a: b{", "{a:b{}"},
      {"a: b{}", "{a:b{}}"}};
  for (const auto& [text, tree] : kCases) EXPECT_EQ(shown(read(text).node()), tree) << text;
  const auto marks = Field::parse("a: b\uFDD0", "f");
  EXPECT_EQ(marks.error().message, "f:1: not text: contains one of U+FDD0 to U+FDD5");
}

TEST(Document, ReadsYamlAndJsonInAllTheirDress) {
  constexpr std::string_view kCases[][2] = {
      {"", "~"},
      {"# only this\n", "~"},
      {"---\na: 1\n...\n", "{a:1}"},
      {"a: 1\nb: [x, 'y', \"z\"]\n", "{a:1,b:[x,'y','z']}"},
      {"a:\r\n  - 1\r\n  - two words\r\n", "{a:[1,two words]}"},
      {"\xef\xbb\xbf"
       "a: 1\n",
       "{a:1}"},
      {"a: |\n  one\n  two\nb: >-\n  one\n  two\n", "{a:'one\ntwo\n',b:'one two'}"},
      {"a:\nb: ~\nc: null\nd: Null\ne: ''\nf: 'null'\ng: \"~\"",
       "{a:~,b:~,c:~,d:~,e:'',f:'null',g:'~'}"},
      {"a: 007\nb: yes\nc: 1e3\nd:\n-\n", "{a:007,b:yes,c:1e3,d:[~]}"},
      {"base: &b {x: 1}\nused: *b\n", "{base:{x:1},used:{x:1}}"},
      {"{\"a\": [1, {\"b\": null}], \"c\": \"\\u00e9\\/\\n\"}", "{a:[1,{b:~}],c:'é/\n'}"},
      {"{\n\t\"a\":\t1,\n\t\"b\":\t[\n\t\t2\n\t]\n}\n", "{a:1,b:[2]}"},
      {"&k a: &v [1]\nb: {*k : *v}\n", "{a:[1],b:{a:[1]}}"},
      {"{\"a\":1,\"b\":\"x\"}", "{a:1,b:'x'}"},
      {"'quoted key': 1\n2: two\n", "{quoted key:1,2:two}"},
      {"run: ./train --lr {lr}  # not {this}\n", "{run:./train --lr {lr}}"}};
  for (const auto& [text, expected] : kCases) EXPECT_EQ(shown(read(text).node()), expected) << text;
}

/// What is written so in files of people, and not as YAML 1.1 would have it.
TEST(Document, TakesWhatPeopleWrite) {
  constexpr std::string_view kCases[][2] = {
      {"run: |\n  \tx\n  y\n", "{run:'\tx\ny\n'}"},
      {"run: |2-  # tabs\n\n  \tx\n  \ty\n", "{run:'\n\tx\n\ty'}"},
      {"run: >\n  \tx\nb: 1 \t# c\n", "{run:'\tx\n',b:1}"},
      {"a: x\u0085y  # \u2028\nb: \"\u2029\"\n", "{a:x\u0085y,b:'\u2029'}"},
      {"a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]",
       "{a:[1,{b:2}],c:[1,{b:2}],d:[[1,{b:2}],[1,{b:2}]]}"},
      {"a: 'b\n\n  c'\nd: e\n  f", "{a:'b\nc',d:e f}"},
      {"a: !!str 5\nb: ! ~\nc: NULL", "{a:5,b:'~',c:~}"}};
  for (const auto& [text, expected] : kCases) EXPECT_EQ(shown(read(text).node()), expected) << text;
}

TEST(Document, ATextThatNoReaderTakesIsToldOf) {
  constexpr std::string_view kCases[][2] = {
      {"a: 1\nb: \u0081\n", "f:2: not text: contains the control character 0x81"},
      {"a: 1\n\uFEFFb: 1\n",
       "f:2: not text: contains U+FEFF, the mark that files of Windows begin with"},
      {"a: \uFFFE", "f:1: not text: contains U+FFFE"},
      {"a: \uFFFF", "f:1: not text: contains U+FFFF"},
      {"a: \x01\nb: \xff", "f:2: not UTF-8 text: save it as UTF-8"}};
  for (const auto& [text, message] : kCases) {
    const auto field = Field::parse(text, "f");
    EXPECT_EQ(field ? "nothing" : field.error().message, message) << text;
  }
}

TEST(Document, SaysWhereItCannotBeRead) {
  constexpr std::string_view kCases[][2] = {
      {"a: 1\nb: [1\n", "f.yaml:2: the '[' that begins here is not closed"},
      {"a:\n\t- 1\n", "f.yaml:2: begins with a tab"},
      {"a: 1\n  b: 2\n", "f.yaml:2: 'b' is indented further than 'a' in line 1"},
      {"a: *nowhere\n", "f.yaml:1: *nowhere: no anchor &nowhere is defined above"},
      {"a: 1\nb: 2\na: 3\n", "f.yaml:3: 'a' is given twice, first in line 1"},
      {"a:\n  b: 1\n  \"b\": 2\n", "f.yaml:3: 'b' is given twice, first in line 2"},
      {"{\"a\": 1,\n\"a\": 2}", "f.yaml:2: 'a' is given twice, first in line 1"},
      {"[1, 2]: 3\n", "f.yaml:1: a key must be a plain word"},
      {"~: 3\n", "f.yaml:1: a key must be a plain word"},
      {"a: 1\n---\nb: 2\n", "f.yaml:2: more follows the end of the document"},
      {"{a: 1} b", "f.yaml:1: more follows the end of the document"},
      {"\"a\",,,,", "f.yaml:1: more follows the end of the document"},
      {"a: &a [*a]", "f.yaml:1: an alias within its own anchor"},
      {"a: 1\n\x04"
       "b: 2\n",
       "f.yaml:2: not text: contains the control character"},
      {"a: é\nb: \xe9\n", "f.yaml:2: not UTF-8 text"},
      {std::string_view("\0a\0:", 4), "f.yaml:1: not text: contains the control character"},
      {"a: \x1b[2J\n", "f.yaml:1: not text: contains the control character"}};
  for (const auto& [text, message] : kCases) {
    const auto field = Field::parse(text, "f.yaml");
    ASSERT_FALSE(field) << text;
    EXPECT_EQ(field.error().kind, ErrorKind::invalid);
    EXPECT_TRUE(field.error().message.starts_with(message)) << text << '\n'
                                                            << field.error().message;
  }
}

constexpr std::string_view kSweep = R"(name: digits
params:
  lr:
    min: 1e-4
    max: lots
  width: [16, 32, thin]
timeout: 1h30m
none:
nested:
  list:
    - {a: 1}
    - b
)";

template <class Value>
std::string told(const Result<Value>& result) {
  return result ? "no error" : result.error().message;
}

TEST(Document, ErrorsNameFileLineAndKey) {
  const Field root = read(kSweep);
  const Field params = *root.get("params");
  const Field lr = *params.get("lr");
  constexpr std::array<std::string_view, 2> kScales{"linear", "log"};
  const std::pair<std::string, std::string_view> kCases[] = {
      {told(lr.get("max")->number()), "f.yaml:5: params.lr.max: expected a number, got 'lots'"},
      {told(lr.get("max")->integer()),
       "f.yaml:5: params.lr.max: expected a whole number, got 'lots'"},
      {told(lr.get("max")->choice(kScales)),
       "f.yaml:5: params.lr.max: expected one of linear, log; got 'lots'"},
      {told(lr.get("min")->integer()),
       "f.yaml:4: params.lr.min: expected a whole number, got '1e-4'"},
      {told(lr.get("n")), "f.yaml:3: params.lr: 'n' is missing"},
      {told(lr.text()), "f.yaml:3: params.lr: expected text, got a map"},
      {told(lr.duration()), "f.yaml:3: params.lr: expected a duration, got a map"},
      {told(lr.items()), "f.yaml:3: params.lr: expected a list, got a map"},
      {told(params.get("width")->entries()), "f.yaml:6: params.width: expected a map, got a list"},
      {told(params.get("width")->choice(kScales)),
       "f.yaml:6: params.width: expected one of linear, log; got a list"},
      {told(params.get("width")->items()->at(2).number()),
       "f.yaml:6: params.width[2]: expected a number, got 'thin'"},
      {told(root.get("name")->get("x")), "f.yaml:1: name: expected a map, got 'digits'"},
      {told(root.get("name")->duration()),
       "f.yaml:1: name: expected a duration such as 90s, 10m or 1h30m, got 'digits'"},
      {told(root.get("none")), "f.yaml:1: 'none' is missing"},
      {told(root.entries()->at(3).second.number()),
       "f.yaml:8: none: expected a number, got nothing"},
      {told(root.get("nested")->get("list")->items()->at(0).get("a")->items()),
       "f.yaml:11: nested.list[0].a: expected a list, got '1'"},
      {root.error("odd").error().message, "f.yaml:1: odd"}};
  for (const auto& [message, expected] : kCases) EXPECT_EQ(message, expected);
}

TEST(Document, UnknownKeysSuggestTheNearest) {
  const auto complaint = [](std::string_view text) {
    return told(read(text).expect_keys({"name", "run", "params", "parallel"}));
  };
  EXPECT_EQ(complaint("name: x\nparms:\n  lr:\n    min: 1\n"),
            "f.yaml:2: unknown key 'parms'; did you mean 'params'?");
  EXPECT_EQ(complaint("something_else: 1\n"),
            "f.yaml:1: unknown key 'something_else'; known are: name, run, params, parallel");
  EXPECT_EQ(complaint("name: x\n\nNAME: y\n"),
            "f.yaml:3: unknown key 'NAME'; did you mean 'name'?");
  EXPECT_EQ(complaint("cmd: x"), "f.yaml:1: unknown key 'cmd'; did you mean 'run'?");
  EXPECT_EQ(complaint("parallel: 1\nrun: x"), "no error");
  EXPECT_EQ(complaint("[name]"), "f.yaml:1: expected a map, got a list");
  EXPECT_EQ(told(read("a:\n  b: 1").get("a")->expect_keys({"c", "d"})),
            "f.yaml:2: a: unknown key 'b'; did you mean 'c'?");
}

TEST(Document, GivesValues) {
  const Field root = read(kSweep);
  EXPECT_EQ(*root.get("timeout")->duration(), 90min);
  EXPECT_EQ(*root.get("params")->get("lr")->get("min")->number(), 1e-4);
  EXPECT_EQ(*root.get("params")->get("width")->items()->at(1).integer(), 32);
  EXPECT_EQ(*root.get("params")->get("width")->items()->at(1).text(), "32");
  EXPECT_EQ(*read("log").choice(std::array<std::string_view, 2>{"linear", "log"}), 1U);
  EXPECT_FALSE(root.find("none"));
  EXPECT_FALSE(root.find("absent"));
  EXPECT_FALSE(root.find("name")->find("of a scalar"));
}

TEST(Document, MergesMaps) {
  const auto root = Field::parse(
      "a: &a {x: 1, y: {z: 2}}\n"
      "b: &b {x: 3, w: 4}\n"
      "one: {<<: *a, x: 9}\n"
      "both: {<<: [*b, *a], v: 5}\n"
      "quoted: {'<<': 7}\n",
      "f.yaml");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(*root->find("one")->find("x")->integer(), 9);
  EXPECT_EQ(*root->find("one")->find("y")->find("z")->integer(), 2);
  EXPECT_TRUE(root->find("one")->expect_keys({"x", "y"}));
  EXPECT_EQ(*root->find("both")->find("x")->integer(), 3) << "the first that has it";
  EXPECT_TRUE(root->find("both")->expect_keys({"v", "x", "w", "y"}));
  EXPECT_EQ(*root->find("quoted")->find("<<")->integer(), 7);
  const auto wrong = Field::parse("a: 1\nb:\n  <<: text\n", "f.yaml");
  EXPECT_EQ(wrong.error().message,
            "f.yaml:3: <<: expected a map, or a list of maps, such as *NAME");
}

TEST(Document, TakesWhatItLacksFromDefaults) {
  const auto root = *Field::parse(
      "defaults: {cpu: 1, res: {a: 1, b: 2}, off: 3}\n"
      "own: {cpu: 2, res: {b: 5}, off: ~, more: 4}\n",
      "f.yaml");
  const Field own = root.find("own")->with_defaults(*root.find("defaults"));
  EXPECT_EQ(*own.find("cpu")->integer(), 2);
  EXPECT_EQ(*own.find("res")->find("a")->integer(), 1);
  EXPECT_EQ(*own.find("res")->find("b")->integer(), 5);
  EXPECT_EQ(own.find("res")->entries()->size(), 2U);
  EXPECT_FALSE(own.find("off")) << "a null of its own says: none";
  EXPECT_EQ(own.entries()->size(), 4U);
  EXPECT_EQ(root.find("own")->find("res")->entries()->size(), 1U) << "it is as it was";
}

TEST(Document, AFieldKeepsItsDocumentAlive) {
  const Field inner = *read("a: {b: [x]}").get("a")->get("b");
  EXPECT_EQ(told(inner.items()->at(0).number()), "f.yaml:1: a.b[0]: expected a number, got 'x'");
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

/// A long list, with an anchor at each of the levels around it.
std::string anchored(int levels, int items) {
  std::string text;
  for (int level = 0; level < levels; ++level) text += fmt::format("[&a{} ", level);
  for (int i = 0; i < items; ++i) text += i == 0 ? "[x" : ",x";
  return text + std::string(static_cast<std::size_t>(levels) + 1, ']');
}

/// Each level ten times the one before it.
std::string bomb(std::string_view leaf, int levels) {
  std::string text = fmt::format("a0: &a0 {}\n", leaf);
  for (int level = 1; level <= levels; ++level) {
    text += fmt::format("a{0}: &a{0} [", level);
    for (int i = 0; i < 10; ++i) text += fmt::format("*a{},", level - 1);
    text += "]\n";
  }
  return text;
}

TEST(Document, WhatItHoldsIsBounded) {
  const std::pair<std::string, std::string_view> kCases[] = {
      {nested(65), "f.yaml:1: nested too deep"},
      {nested(400), "f.yaml:1: nested too deep"},
      {nested(100'000), "f.yaml:1: nested too deep"},
      {bomb("x", 9), "f.yaml:7: too many values"},
      {bomb("[]", 30), "f.yaml:7: too many values"},
      {bomb(std::string(10'000, 'x'), 5), "f.yaml:5: too much text"},
      {fmt::format("a: &a {{{}: 1}}\nb: [{}]", std::string(1000, 'k'),
                   [] {
                     std::string uses;
                     for (int i = 0; i < 100'000; ++i) uses += "*a,";
                     return uses;
                   }()),
       "f.yaml:2: too much text"}};
  for (const auto& [text, message] : kCases) {
    const auto field = Field::parse(text, "f.yaml");
    ASSERT_FALSE(field) << text.substr(0, 100);
    EXPECT_TRUE(field.error().message.starts_with(message)) << field.error().message;
  }
  EXPECT_TRUE(Field::parse(nested(64), "f.yaml"));
  EXPECT_TRUE(Field::parse(anchored(60, 20'000), "f.yaml"))
      << "no alias, so nothing is there twice";
}

TEST(Document, ALongTextMayHoldAsManyValuesAsItHasBytes) {
  std::string text = "k:\n";
  for (int i = 0; i < 1'200'000; ++i) text += "- 1\n";
  const auto field = Field::parse(text, "f.yaml");
  ASSERT_TRUE(field) << field.error().message;
  EXPECT_EQ(field->find("k")->node().children.size(), 1'200'000U);
}

TEST(Document, ManyKeysAreReadInTimeThatGrowsWithThem) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("k{}: 1\n", i);
  EXPECT_EQ(read(text).entries()->size(), 100'000U);
  EXPECT_EQ(told(Field::parse(text + "k7: 2\n", "f")),
            "f:100001: 'k7' is given twice, first in line 8");
  std::string merged = "a: &a\n", own = "b:\n  <<: *a\n";
  for (int i = 0; i < 100'000; ++i) {
    merged += fmt::format("  k{}: 1\n", i);
    own += fmt::format("  o{}: 1\n", i);
  }
  EXPECT_EQ(read(merged + own).find("b")->entries()->size(), 200'000U);
  std::string breaks = "a: ";
  for (int i = 0; i < 1'000'000; ++i) breaks += "\u0085";
  EXPECT_EQ(read(breaks).find("a")->text()->size(), 2'000'000U);
}

}  // namespace
}  // namespace berth
