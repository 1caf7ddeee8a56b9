#include "berth/exec/metrics.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

namespace berth::exec {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

/// All that the stream says, fed in these pieces.
MetricReader::Reading read(std::initializer_list<std::string_view> pieces) {
  MetricReader reader;
  MetricReader::Reading all;
  const auto take = [&](const MetricReader::Reading& reading) {
    all.metrics.insert(all.metrics.end(), reading.metrics.begin(), reading.metrics.end());
    if (all.unreadable.empty()) {
      all.unreadable = reading.unreadable;
      all.because = reading.because;
    }
    if (all.missing.empty()) all.missing = reading.missing;
    if (all.lookalike.empty()) all.lookalike = reading.lookalike;
  };
  for (const auto piece : pieces) take(reader.feed(piece));
  take(reader.finish());
  return all;
}

TEST(Metrics, ReadsMetricLinesAndNoOthers) {
  struct Case {
    std::string_view text;
    Metrics metrics;
  };
  const Case kCases[] = {
      {"", {}},
      {"\n\n", {}},
      {"::berth loss=0.4 accuracy=0.93\n", {{"loss", 0.4}, {"accuracy", 0.93}}},
      {"::berth loss=0.4", {{"loss", 0.4}}},
      {"::berth loss=0.4\r\n::berth loss=0.3\r\n", {{"loss", 0.4}, {"loss", 0.3}}},
      {"epoch 1\n::berth a=1\nepoch 2\n::berth a=2\n", {{"a", 1}, {"a", 2}}},
      {"::berth\t a=1\n", {{"a", 1}}},
      {"::berth   a=1 \t b=-2e-3  \n", {{"a", 1}, {"b", -2e-3}}},
      {"::berth val/top-1@5_x.y=+1e3\n", {{"val/top-1@5_x.y", 1000}}},
      {":berth a=1\n::berth: a=1\n::BERTH a=1\n::bertha=1\n", {}},
      {"::berth \n::berth\n::berth \x1b[2J\n", {}},
      {std::string_view("\0::berth a=1\n::berth b=1\n", 25), {{"a", 1}, {"b", 1}}}};
  for (const auto& [text, metrics] : kCases) {
    const auto reading = read({text});
    EXPECT_EQ(reading.metrics, metrics) << text;
    EXPECT_EQ(reading.unreadable, "") << text;
  }
}

TEST(Metrics, ReadsReportsAfterProgressEscapesBlanksAndText) {
  struct Case {
    std::string_view text;
    Metrics metrics;
  };
  const Case kCases[] = {
      {"\rstep 3/5::berth acc=1 epoch=3\n", {{"acc", 1}, {"epoch", 3}}},
      {"100%|###| 5/5\r::berth acc=1\n", {{"acc", 1}}},
      {"\r::berth a=1\r::berth a=2\r\n", {{"a", 1}, {"a", 2}}},
      {" \t::berth a=1 oops\n", {{"a", 1}}},
      {"\x1b[32m::berth a=1\x1b[0m\n", {{"a", 1}}},
      {"\x1b[2K\x1b[1G::berth a=\x1b[1m2\x1b[0m b=3\n", {{"a", 2}, {"b", 3}}},
      {"\x1b]0;title\a::berth a=1\n\x1b]0;t\x1b\\::berth b=1\n\x1b(B::berth c=1\n",
       {{"a", 1}, {"b", 1}, {"c", 1}}},
      {"step 3\b\b\b\b\b\b::berth a=1\n", {{"a", 1}}},
      {"x ::berth a=1\n+ echo ::berth b=1\n", {{"a", 1}, {"b", 1}}},
      {"print ::berth a=0.9, say\necho '::berth a=1'\nx ::berth a b=1\nx ::berth \n", {}},
      {"\r 50%#Auptimizer:0.93\n", {{"score", 0.93}}},
  };
  for (const auto& [text, metrics] : kCases) EXPECT_EQ(read({text}).metrics, metrics) << text;
  const std::string dots(200'000, '.');
  EXPECT_EQ(read({dots, dots, "::ber", "th a=1\n::berth b=1\n"}).metrics,
            (Metrics{{"a", 1}, {"b", 1}}))
      << "after any length of text";
}

TEST(Metrics, NeverCutsANameWithBlanksOrQuotes) {
  for (const auto* text : {"::berth val acc=0.9", "::berth 'val acc'=0.9",
                           "::berth \"val acc\"=0.9", "::berth \"acc\"=0.9", "::berth 'acc'=0.9",
                           "x ::berth val acc=0.9", "::berth acc =0.9", "::berth top 5 acc=0.9"}) {
    EXPECT_EQ(read({text}).metrics, Metrics()) << text;
    const auto reading = read({text});
    EXPECT_FALSE(reading.unreadable.empty() && reading.lookalike.empty()) << text;
  }
  EXPECT_EQ(read({"::berth val acc=0.9 loss=1"}).metrics, (Metrics{{"loss", 1}}));
}

TEST(Metrics, ReadsAValueThatIsNotFiniteAsMissing) {
  for (const auto* value : {"nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999", "-1e999"}) {
    const auto reading = read({"::berth acc=0.9 loss=", value, " epoch=3\n"});
    ASSERT_EQ(reading.metrics.size(), 3U) << value;
    EXPECT_FALSE(std::isfinite(reading.metrics[1].second)) << value;
    EXPECT_EQ(reading.missing,
              fmt::format("loss: {} is not a finite number, and was recorded as missing", value));
    EXPECT_EQ(reading.unreadable, "");
  }
  EXPECT_FALSE(std::isfinite(read({"#Auptimizer:nan\n"}).metrics.at(0).second));
  EXPECT_EQ(read({"::berth a=1e-999\n"}).metrics, (Metrics{{"a", 0}}));
  EXPECT_TRUE(read({"::berth a=nano b=infinite c=1e\n"}).metrics.empty());
}

TEST(Metrics, NamesALineThatOnlyLooksLikeAReportWhereThereIsNone) {
  const auto note = [](Stream stream, std::string_view text) {
    MetricReader reader(stream);
    MetricNotes notes;
    notes.take(reader.feed(text));
    return notes.text();
  };
  EXPECT_NE(note(Stream::out, "say ::berth acc=0.9, or so\n").find("'say ::berth acc=0.9, or so'"),
            std::string::npos);
  EXPECT_NE(note(Stream::out, "::BERTH acc=1\n").find("looks like a report"), std::string::npos);
  EXPECT_NE(note(Stream::out, "::berth: acc=1\n").find("looks like a report"), std::string::npos);
  EXPECT_NE(note(Stream::err, "::berth acc=1\n").find("read from standard output"),
            std::string::npos);
  EXPECT_EQ(note(Stream::out, "::BERTH acc=1\n::berth acc=1\n"), "");
  EXPECT_EQ(note(Stream::out, "starts berth 3\n"), "");
}

TEST(Metrics, TellsTheFirstLineThatItCannotReadAndKeepsTheRestOfIt) {
  struct Case {
    std::string_view text;
    Metrics metrics;
  };
  const Case kCases[] = {{"::berth loss\n", {}},       {"::berth =1\n", {}},
                         {"::berth loss=\n", {}},      {"::berth loss=x a=1\n", {{"a", 1}}},
                         {"::berth loss = 0.4\n", {}}, {"::berth loss=0.4f b=2\n", {{"b", 2}}},
                         {"::berth a=1,b=2\n", {}},    {"::berth 'a'=2 c=1", {{"c", 1}}},
                         {"::berth a=b=2\n", {}},      {"::berth l\xc3\xb6ss=1\n", {}}};
  for (const auto& [text, metrics] : kCases) {
    const auto reading = read({"::berth a0=0\n", text, "\n::berth worse\n"});
    Metrics expected{{"a0", 0}};
    expected.insert(expected.end(), metrics.begin(), metrics.end());
    EXPECT_EQ(reading.metrics, expected) << text;
    EXPECT_EQ(reading.unreadable, text.substr(0, text.find('\n')));
  }
  EXPECT_EQ(read({"::berth " + std::string(128, 'n') + "=1"}).metrics.size(), 1U);
  EXPECT_EQ(read({"::berth " + std::string(129, 'n') + "=1"}).metrics.size(), 0U);
  EXPECT_EQ(read({"::berth loss=x\n"}).because, "expected a number, got 'x'");
  EXPECT_EQ(read({"::berth loss: 0.4\n"}).because, "expected NAME=NUMBER, got 'loss:'");
  EXPECT_EQ(read({"::berth \a"}).unreadable, "::berth \\x07") << "fit to be shown";
}

TEST(Metrics, ReadsWhatAuptimizersScriptsPrintOnEitherStream) {
  struct Case {
    std::string_view text;
    Metrics metrics;
    bool readable = true;
  };
  const Case kCases[] = {
      {"\n#Auptimizer:0.93\n", {{"score", 0.93}}},
      {"#Auptimizer: 1e-3\r\n", {{"score", 1e-3}}},
      {"#Auptimizer:232.5,-0.8, 2\n", {{"score", 232.5}, {"score_2", -0.8}, {"score_3", 2}}},
      {"#Auptimizer:[3, 4]", {{"score", 3}, {"score_2", 4}}},
      {"#Auptimizer:1\n#Auptimizer:2\n", {{"score", 1}, {"score", 2}}},
      {"a #Auptimizer:1\n# Auptimizer:2\n#Auptimizer 3\n", {{"score", 1}}},
      {"#Auptimizer:\n", {}, false},
      {"#Auptimizer:None\n", {}, false},
  };
  for (const auto stream : {Stream::out, Stream::err})
    for (const auto& [text, metrics, readable] : kCases) {
      MetricReader reader(stream);
      auto reading = reader.feed(text);
      const auto rest = reader.finish();
      reading.metrics.insert(reading.metrics.end(), rest.metrics.begin(), rest.metrics.end());
      EXPECT_EQ(reading.metrics, metrics) << text;
      EXPECT_EQ(reading.unreadable.empty(), readable) << text;
    }
  EXPECT_TRUE(MetricReader(Stream::err).feed("::berth a=1\n").metrics.empty());
}

TEST(Metrics, ALineOfMoreThan64KiBIsNone) {
  const std::string head = "::berth a=1";
  const std::string blanks(64 * 1024 - head.size(), ' ');
  EXPECT_EQ(read({head + blanks + "\n"}).metrics.size(), 1U);
  for (const std::string& overlong : {head + blanks + " ", head + std::string(1'000'000, ' ')}) {
    const auto after = overlong + "\n::berth b=1\n";
    EXPECT_EQ(read({after}).metrics, (Metrics{{"b", 1}}));
    EXPECT_EQ(read({head, overlong.substr(head.size()), "::berth c=2", "\n::berth b=1"}).metrics,
              (Metrics{{"b", 1}}));
    EXPECT_TRUE(read({overlong}).metrics.empty());
  }
}

TEST(Metrics, AReportThatIsTooLongIsNamedInANote) {
  const std::string end(200'000, 'x');
  for (const std::string& line : {"::berth a=1 " + end, "text ::berth\ta=1 " + end}) {
    MetricNotes notes;
    notes.take(read({line, "\n::berth b=1\n"}));
    EXPECT_NE(notes.text().find("at most 64 KiB"), std::string::npos) << notes.text();
    EXPECT_NE(notes.text().find("::berth"), std::string::npos);
  }
  MetricNotes notes;
  notes.take(read({"#Auptimizer:" + end}));
  EXPECT_NE(notes.text().find("at most 64 KiB"), std::string::npos);
  for (const std::string& line : {end + end, "::berth::names " + end, "::berthx=1 " + end}) {
    MetricNotes none;
    none.take(read({line, "\n"}));
    EXPECT_EQ(none.text(), "");
  }
}

TEST(Metrics, AreTheSameWhereverTheStreamIsCut) {
  const std::string text =
      "noise\r\n::berth a=1.25 b=-3e2\n::berth bad\n\n::berth \n ::berth: no=1\n::berth c=7\r\n"
      "::berthx=1\n::berth last=9";
  const auto whole = read({text});
  ASSERT_EQ(whole.metrics, (Metrics{{"a", 1.25}, {"b", -300}, {"c", 7}, {"last", 9}}));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view = text;
    const auto parted = read({view.substr(0, cut), view.substr(cut)});
    EXPECT_EQ(parted.metrics, whole.metrics) << cut;
    EXPECT_EQ(parted.unreadable, "::berth bad") << cut;
  }
  MetricReader reader;
  Metrics bytewise;
  for (const char c : text)
    for (auto& metric : reader.feed({&c, 1}).metrics) bytewise.push_back(std::move(metric));
  for (auto& metric : reader.finish().metrics) bytewise.push_back(std::move(metric));
  EXPECT_EQ(bytewise, whole.metrics);
}

TEST(Metrics, AReaderThatFinishedStartsAfresh) {
  MetricReader reader;
  reader.feed(std::string(100'000, 'x'));
  reader.finish();
  reader.feed("::berth a=1");
  EXPECT_EQ(reader.finish().metrics, (Metrics{{"a", 1}}));
  EXPECT_TRUE(reader.finish().metrics.empty());
}

}  // namespace
}  // namespace berth::exec
