#include "berth/base/text.h"
#include "berth/flow/advice.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/notation.h"
#include "berth/flow/read_step.h"

namespace berth::flow {
namespace {

std::string no_output(std::string_view step, std::string_view name,
                      const std::vector<Output>& outputs) {
  std::vector<std::string_view> names;
  for (const auto& output : outputs) names.push_back(output.name);
  auto meant = nearest(name.starts_with("out.") ? name.substr(4) : name, names);
  if (meant.empty() && names.size() == 1) meant = names.front();
  return fmt::format("step '{}' has no output '{}'{} (a file of that name: ./{}.{})", step,
                     clip(name),
                     names.empty()   ? ": it has none at all; to wait for it say needs"
                     : meant.empty() ? "; it has " + join(Words(names.begin(), names.end()), ", ")
                                     : fmt::format("; did you mean {}.{}?", step, meant),
                     step, clip(name));
}

}  // namespace

Result<Source> read_source(std::string named, const KnownFlow& known, const Field& field) {
  Source source{.text = std::move(named), .step = {}, .pattern = {}, .line = field.node().line};
  const std::string_view text = source.text;
  if (const auto advice = advice_on_source(text, *known.of); !advice.empty())
    return field.error(advice);
  if (is_url(text)) {
    BERTH_TRY(check_url(source.text, field));
    source.pattern = text;
    return source;
  }
  if (is_foreign_url(text))
    return field.error(
        fmt::format("'{0}' is nothing that can be fetched: https://, http:// and "
                    "s3:// are (a file of that name: ./{0})",
                    clip(text)));
  const auto slash = std::min(text.find('/'), text.size());
  const auto dot = text.substr(0, slash).find('.');
  const auto producer = dot == std::string_view::npos
                            ? known.steps.end()
                            : known.steps.find(std::string(text.substr(0, dot)));
  if (producer == known.steps.end()) {
    const auto plain = plain_path(text);
    if (!plain) return field.error(plain.error());
    source.pattern = *plain;
    return source;
  }
  source.step = StepIndex{static_cast<std::int64_t>(producer->second)};
  const auto& outputs = (*known.of)[producer->second].out;
  const auto name = text.substr(dot + 1, slash - dot - 1);
  const auto found = std::ranges::find(outputs, name, &Output::name);
  if (found == outputs.end()) return field.error(no_output(producer->first, name, outputs));
  source.output = static_cast<std::size_t>(found - outputs.begin());
  const auto below = text.substr(std::min(slash + 1, text.size()));
  if (below.empty()) return source;
  if (!found->directory)
    return field.error(
        fmt::format("{}.{} is a file: nothing lies in it (a directory's path ends "
                    "in '/')",
                    producer->first, name));
  const auto plain = plain_path(below);
  if (!plain) return field.error(plain.error());
  if (!stays_inside(*plain)) return field.error("leads out of the output");
  source.pattern = *plain;
  return source;
}

}  // namespace berth::flow
