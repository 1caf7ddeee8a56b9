#include "berth/os/failpoint.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

namespace berth::os {
namespace {

struct Setting {
  Setting() {
    const char* text = std::getenv("BERTH_FAILPOINT");
    if (text == nullptr) return;
    const std::string all = text;
    const auto first = all.find(':'), second = all.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) return;
    name = all.substr(0, first);
    left = std::atol(all.c_str() + first + 1);
    file = all.substr(second + 1);
  }
  std::string name, file;
  std::atomic<long> left = 0;  // until it strikes
};

}  // namespace

void failpoint(std::string_view name) {
  static Setting setting;
  if (setting.left <= 0 || setting.name != name || --setting.left > 0) return;
  if (::unlink(setting.file.c_str()) != 0) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();
}

}  // namespace berth::os
