#include "berth/render/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace berth::render {
namespace {

/// Every kind of part, with the text wherever text goes.
Document page_of(const std::string& text) {
  return {
      .title = text,
      .subtitle = text,
      .sections = {{text,
                    {Text{text}, Verbatim{text}, Table{{text, text}, {{text, "1.5"}, {text, "2"}}},
                     Plot{.title = text,
                          .x = {text},
                          .y = {text},
                          .points = {{1, 2}, {2, 3}},
                          .lines = {{text, {{1, 2}, {2, 3}}}, {text, {{1, 1}, {2, 1}}, true}}},
                     Bars{text, {{text, 0.5, text}}},
                     Timeline{text, {text}, {{0, 0, 2, Timeline::Kind::failed, text}}}}}},
      .footer = text};
}

std::ptrdiff_t count(const std::string& text, char letter) {
  return std::ranges::count(text, letter);
}

TEST(Document, NothingInItBecomesMarkup) {
  const std::string harmless = to_html(page_of("x"));
  for (const std::string hostile :
       {"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onload='alert(1)",
        "</title><script>", "</style><svg onload=alert(1)>", "</pre><b>", "<!--", "]]>",
        "&lt;script&gt;", "\" autofocus onfocus=\"x", "<a href=javascript:alert(1)>",
        "\xff\xfe<b>"}) {
    const std::string html = to_html(page_of(hostile));
    for (const char letter : {'<', '>', '"', '\''})
      EXPECT_EQ(count(html, letter), count(harmless, letter)) << hostile << " " << letter;
    EXPECT_EQ(html.find("&lt;script&gt;") != std::string::npos && hostile[0] == '&', false);
  }
}

TEST(Document, MarkdownKeepsATableATable) {
  const std::string text = to_markdown(
      {.title = "a|b",
       .sections = {{"s", {Table{{"task", "time"}, {{"<b>*x*|\n", "1s"}}}}}, {"none", {}}}});
  EXPECT_NE(text.find("# a\\|b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| task | time |\n| --- | ---: |\n| &lt;b&gt;\\*x\\*\\|  | 1s |\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("none"), std::string::npos) << "a section without text is left out";
  EXPECT_NE(to_markdown({.sections = {{"s", {Verbatim{"```\nx"}}}}}).find("````\n```\nx\n````"),
            std::string::npos);
}

TEST(Document, ChartsTakeWhateverNumbersThereAre) {
  const Plot odd{.title = "t",
                 .x = {"x", true},
                 .y = {"y", true},
                 .points = {{0, 1}, {1, -1}, {1, NAN}, {2, INFINITY}},
                 .lines = {}};
  EXPECT_EQ(to_svg(odd), "") << "none of them lies on logarithmic axes";
  for (const double height : {0.0, 5.0, -1e300, 1e-300}) {
    const std::string svg =
        to_svg(Plot{.title = "t", .x = {"x"}, .y = {"y"}, .points = {{1, height}}});
    EXPECT_NE(svg.find("<circle"), std::string::npos) << height;
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
  for (const auto& [low, high] : {std::pair{1e16, 1e16 + 2}, {-1e308, 1e308}, {0.0, 5e-324}}) {
    const std::string svg =
        to_svg(Plot{.title = "t", .x = {"x"}, .y = {"y"}, .points = {{1, low}, {2, high}}});
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  }
  EXPECT_NE(to_svg(Bars{"t", {{"a", NAN, "?"}, {"b", 7, "all"}}}).find("width=\"1.0\""),
            std::string::npos);
  EXPECT_EQ(to_svg(Bars{"t", {}}), "");
  EXPECT_EQ(to_svg(Timeline{"t", {}, {}}), "");
  const Timeline moment{"t", {"a"}, {{0, 0, 0, Timeline::Kind::done, "a"}}};
  EXPECT_NE(to_svg(moment).find("<rect"), std::string::npos);
}

TEST(Document, LongNamesAreCutAtTheirEnd) {
  const std::string name = "map_reads_to_the_reference_genome";
  const std::string bars = to_svg(Bars{"t", {{name, 1, "8"}}});
  const std::string timeline =
      to_svg(Timeline{"t", {name}, {{0, 0, 1, Timeline::Kind::done, "a"}}});
  for (const std::string& svg : {bars, timeline}) {
    EXPECT_NE(svg.find(">map_reads_to_the_reference_…<"), std::string::npos) << svg;
  }
}

TEST(Document, OutliersAreDrawnAtTheEdgeAndCounted) {
  Plot plot{.title = "t", .x = {"x"}, .y = {.name = "acc", .cut = Axis::Cut::low}};
  for (int i = 0; i < 20; ++i) plot.points.push_back({i * 1.0, 0.95 + 0.001 * i});
  EXPECT_EQ(to_svg(plot).find("<details>"), std::string::npos) << "there are no outliers";
  plot.points.push_back({20, 0.1});
  const std::string html = to_svg(plot);
  const std::string cut = html.substr(0, html.find("<details>"));
  EXPECT_NE(cut.find("▼ 1 of 21 are below 0.95 and drawn at the edge."), std::string::npos) << cut;
  EXPECT_NE(cut.find("class=\"out\""), std::string::npos) << cut;
  EXPECT_NE(cut.find(">0.95<"), std::string::npos) << "the low end of the axis is labelled";
  EXPECT_NE(cut.find(">0.969<"), std::string::npos) << "the high end of the axis is labelled";
  const std::string whole = html.substr(cut.size());
  EXPECT_EQ(whole.find("class=\"out\""), std::string::npos) << whole;
  EXPECT_NE(whole.find(">0.1<"), std::string::npos) << whole;
  plot.y.cut = Axis::Cut::high;
  EXPECT_EQ(to_svg(plot).find("<details>"), std::string::npos) << "the low end is the better one";
}

TEST(Document, AnOutlierDoesNotMakeAnAxisLogarithmic) {
  Plot plot{.title = "t", .x = {"x"}, .y = {"loss", true, Axis::Cut::high}};
  for (int i = 0; i < 20; ++i) plot.points.push_back({i * 1.0, 0.5 + 0.01 * i});
  plot.points.push_back({20, 1e6});
  const std::string html = to_svg(plot);
  EXPECT_NE(html.find("▲ 1 of 21 are above 0.69"), std::string::npos) << html;
  EXPECT_LT(html.find(">0.6<"), html.find("<details>")) << "a tick of a linear axis";
}

}  // namespace
}  // namespace berth::render
