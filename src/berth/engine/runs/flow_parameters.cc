#include "berth/engine/runs/flow_parameters.h"

#include <algorithm>

#include "berth/base/document.h"
#include "berth/base/text.h"

namespace berth::engine {
namespace {

constexpr std::size_t kLargestFile = 16U << 20;  // bytes

/// One value, or each of a list.
Result<flow::Words> value_words(const Field& field) {
  if (field.is_scalar()) {
    BERTH_ASSIGN(std::string text, field.text());
    return flow::Words{std::move(text)};
  }
  BERTH_ASSIGN(const auto items, field.items());
  if (items.empty()) return field.error("the list is empty");
  flow::Words words;
  for (const auto& item : items) {
    BERTH_ASSIGN(words.emplace_back(), item.text());
  }
  return words;
}

void put(const std::string& name, flow::Words words, flow::FlowOptions& options) {
  const auto known =
      std::ranges::find(options.set, name, &std::pair<std::string, flow::Words>::first);
  if (known == options.set.end())
    options.set.emplace_back(name, std::move(words));
  else
    known->second = std::move(words);
}

}  // namespace

Status read_parameters(os::Env& env, const std::string& file, flow::FlowOptions& options) {
  BERTH_ASSIGN(const std::string text, env.read_file(file, kLargestFile));
  BERTH_ASSIGN(const Field root, Field::parse(text, file));
  BERTH_ASSIGN(const auto entries, root.entries());
  for (const auto& [name, value] : entries) {
    BERTH_ASSIGN(auto words, value_words(value));
    put(name, std::move(words), options);
  }
  return {};
}

Status set_parameter(const std::string& text, flow::FlowOptions& options) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorKind::usage, "--set: expected NAME=VALUE, got '{}'", clip(text));
  const std::string value = text.substr(equals + 1);
  flow::Words words{value};
  if (value.starts_with('[')) {
    const auto list = Field::parse(value, "--set " + text.substr(0, equals));
    if (!list) return fail(ErrorKind::usage, "{}", list.error().message);
    BERTH_ASSIGN(words, value_words(*list));
  }
  put(text.substr(0, equals), std::move(words), options);
  return {};
}

}  // namespace berth::engine
