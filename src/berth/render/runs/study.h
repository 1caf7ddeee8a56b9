// The answers of a study to the requests of a program, as lines of JSON (docs/reference/python.md).
#pragma once

#include <string>

#include "berth/engine/studies/study.h"

namespace berth::render {

/// One line: the answer, or {"error":{"kind","message","code"}}.
std::string to_json(const Result<engine::StudyAnswer>& answer);
std::string to_json(const Error& error);

}  // namespace berth::render
