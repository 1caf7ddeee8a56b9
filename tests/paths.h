// Where the unit tests find the checkout and what the build made for them. Only paths.cc knows, so
// that all other test files compile alike in every clone.
#pragma once

#include <string>

namespace berth::tests {

/// An absolute path below the root of the checkout; `path` is relative to it.
std::string source_path(const std::string& path);
/// The build's variant of NVIDIA's library that tests load: "whole", "old" or "broken".
std::string fake_nvml_path(const std::string& kind);

}  // namespace berth::tests
