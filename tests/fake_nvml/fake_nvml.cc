// A libnvidia-ml.so.1 of three cards, for what only dlopen can show. Cards 0 and 1 are joined by
// two NVLinks; card 2 is in MIG mode with one instance. BERTH_FAKE_NVML says what goes wrong:
// "driver" (none is loaded), "lost" (card 1), "errors" (whatever comes after the handle).
// BERTH_FAKE_NVML_PROCESSES names a file of lines "CARD PID BYTES", read at each call, which are
// all the processes there are (BYTES -: not told; PID -: nothing is told of the card's processes).
// FAKE_NVML_OLD leaves out what drivers of 2020 lack, FAKE_NVML_BROKEN what nothing works without.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "berth/machine/devices/nvml_api.h"

using namespace berth::machine;

namespace {

constexpr unsigned kCards = 3, kMigCard = 2, kInstance = 3, kLinks = 6;

std::string_view trouble() {
  const char* text = std::getenv("BERTH_FAKE_NVML");
  return text ? text : "";
}

nvmlDevice_t handle_of(unsigned index) {
  static char places[kCards + 1];
  return reinterpret_cast<nvmlDevice_t>(&places[index]);
}

unsigned index_of(nvmlDevice_t device) {
  for (unsigned index = 0; index <= kInstance; ++index)
    if (handle_of(index) == device) return index;
  std::abort();
}

nvmlReturn_t answer(nvmlDevice_t device) {
  if (trouble() == "errors") return kNvmlUnknown;
  return trouble() == "lost" && index_of(device) == 1 ? kNvmlGpuIsLost : kNvmlSuccess;
}

#ifndef FAKE_NVML_OLD
/// `told` becomes false where the file says that nothing is told.
std::vector<nvmlProcessInfo_t> listed_processes(const char* file, unsigned card, bool& told) {
  std::vector<nvmlProcessInfo_t> processes;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    unsigned of = 0;
    std::string pid, bytes;
    if (!(fields >> of >> pid) || of != card) continue;
    if (pid == "-") told = false;
    if (pid == "-" || !(fields >> bytes)) continue;
    processes.push_back({static_cast<unsigned>(std::stoul(pid)),
                         bytes == "-" ? ~0ULL : std::stoull(bytes), ~0U, ~0U});
  }
  return processes;
}
#endif

void write_address(unsigned index, nvmlPciInfo_t* pci) {
  *pci = {};
  pci->bus = 0x1a + index;
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
}

}  // namespace

extern "C" {

#ifndef FAKE_NVML_BROKEN
nvmlReturn_t nvmlInit_v2() {
  return trouble() == "driver" ? kNvmlDriverNotLoaded : kNvmlSuccess;
}
#endif
nvmlReturn_t nvmlShutdown() {
  return kNvmlSuccess;
}
const char* nvmlErrorString(nvmlReturn_t result) {
  return result == kNvmlDriverNotLoaded ? "Driver Not Loaded"
         : result == kNvmlGpuIsLost     ? "GPU is lost"
                                        : "Unknown Error";
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kCards;
  return kNvmlSuccess;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  *device = handle_of(index);
  return kNvmlSuccess;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  const unsigned index = index_of(device);
  std::snprintf(uuid, length, index == kInstance ? "MIG-%08u" : "GPU-%08u", index);
  return trouble() == "errors" ? kNvmlUnknown : kNvmlSuccess;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  std::snprintf(name, length, "%s",
                index_of(device) == kInstance ? "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
                                              : "NVIDIA A100-SXM4-40GB");
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  write_address(index_of(device), pci);
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (index_of(device) == kInstance) return kNvmlNotSupported;
  *memory = {40ULL << 30, 39ULL << 30, 1ULL << 30};
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes) {
  *attributes = {42, 3, 2, 0, 0, 0, 3, 3, 20 << 10};
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long* cores) {
  std::memset(cores, 0, words * sizeof *cores);
  cores[0] = 0xf;
  cores[1] = 1;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned words, unsigned long* nodes,
                                         nvmlAffinityScope_t) {
  std::memset(nodes, 0, words * sizeof *nodes);
  nodes[0] = 2;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t* level) {
  *level = index_of(one) + index_of(other) == 1 ? kNvmlTopologySingle : kNvmlTopologySystem;
  return answer(one);
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
                                      nvmlEnableState_t* state) {
  if (link >= kLinks) return kNvmlInvalidArgument;
  *state = index_of(device) < kMigCard && link < 2 ? 1 : 0;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned, unsigned* version) {
  *version = 3;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned,
                                                 nvmlPciInfo_t* pci) {
  write_address(1 - index_of(device), pci);
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long* errors) {
  *errors = type == 1 && counter == 0 && index_of(device) == 0 ? 7 : 0;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t, nvmlEnableState_t*) {
  return kNvmlNotSupported;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  *current = *pending = index_of(device) == kMigCard ? 1 : 0;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  *count = 7;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t* instance) {
  if (index_of(device) != kMigCard || index != 4) return kNvmlNotFound;
  *instance = handle_of(kInstance);
  return kNvmlSuccess;
}
#ifndef FAKE_NVML_OLD
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned,
                                                 nvmlIntNvLinkDeviceType_t* type) {
  *type = kNvmlRemoteGpu;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *pending = 0;
  *failed = index_of(device) == kMigCard ? 1 : 0;
  return answer(device);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* processes) {
  if (const char* file = std::getenv("BERTH_FAKE_NVML_PROCESSES")) {
    bool told = true;
    const auto listed = listed_processes(file, index_of(device), told);
    if (!told) return kNvmlNotSupported;
    const bool fits = *count >= listed.size();
    *count = static_cast<unsigned>(listed.size());
    if (!fits) return kNvmlInsufficientSize;
    std::copy(listed.begin(), listed.end(), processes);
    return answer(device);
  }
  constexpr unsigned kProcesses = 100;  // more than one asks for at first
  const unsigned room = *count;
  *count = kProcesses;
  if (room < kProcesses) return kNvmlInsufficientSize;
  for (unsigned i = 0; i < kProcesses; ++i)
    processes[i] = {1000 + i, i == 0 ? ~0ULL : 1ULL << 20, ~0U, ~0U};
  return answer(device);
}
#endif

}  // extern "C"
