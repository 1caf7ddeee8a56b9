#include "berth/render/new_file.h"

#include "berth/base/record_json.h"
#include "berth/base/text.h"

namespace berth {

template <>
inline constexpr auto kRecordOf<engine::NewFile> =
    Record{"NewFile", "The new file.", version_key(), key("kind", &engine::NewFile::kind),
           key("file", &engine::NewFile::file)};

}  // namespace berth

namespace berth::render {

std::string to_text(const engine::NewFile& made, const View&) {
  return fmt::format("{}: {} {}; review it, then: {} {}\n", made.file,
                     made.kind == "experiment" ? "an" : "a", made.kind, made.check,
                     shell_quote(made.file));
}

void add_new_file_schemas(JsonWriter& json) {
  add_schemas<engine::NewFile>(json);
}

std::string to_json(const engine::NewFile& made) {
  return json_line(made);
}

}  // namespace berth::render
