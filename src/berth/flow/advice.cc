#include "berth/flow/advice.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"

namespace berth::flow {
namespace {

constexpr std::size_t kLeastLetters = 5;  // shorter names in braces may be awk's or bash's

/// What other tools write in front of the names of a step, and what stands there here.
constexpr auto kPrefixes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"input", "in."},
    {"inputs", "in."},
    {"output", "out."},
    {"outputs", "out."},
    {"params", ""},
    {"param", ""},
    {"wildcards", ""},
    {"wildcard", ""},
});

bool is_known(const Words& known, std::string_view name) {
  return std::ranges::find(known, name) != known.end();
}

std::string first_with(const Words& known, std::string_view prefix) {
  const auto found =
      std::ranges::find_if(known, [&](const auto& name) { return name.starts_with(prefix); });
  return found == known.end() ? "" : *found;
}

/// Whether it is STEP.OUTPUT.
bool is_output(std::string_view name, const std::vector<Step>& steps) {
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  const auto step = std::ranges::find(steps, name.substr(0, dot), &Step::name);
  return step != steps.end() &&
         std::ranges::find(step->out, name.substr(dot + 1), &Output::name) != step->out.end();
}

}  // namespace

std::string advice_on_name(std::string_view name, const Words& known,
                           const std::vector<Step>& steps) {
  if (is_known(known, name)) return {};
  const auto dot = name.find('.');
  const auto before = name.substr(0, dot);
  const auto did_you_mean = [&](std::string_view meant) {
    return fmt::format("unknown name {{{}}}; did you mean {{{}}}?", name, meant);
  };
  if (const auto prefix = std::ranges::find(kPrefixes, before,
                                            &std::pair<std::string_view, std::string_view>::first);
      prefix != kPrefixes.end()) {
    if (dot == std::string_view::npos) {  // all of them
      const auto meant = prefix->second.empty() ? "" : first_with(known, prefix->second);
      return meant.empty() ? "" : did_you_mean(meant);
    }
    const auto meant = std::string(prefix->second) + std::string(name.substr(dot + 1));
    if (is_known(known, meant)) return did_you_mean(meant);
  }
  if (dot == std::string_view::npos) {
    if (name.size() < kLeastLetters) return {};
    for (const std::string_view prefix : {"in.", "out."})
      if (const auto meant = fmt::format("{}{}", prefix, name); is_known(known, meant))
        return did_you_mean(meant);
    return {};
  }
  if (!is_output(name, steps)) return {};
  const auto output = name.substr(dot + 1);
  return fmt::format(
      "{{{0}}} is an output of another step: name it as an input, in: {{{1}: {0}}}, "
      "and say {{in.{1}}} here",
      name, output);
}

std::string advice_on_source(std::string_view text, const std::vector<Step>& steps) {
  if (!text.starts_with('{') || !text.ends_with('}')) return {};
  const auto name = text.substr(1, text.size() - 2);
  if (!is_output(name, steps)) return {};
  return fmt::format("an output of another step is named here without braces: {}", name);
}

std::string advice_on_names(std::string_view key, const Field& found) {
  if (found.is_null()) return "is empty: expected NAME: VALUE";
  const auto* node = &found.node();
  if (found.is_list()) {
    const bool some =
        !node->children.empty() && node->children.front().kind == DocumentNode::Kind::scalar;
    return fmt::format("expected names with values, got a list; give it a name: {}: {{NAME: {}}}",
                       key, some ? clip(node->children.front().text, 40) : "VALUE");
  }
  return fmt::format("expected names with values, got '{}'; give it a name: {}: {{NAME: {}}}",
                     clip(node->text, 40), key, clip(node->text, 40));
}

}  // namespace berth::flow
