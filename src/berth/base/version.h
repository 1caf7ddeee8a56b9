#pragma once

#include <string_view>

namespace berth {

/// This Berth's version, such as "1.2.3": the one that CMakeLists.txt names.
std::string_view version();

}  // namespace berth
