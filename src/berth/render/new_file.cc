#include "berth/render/new_file.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::render {

std::string to_text(const engine::NewFile& made, const View&) {
  return fmt::format("{}: {} {}; review it, then: {} {}\n", made.file,
                     made.kind == "experiment" ? "an" : "a", made.kind, made.check,
                     shell_quote(made.file));
}

std::string to_json(const engine::NewFile& made) {
  JsonWriter json;
  json.object().add("version", 1).add("kind", made.kind).add("file", made.file);
  return json.end().take() + "\n";
}

}  // namespace berth::render
