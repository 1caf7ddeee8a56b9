#include "paths.h"

namespace berth::tests {

std::string source_path(const std::string& path) {
  return BERTH_SOURCE_DIR "/" + path;
}

std::string fake_nvml_path(const std::string& kind) {
  return BERTH_FAKE_NVML_DIR "/libfake_nvml_" + kind + ".so";
}

}  // namespace berth::tests
