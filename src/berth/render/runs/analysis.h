// What finished trials teach, as text and JSON: the importance of parameters, and resources that
// steps should request.
#pragma once

#include <string>

#include "berth/engine/queries/analysis.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::ImportanceReport& report, const View& view);
/// {"run","metric","measure","trials","predicted","together","parameters":[{"name","share",
/// "deviation","trials","values"}],"because","version":1}
std::string to_json(const engine::ImportanceReport& report);

std::string to_text(const engine::AdviceReport& report, const View& view);
/// {"version":1,"name","steps":[{"step","attempts","runs","mem":{…},"cpu":{…},"timeout":{…}}]}
std::string to_json(const engine::AdviceReport& report);

}  // namespace berth::render
