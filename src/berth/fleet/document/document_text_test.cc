#include "berth/fleet/document/document_text.h"

#include <gtest/gtest.h>

#include <random>

#include "berth/fleet/model/performance_entry.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

TEST(DocumentText, FindsMembersAndElements) {
  const std::string text = R"(// x
{ "a" /* "b": 1 */ : [1, "]", {"c": "}"} // , 4
  ], "b\"": -2.5e3, "\u0043": {}, "E": [ /* none */ ] })";
  const Span root = root_of(text);
  const auto members = members_of(text, root);
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[1].key, "b\"");
  EXPECT_EQ(members[1].value.in(text), "-2.5e3");
  EXPECT_EQ(members[2].key, "C");
  const auto elements = elements_of(text, members[0].value);
  ASSERT_EQ(elements.size(), 3U);
  EXPECT_EQ(elements[1].in(text), R"("]")");
  EXPECT_TRUE(has_text(text, elements[2], "c", "}"));
  EXPECT_TRUE(elements_of(text, member_of(text, root, "e")->value).empty());
  EXPECT_FALSE(member_of(text, root, "d"));
  EXPECT_TRUE(members_of(text, elements[0]).empty());
}

TEST(DocumentText, LineEndsOfOtherSystemsStay) {
  const std::string text = "\xEF\xBB\xBF{\r\n  \"a\": 1 // one\r\n}\r\n";
  TextChanges changes(text);
  changes.append(root_of(text), {"\"b\": 2"});
  EXPECT_EQ(changes.apply(), "\xEF\xBB\xBF{\r\n  \"a\": 1, // one\n  \"b\": 2\r\n}\r\n");
  EXPECT_TRUE(parse_json(changes.apply(), JsonComments::skipped));
}

/// Writes values with blanks and comments wherever JSON allows them.
class LooseWriter {
 public:
  explicit LooseWriter(std::mt19937& random) : random_(random) {}

  std::string write(const Json& value) {
    text_.clear();
    gap();
    add(value);
    gap();
    return text_;
  }

 private:
  void gap() {
    static constexpr std::array<std::string_view, 9> kGaps{
        "", "", "", " ", "\n  ", "\t", "/* a, \"b\": [ */", " // c } \" ]\n", "\r\n"};
    text_ += kGaps.at(random_() % kGaps.size());
  }
  void add(const Json& value) {
    if (!value.is_structured()) {
      text_ += dump(value);
      return;
    }
    bool is_first = true;
    text_ += value.is_object() ? "{" : "[";
    gap();
    for (const auto& [key, item] : value.items()) {
      if (!std::exchange(is_first, false)) {
        text_ += ",";
        gap();
      }
      if (value.is_object()) {
        text_ += dump(Json(key));
        gap();
        text_ += ":";
        gap();
      }
      add(item);
      gap();
    }
    text_ += value.is_object() ? "}" : "]";
  }

  std::mt19937& random_;
  std::string text_;
};

/// Any value, of at most this depth.
Json any_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 6 : 4)) {
    case 0: return 1.5;
    case 1: return "text \"with\" // marks";
    case 2: return nullptr;
    case 3: return true;
    case 4: {
      Json list = Json::array();
      while (random() % 3 != 0) list.push_back(any_value(random, depth - 1));
      return list;
    }
    default: {
      Json map = Json::object();
      while (random() % 3 != 0)
        map[fmt::format("k{}", random() % 5)] = any_value(random, depth - 1);
      return map;
    }
  }
}

Json any_entry(std::mt19937& random) {
  Json entry = {{"name", random() % 2 == 0 ? "m" : "n"}, {"acc", random() % 2 == 0 ? "a" : "b"}};
  if (random() % 2 == 0) entry["accCount"] = 3;
  if (random() % 2 == 0) entry["other"] = any_value(random, 2);
  if (random() % 3 != 0) entry["perfParms"] = {{"beta", 1}, {"note", "b"}, {"alpha", nullptr}};
  if (random() % 2 == 0) entry["more"] = any_value(random, 2);
  return entry;
}

/// A document and its list of models.
struct Documented {
  Json json;
  std::string list;  // a JSON pointer
};

Documented any_document(std::mt19937& random) {
  Json models = Json::array();
  while (random() % 4 != 0) models.push_back(any_entry(random));
  Documented made{{{"x", any_value(random, 3)}, {"models", std::move(models)}}, "/models"};
  for (const char* wrapper : {"modelData", "system"})
    if (random() % 2 == 0) {
      made.json = {{"y", any_value(random, 2)}, {wrapper, std::move(made.json)}};
      made.list = fmt::format("/{}{}", wrapper, made.list);
    }
  made.json["z"] = any_value(random, 2);
  return made;
}

/// Does to the value what with_performance() does to the text.
void change(Json& models, const PerformanceEntry& entry) {
  Json* found = nullptr;
  for (Json& each : models)
    if (found == nullptr && each["name"] == entry.model && each["acc"] == entry.accelerator)
      found = &each;
  if (found == nullptr)
    found = &models.emplace_back(
        Json{{"name", entry.model}, {"acc", entry.accelerator}, {"accCount", entry.accelerators}});
  if (!found->contains("accCount")) (*found)["accCount"] = entry.accelerators;
  Json& parameters = (*found)["perfParms"];
  for (std::size_t i = 0; i < kTerms; ++i)
    if (const auto term = static_cast<Term>(i); term != Term::ttft_offset)
      parameters[std::string(name(term))] = entry.fit.parameters.ms.at(i);
  parameters["form"] = name(entry.fit.parameters.form);
}

TEST(DocumentText, AnyLayoutKeepsAllOtherValues) {
  std::mt19937 random(38);
  PerformanceEntry entry{"m", "a", 2, {}};
  entry.fit.parameters = {StepForm::max, {8, 0.5, 0.25, 0.125, 4}};
  entry.fit.determined = {true, true, true, true, false};
  for (int i = 0; i < 1000; ++i) {
    auto [json, list] = any_document(random);
    const std::string text = LooseWriter(random).write(json);
    ASSERT_EQ(*parse_json(text, JsonComments::skipped), json) << text;
    const auto written = with_performance(text, entry);
    ASSERT_TRUE(written) << written.error().message << "\n" << text;
    change(json[Json::json_pointer(list)], entry);
    const auto read = parse_json(written->document, JsonComments::skipped);
    ASSERT_TRUE(read) << read.error().message << "\n" << text << "\n\n" << written->document;
    ASSERT_EQ(*read, json) << text << "\n\n" << written->document;
    EXPECT_EQ(std::ranges::count(written->document, '/'), std::ranges::count(text, '/'));
  }
}

}  // namespace
}  // namespace berth::fleet
