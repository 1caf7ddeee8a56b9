// A line of an agent or a runner that is read is written as one that reads the same; and a whole
// conversation of them is heard to its end or refused.
#include "berth/agent/protocol.h"
#include "berth/base/text.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  for (const auto line : split(text, '\n')) {
    if (const auto call = agent::decode_call(line)) {
      const std::string written = agent::encode(*call);
      const auto again = agent::decode_call(written);
      BERTH_ASSERT(again && agent::encode(*again) == written);
    }
    if (const auto answer = agent::decode_answer(line)) {
      const std::string written = agent::encode(*answer);
      const auto again = agent::decode_answer(written);
      BERTH_ASSERT(again && agent::encode(*again) == written);
    }
  }
}
