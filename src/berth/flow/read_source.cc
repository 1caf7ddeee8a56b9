#include "berth/base/text.h"
#include "berth/flow/advice.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/notation.h"
#include "berth/flow/read_step.h"

namespace berth::flow {
namespace {

constexpr std::string_view kOfScope = "in.";  // what a sub-flow is given

std::string no_output(std::string_view step, std::string_view name,
                      const std::vector<std::string_view>& names) {
  auto meant = nearest(name.starts_with("out.") ? name.substr(4) : name, names);
  if (meant.empty() && names.size() == 1) meant = names.front();
  return fmt::format("step '{}' has no output '{}'{} (a file of that name: ./{}.{})", step,
                     clip(name),
                     names.empty()   ? ": it has no outputs; to wait for it use `needs`"
                     : meant.empty() ? "; it has " + join(Words(names.begin(), names.end()), ", ")
                                     : fmt::format("; did you mean {}.{}?", step, meant),
                     step, clip(name));
}

class SourceReader {
 public:
  SourceReader(const KnownFlow& known, const Field& field) : known_(known), field_(field) {}

  Result<Source> read(const std::string& text, std::size_t scope) {
    Source source{.text = text, .step = {}, .pattern = {}, .line = field_.node().line};
    const std::string_view named = text;  // which stays where it is, as the source does not
    if (is_url(named)) {
      BERTH_TRY(check_url(source.text, field_));
      source.pattern = named;
      return source;
    }
    if (is_foreign_url(named))
      return field_.error(fmt::format(
          "'{0}' cannot be downloaded: use https://, http:// or s3:// (a file of that name: ./{0})",
          clip(named)));
    const Scope& of = known_.files.scopes[scope];
    const auto slash = std::min(named.find('/'), named.size());
    const auto head = named.substr(0, slash);
    const auto below = named.substr(std::min(slash + 1, named.size()));
    if (of.has_inputs && head.starts_with(kOfScope))
      return aliased(of.in, "in", head.substr(kOfScope.size()), below);
    // Names of steps have a dot for each sub-flow that they are in; a sub-flow is no step.
    std::string_view sub_flow;
    for (auto dot = head.find('.'); dot != std::string_view::npos; dot = head.find('.', dot + 1)) {
      const auto known = known_.files.names.find(of.prefix + std::string(head.substr(0, dot)));
      if (known == known_.files.names.end()) {
        if (sub_flow.empty()) break;
        return field_.error(
            fmt::format("the sub-flow '{}' has no step '{}' (a file of that name: ./{})", sub_flow,
                        head.substr(sub_flow.size() + 1, dot - sub_flow.size() - 1), head));
      }
      const auto output = head.substr(dot + 1);
      if (known->second >= 0)
        return of_step(std::move(source), static_cast<std::size_t>(known->second),
                       std::string(head.substr(0, dot)), output, below);
      const Scope& inner = known_.files.scopes[static_cast<std::size_t>(-1 - known->second)];
      const bool names_step =
          output.contains('.') || known_.files.names.contains(inner.prefix + std::string(output));
      if (!names_step || inner.out.contains(output))
        return aliased(inner.out, head.substr(0, dot), output, below);
      if (!output.contains('.'))
        return field_.error(
            fmt::format("{} is a step of the sub-flow: name its output, {}.OUTPUT", head, head));
      sub_flow = head.substr(0, dot);
    }
    const auto plain = plain_path(named);
    if (!plain) return field_.error(plain.error());
    source.pattern = *plain;
    return source;
  }

 private:
  Result<Source> of_step(Source source, std::size_t index, const std::string& step,
                         std::string_view name, std::string_view below) const {
    source.step = StepIndex{static_cast<std::int64_t>(index)};
    const auto& outputs = known_.steps[index].out;
    const auto found = std::ranges::find(outputs, name, &Output::name);
    if (found == outputs.end()) {
      std::vector<std::string_view> names;
      for (const auto& output : outputs) names.push_back(output.name);
      return field_.error(no_output(step, name, names));
    }
    source.output = static_cast<std::size_t>(found - outputs.begin());
    if (below.empty()) return source;
    if (!found->directory)
      return field_.error(
          fmt::format("{}.{} is a file: nothing lies in it (a directory's path ends "
                      "in '/')",
                      step, name));
    const auto plain = plain_path(below);
    if (!plain) return field_.error(plain.error());
    if (!stays_inside(*plain)) return field_.error("leads outside of the output");
    source.pattern = *plain;
    return source;
  }

  /// What stands for it in its own scope.
  Result<Source> aliased(const Aliases& aliases, std::string_view of, std::string_view name,
                         std::string_view below) {
    const auto alias = aliases.find(name);
    if (alias == aliases.end()) {
      std::vector<std::string_view> names;
      for (const auto& each : aliases) names.push_back(each.first);
      if (of != "in") return field_.error(no_output(of, name, names));
      const auto meant = nearest(name, names);
      return field_.error(fmt::format(
          "the file has no input '{}'{} (a file of that name: ./in.{})", clip(name),
          meant.empty() ? "" : fmt::format("; did you mean in.{}?", meant), clip(name)));
    }
    if (alias->second.text.empty())
      return field_.error(fmt::format(
          "no value is given for the input {}: where the flow is included, write in: {{{}: …}}",
          name, name));
    if (++depth_ > kMostFiles) return field_.error("refers to itself");
    std::string text = alias->second.text;
    if (!below.empty()) text += (text.ends_with('/') ? "" : "/") + std::string(below);
    return read(text, alias->second.scope);
  }

  const KnownFlow& known_;
  const Field& field_;
  std::size_t depth_ = 0;
};

}  // namespace

Result<Source> read_source(const std::string& text, const KnownFlow& known, const Field& field) {
  if (const auto advice = advice_on_source(text, known.steps); !advice.empty())
    return field.error(advice);
  return SourceReader(known, field).read(text, known.scope);
}

}  // namespace berth::flow
