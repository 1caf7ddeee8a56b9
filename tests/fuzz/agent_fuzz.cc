// A line of an agent or a runner that is read is written as one that reads the same, and a whole
// conversation of them is read to its end or refused; so is what processes on one machine tell each
// other.
#include "berth/agent/protocol/protocol.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/machine/devices/device_figures.h"
#include "berth/machine/devices/device_health.h"
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
    if (const auto file = agent::parse_agent_file(line)) {
      const std::string written = agent::to_json(*file);
      BERTH_ASSERT(agent::to_json(*agent::parse_agent_file(written)) == written);
    }
    if (const auto agent = agent::parse_ready(line))
      BERTH_ASSERT(agent::parse_ready(agent::ready_line(*agent)) == agent);
    if (const auto update = machine::health_update_of_json(line))
      BERTH_ASSERT(machine::health_update_of_json(machine::to_json(*update)) == update);
    if (const auto figures = machine::figures_of_json(line))
      BERTH_ASSERT(machine::figures_of_json(machine::to_json(*figures)) == figures);
  }
}
