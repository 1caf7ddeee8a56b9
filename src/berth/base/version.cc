#include "berth/error.h"

namespace berth {

std::string_view version() {
  return
#include "berth/base/version.inc"
      ;
}

}  // namespace berth
