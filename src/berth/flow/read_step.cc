#include "berth/flow/read_step.h"

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/exec/formats.h"
#include "berth/flow/advice.h"
#include "berth/flow/attempt_request.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/format.h"
#include "berth/flow/read_life.h"
#include "berth/flow/read_script.h"
#include "berth/flow/read_variables.h"

namespace berth::flow {
namespace {

using exec::process_text;

class StepReader {
 public:
  StepReader(const Field& field, const KnownFlow& known, Step& step)
      : field_(field), known_(known), step_(step) {}

  Status read() {
    step_.line = field_.node().line;
    if (field_.is_scalar() && !field_.node().text.contains(':'))
      return field_.error(
          fmt::format("expected a map, got '{0}'; write a command as {{run: '{0}'}}",
                      clip(field_.node().text, 60)));
    BERTH_TRY(field_.expect_keys(kStepFormat));
    if (const auto field = field_.find("params")) {
      BERTH_ASSIGN(step_.params, read_params(*field));
    }
    BERTH_TRY(set_step_params(known_.options, step_.name, step_.params));
    add_flow_params();
    for (const auto& [name, value] : step_.params) names_.values.push_back(name);
    BERTH_TRY(add_variables());
    if (const auto field = field_.find("in")) BERTH_TRY(read_inputs(*field));
    BERTH_TRY(check_outputs());
    BERTH_TRY(read_command());
    if (const auto field = field_.find("needs")) {
      BERTH_ASSIGN(step_.needs, read_needs(*field, known_.files, known_.steps, known_.scope));
    }
    need_what_sub_flows_need();
    if (const auto field = field_.find("when")) {
      const WhenSources sources{[&](const std::string& text) { return source_here(text, *field); },
                                [&](const std::string& name) { return step_named(name, *field); }};
      BERTH_ASSIGN(step_.when, read_when(*field, names_, sources));
      step_.when_line = field->node().line;
    }
    BERTH_TRY(read_limits());
    BERTH_TRY(read_lifetimes(field_, step_));
    BERTH_ASSIGN(const auto named, read_depfile_key(field_, names_, step_));
    used_.insert(named.begin(), named.end());
    note_elements(named, "depfile", step_.depfile_line);
    keep_named_params();
    gather_after();
    return {};
  }

 private:
  void add_flow_params() {
    std::set<std::string> own;
    for (const auto& [name, _] : step_.params) own.insert(name);
    for (const auto& param : known_.files.scopes[known_.scope].params)
      if (!own.contains(param.first)) {
        step_.params.push_back(param);
        inherited_.insert(param.first);
      }
  }

  /// A parameter of the flow that the step does not name is none of its own: a change of it would
  /// run the step again for nothing.
  void keep_named_params() {
    for (const auto& term : step_.when) {
      used_.insert(term.left);
      note_names(term.path.pattern);
      note_elements({term.left}, "when", step_.when_line);
      note_elements(names_in(term.path.pattern), "when", step_.when_line);
      if (!term.names_some) continue;
      note_names(term.right);
      note_elements(names_in(term.right), "when", step_.when_line);
    }
    step_.names_key =
        !step_.variables.empty() && used_.contains("key") &&
        std::ranges::find(step_.params, "key", &Params::value_type::first) == step_.params.end();
    if (used_.contains("params_file") || !step_.script.empty()) return;
    std::erase_if(step_.params, [&](const auto& param) {
      return inherited_.contains(param.first) && !used_.contains(param.first);
    });
  }

  void note_names(std::string_view text) {
    for (auto& name : names_in(text)) used_.insert(std::move(name));
  }

  /// Names of elements are checked when it is known which there are.
  void note_elements(const std::vector<std::string>& names, const std::string& where, int line) {
    for (const auto& name : names)
      if (names_.is_of_element(name)) step_.element_names.push_back({name, where, line});
  }

  Result<Source> read_source(const Field& field) {
    BERTH_ASSIGN(Source source, source_of(field));
    note_names(source.text);
    BERTH_TRY(check_names(source.text, names_, field));
    return source;
  }

  Result<Source> source_of(const Field& field) const {
    BERTH_ASSIGN(const std::string text,
                 field.is_map() ? read_url_map(field) : process_text(field));
    return flow::read_source(text, known_, field);
  }

  Result<Source> source_here(const std::string& text, const Field& field) const {
    if (is_url(text))
      return field.error(
          "a URL is an input (in), by itself or as an item of a list: x: [https://…], "
          "and in: {x: '{x}'}");
    return flow::read_source(text, known_, field);
  }

  Status add_variables() {
    BERTH_TRY(read_variables(
        field_, [&](const std::string& text, const Field& at) { return source_here(text, at); },
        step_));
    if (step_.variables.empty()) return {};
    for (const auto& variable : step_.variables) {
      names_.variables.push_back(variable.name);
      if (variable.files) note_names(variable.files->text);
    }
    note_names(step_.key);
    note_elements(names_in(step_.key), "key", step_.key_line);
    std::ranges::copy(names_.variables, std::back_inserter(names_.values));
    names_.values.emplace_back("index");
    names_.values.emplace_back("key");
    return {};
  }

  Status read_inputs(const Field& field) {
    if (!field.is_map()) return field.error(advice_on_names("in", field));
    BERTH_ASSIGN(const auto entries, field.entries());
    for (const auto& [name, value] : entries) {
      if (!valid_step_name(name)) return value.error(kStepName);
      Input input{.name = name, .sources = {}, .line = value.node().line};
      std::vector<Field> items{value};
      if (value.is_list()) {
        BERTH_ASSIGN(items, value.items());
        if (items.empty()) return value.error("the list is empty");
      }
      for (const auto& item : items) {
        BERTH_ASSIGN(Source source, read_source(item));
        note_elements(names_in(source.text), "in." + name, source.line);
        input.sources.push_back(std::move(source));
      }
      step_.in.push_back(std::move(input));
    }
    return {};
  }

  Status check_outputs() {
    if (step_.out.empty()) return {};
    const auto entries = *field_.find("out")->entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Output& output = step_.out[i];
      BERTH_TRY(check_names(output.path, names_, entries[i].second));
      note_names(output.path);
      if (step_.variables.empty()) continue;
      const auto names = names_in(output.path);
      note_elements(names, "out." + output.name, output.line);
      const auto is_variable = [&](std::string_view name) {
        return std::ranges::find(names_.variables, name) != names_.variables.end();
      };
      if (step_.combine == Combine::group && std::ranges::any_of(names, is_variable))
        return entries[i].second.error("an output cannot be named by a list; put {key} into it");
      if (std::ranges::any_of(step_.variables, [&](const Variable& variable) {
            return variable.optional && std::ranges::any_of(names, [&](std::string_view name) {
                     return name.substr(0, name.find('.')) == variable.name;
                   });
          }))
        return entries[i].second.error("an optional variable may be empty; put {key} into it");
      if (std::ranges::none_of(names, [&](const auto& name) {
            return name == "index" || name == "key" || is_variable(name) ||
                   names_.is_of_element(name);
          }))
        return entries[i].second.error(
            fmt::format("all tasks of the {} would write '{}'; put {{key}} into it",
                        kCombineNames.name(step_.combine), shown_path(output, output.path)));
    }
    return {};
  }

  Status read_command() {
    if (const auto script = field_.find("script")) return read_script(field_, *script, step_);
    const auto shell = field_.find("shell");
    if (shell && !field_.find("run"))
      return shell->error(
          "'run' is missing: shell only chooses the program that runs it, bash or sh");
    BERTH_ASSIGN(const Field run, field_.get("run"));
    BERTH_ASSIGN(step_.run, exec::read_command(run));
    BERTH_ASSIGN(step_.run.shell, exec::read_shell(field_, known_.shell));
    step_.run_line = run.node().line;
    std::vector<std::string> known = names_.values;
    known.emplace_back("params_file");
    known.emplace_back("attempt");
    for (const auto& input : step_.in) known.push_back("in." + input.name);
    for (const auto& output : step_.out) known.push_back("out." + output.name);
    const auto placed = exec::placeholders(step_.run);
    std::ranges::copy_if(placed, std::back_inserter(known),
                         [&](const auto& name) { return names_.is_of_element(name); });
    note_elements(placed, "run", step_.run_line);
    for (const auto& name : placed) {
      used_.insert(name);
      // Other braces may be the command's own: awk's {print}, say.
      if (name.starts_with("in.") || name.starts_with("out."))
        BERTH_TRY(check_names(fmt::format("{{{}}}", name), {known}, run));
    }
    step_.names_attempt = note_attempt(names_.has("attempt") && used_.contains("attempt"));
    if (const auto wrong = exec::nearly_named(step_.run, known); !wrong.empty())
      return run.error(wrong);
    for (const auto& name : placed)
      if (const auto advice = advice_on_name(name, known, known_.steps); !advice.empty())
        return run.error(advice);
    const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
      if (std::ranges::find(known, name) != known.end()) return "";
      return std::nullopt;
    };
    if (const auto text = exec::misplaced_text(step_.run, lookup); !text.empty())
      return run.error(text);
    return {};
  }

  /// A name of the flow's own wins over the number of the attempt. Returns whether that is named.
  bool note_attempt(bool is_own) {
    if (is_own)
      step_.notes.push_back(
          fmt::format("steps.{}: {{attempt}} is its parameter, not the number of the attempt; that "
                      "is BERTH_ATTEMPT in its environment",
                      step_.name));
    return !is_own && used_.contains("attempt");
  }

  Result<StepIndex> step_named(const std::string& name, const Field& field) const {
    BERTH_ASSIGN(const auto found,
                 steps_named(name, field, known_.files, known_.steps, known_.scope));
    if (found.size() == 1) return found.front();
    return field.error(fmt::format("'{}' is a sub-flow: name a step of it", name));
  }

  /// Of the sub-flows that it belongs to.
  void need_what_sub_flows_need() {
    for (std::size_t scope = known_.scope; known_.files.scopes[scope].parent;
         scope = *known_.files.scopes[scope].parent)
      std::ranges::copy(known_.files.scopes[scope].needs, std::back_inserter(step_.needs));
  }

  Status read_limits() {
    step_.environment = known_.environment;
    if (const auto field = field_.find("env"))
      BERTH_TRY(exec::read_environment(*field, step_.environment));
    BERTH_ASSIGN(step_.enforce, exec::read_enforce(field_, known_.enforce));
    BERTH_ASSIGN(step_.stops_run, exec::read_on_failure(field_, known_.stops_run));
    step_.container = known_.container;
    BERTH_TRY(exec::read_container(field_, step_.container));
    step_.gpu_mem_over = known_.gpu_mem_over;
    BERTH_TRY(exec::read_gpu_mem_over(field_, step_.gpu_mem_over));
    if (const auto field = field_.find("retries")) {
      BERTH_ASSIGN(const std::int64_t retries, exec::integer_within(*field, 0, exec::kMostRetries));
      step_.retries = static_cast<int>(retries);
    }
    BERTH_TRY(read_requests(field_, step_.params, known_.options.advice, step_));
    if (const auto field = field_.find("priority")) {
      BERTH_ASSIGN(step_.priority,
                   exec::integer_within(*field, -exec::kMostPriority, exec::kMostPriority));
    }
    return {};
  }

  void gather_after() {
    auto& after = step_.after;
    after = step_.needs;
    for (const auto& variable : step_.variables)
      if (variable.files && variable.files->step) after.push_back(*variable.files->step);
    for (const auto& input : step_.in)
      for (const auto& source : input.sources)
        if (source.step) after.push_back(*source.step);
    for (const auto& term : step_.when)
      if (term.path.step) after.push_back(*term.path.step);
    std::ranges::sort(after);
    after.erase(std::ranges::unique(after).begin(), after.end());
  }

  const Field& field_;
  const KnownFlow& known_;
  Step& step_;
  KnownNames names_;
  std::set<std::string, std::less<>> used_, inherited_;
};

}  // namespace

Status read_step(const Field& field, const KnownFlow& known, Step& step) {
  return StepReader(field, known, step).read();
}

}  // namespace berth::flow
