#include "berth/flow/read_script.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/exec/fields.h"

namespace berth::flow {
namespace {

Result<Words> interpreter_of(const Field& step, std::string_view script) {
  if (const auto shell = step.find("shell")) {
    if (shell->is_list()) {
      BERTH_ASSIGN(auto command, exec::read_command(*shell));
      return std::move(command.words);
    }
    BERTH_ASSIGN(const std::string text, exec::process_text(*shell));
    if (text != "bash") {
      const auto parts = words(text);
      if (parts.empty()) return shell->error("expected a program, such as python3");
      return Words(parts.begin(), parts.end());
    }
  } else if (script.starts_with("#!")) {
    const auto parts = words(script.substr(2, script.find('\n') - 2));
    if (!parts.empty()) return Words(parts.begin(), parts.end());
  }
  Words strict = exec::words_of_shell({});
  strict.pop_back();  // -c
  return strict;
}

}  // namespace

Status read_script(const Field& step_field, const Field& script, Step& step) {
  if (step_field.find("run"))
    return script.error("a step needs either run or script, and this one has both");
  BERTH_ASSIGN(step.script, exec::process_text(script));
  if (trim(step.script).empty()) return script.error("the script is empty");
  BERTH_ASSIGN(step.run.words, interpreter_of(step_field, step.script));
  step.run.words.emplace_back(kScriptFile);
  step.run_line = script.node().line;
  return {};
}

}  // namespace berth::flow
