#include "berth/cli/flow_choices.h"

#include <algorithm>

#include "berth/base/document.h"
#include "berth/base/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLargestParams = 16U << 20;

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

}  // namespace

void FlowChoices::add_to(Options& options) {
  options.list("TARGET", targets,
               "Run only these steps (map) or tasks (map/A) of a flow, and what they need");
  options.list("--until", until, "Run everything up to this step or task, and nothing after it")
      .one_at_a_time()
      .named("TARGET")
      .excludes("TARGET");
  options.list("--only", only, "Run only this step or task; its inputs must exist already")
      .one_at_a_time()
      .named("TARGET")
      .excludes("TARGET")
      .excludes("--until");
  options
      .list("--set", set,
            "Set a parameter of the flow or of a step: lr=0.1, samples=[A,B], train.lr=1")
      .one_at_a_time()
      .named("NAME=VALUE");
  options.value("--params", params, "Read parameters from this YAML file").named("FILE");
  options.list("--force", force, "Run the tasks of this step although they are cached")
      .one_at_a_time()
      .named("STEP");
  options.flag("--overwrite", overwrite, "Replace outputs that are protected or were edited");
}

bool FlowChoices::any() const {
  return overwrite || !(set.empty() && params.empty() && targets.empty() && force.empty() &&
                        until.empty() && only.empty());
}

Result<flow::FlowOptions> FlowChoices::read(os::Env& env) const {
  flow::FlowOptions options{.targets = !only.empty()    ? only
                                       : !until.empty() ? until
                                                        : targets,
                            .only = !only.empty(),
                            .force = force};
  const auto put = [&](const std::string& name, flow::Words words) {
    const auto known =
        std::ranges::find(options.set, name, &std::pair<std::string, flow::Words>::first);
    if (known == options.set.end())
      options.set.emplace_back(name, std::move(words));
    else
      known->second = std::move(words);
  };
  if (!params.empty()) {
    BERTH_ASSIGN(const std::string text, env.read_file(params, kLargestParams));
    BERTH_ASSIGN(const Field root, Field::parse(text, params));
    BERTH_ASSIGN(const auto entries, root.entries());
    for (const auto& [name, value] : entries) {
      BERTH_ASSIGN(auto words, value_words(value));
      put(name, std::move(words));
    }
  }
  for (const auto& text : set) {
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
    put(text.substr(0, equals), std::move(words));
  }
  return options;
}

}  // namespace berth::cli
