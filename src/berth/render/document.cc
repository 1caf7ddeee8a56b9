#include "berth/render/document.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/visible.h"
#include "berth/render/escape.h"

namespace berth::render {
namespace {

// The content security policy forbids scripts and any loading, whatever the report contains.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d1d9e0; --paper: #fff; --box: #f6f8fa;
  --blue: #0969da; --red: #cf222e; --green: #1a7f37; --gold: #9a6700; --plum: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ink: #f0f6fc; --soft: #9198a1; --line: #3d444d; --paper: #0d1117;
  --box: #151b23; --blue: #4493f8; --red: #f85149; --green: #3fb950; --gold: #d29922; --plum: #ab7df8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; overflow-wrap: anywhere; } h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
.soft, figcaption, footer { color: var(--soft); } footer { margin-top: 3rem; border-top: 1px solid var(--line); }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { white-space: pre-line; }
th.n, td.n { text-align: right; white-space: nowrap; }
pre { background: var(--box); border: 1px solid var(--line); padding: .6rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; }
figure { margin: 1rem 0; max-width: 60rem; overflow-x: auto; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--line); } .out { fill: var(--ink); } .dot { fill: var(--soft); fill-opacity: .5; } .line { fill: none; stroke-width: 1.8; }
.l0 { stroke: var(--blue); } .l1 { stroke: var(--green); } .l2 { stroke: var(--gold); } .l3 { stroke: var(--plum); }
.l4 { stroke: var(--red); } .k0 { color: var(--blue); } .k1 { color: var(--green); } .k2 { color: var(--gold); }
.k3 { color: var(--plum); } .k4 { color: var(--red); }
.bar { fill: var(--blue); fill-opacity: .75; } .bar.bad { fill: var(--red); } .bar.soft { fill: var(--soft); }
@media screen and (max-width: 40rem) { svg { width: 40rem; } }
@media print { body { max-width: none; margin: 0; } h2, figure, pre, tr { break-inside: avoid; }
  h2 { break-after: avoid; } table, pre { overflow: visible; } }
</style>
)";

template <class... Of>
struct Each : Of... {
  using Of::operator()...;
};

/// A fence that the text has not.
std::string fenced(const std::string& verbatim) {
  const std::string text = visible_text(valid_utf8(verbatim));
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{0}\n{1}\n{0}\n\n", fence, text);
}

}  // namespace

std::string to_html(const Document& page) {
  std::string html(kHead);
  html += fmt::format("<title>{0}</title>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
                      html_escape(page.title));
  html += fmt::format("<p class=\"soft\">{}</p>\n", html_escape(page.subtitle));
  const Each part_html{
      [](const Text& part) { return "<p>" + html_escape(part.text) + "</p>\n"; },
      [](const Verbatim& part) { return "<pre>" + html_escape(part.text) + "</pre>\n"; },
      [](const Table& part) { return to_html(part); },
      [](const auto& chart) { return to_svg(chart); }};
  for (const auto& section : page.sections) {
    html += fmt::format("<section>\n<h2>{}</h2>\n", html_escape(section.heading));
    for (const auto& part : section.parts) html += std::visit(part_html, part);
    html += "</section>\n";
  }
  return html + fmt::format("</main>\n<footer><p>{}</p></footer>\n</body>\n</html>\n",
                            html_escape(page.footer));
}

std::string to_markdown(const Document& page) {
  std::string text =
      fmt::format("# {}\n\n{}\n\n", markdown_escape(page.title), markdown_escape(page.subtitle));
  const Each part_text{[](const Text& part) { return markdown_escape(part.text) + "\n\n"; },
                       [](const Verbatim& part) { return fenced(part.text); },
                       [](const Table& part) { return to_markdown(part); },
                       [](const auto&) { return std::string(); }};
  for (const auto& section : page.sections) {
    std::string parts;
    for (const auto& part : section.parts) parts += std::visit(part_text, part);
    if (!parts.empty()) text += fmt::format("## {}\n\n{}", markdown_escape(section.heading), parts);
  }
  return text + markdown_escape(page.footer) + "\n";
}

}  // namespace berth::render
