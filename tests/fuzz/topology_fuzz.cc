// Whatever a reader of topologies gives is well formed, and reads back from what it is written as.
#include "berth/testing/topology.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  using namespace berth::topology;
  for (const auto reader : {read, read_nvidia_smi, read_rocm_smi, read_json}) {
    const auto topology = reader(text, "t");
    if (topology)
      BERTH_ASSERT(flaw(*topology).empty());
    else
      BERTH_ASSERT(topology.error().kind == ErrorKind::invalid &&
                   topology.error().message.starts_with("t:"));
  }
}
