// Which GPUs of a machine belong together: berth/topology.h.
#include <berth/topology.h>

#include "expect.h"

namespace topology = berth::topology;

constexpr const char* kPrinted =
    "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tPIX\t0-31\t0\n"
    "GPU1\tNV4\t X \tSYS\t32-63\t1\n"
    "mlx5_0\tPIX\tSYS\t X \n";

int main() {
  // Of the catalogue of known machines.
  const auto dgx1 = value(topology::known_machine("dgx1-v100"));
  EXPECT(dgx1.devices.size() == 8);
  EXPECT(dgx1.link(0, 3).fabric == 2);
  EXPECT(topology::score(dgx1.link(0, 3)) > topology::score(dgx1.link(0, 5)));
  EXPECT(topology::slots_of(dgx1.devices[0].model) == 13);
  std::cout << topology::matrix_text(dgx1);

  // Of what nvidia-smi topo -m printed; written as JSON, and read back.
  const auto printed = value(topology::read(kPrinted, "mine"));
  EXPECT(printed.devices.size() == 2 && printed.nics.size() == 1);
  EXPECT(printed.link(0, 1).fabric == 4 && printed.devices[1].numa == 1);
  EXPECT(topology::islands(printed) == std::vector(1, std::vector<std::size_t>{0, 1}));
  EXPECT(value(topology::read(topology::write_json(printed), "mine")) == printed);

  // An error says what was wanted, and suggests.
  const auto none = topology::known_machine("dgx1-v10");
  EXPECT(!none && none.error().kind == berth::ErrorKind::not_found);
  EXPECT(none.error().message.find("dgx1-v100") != std::string::npos);

  // Of this machine. It may have none.
  setenv("BERTH_TOPOLOGY", "dgx-h100", 1);
  auto here = value(topology::discover());
  EXPECT(here.devices.size() == 8 && here.devices[0].health == topology::Health::healthy);
  here = value(topology::refresh_health(here));
  EXPECT(here.devices[7].health == topology::Health::healthy);
}
