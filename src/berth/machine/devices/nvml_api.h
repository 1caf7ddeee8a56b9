// The part of NVIDIA's management library that Berth calls: its names, layouts and numbers, written
// from NVIDIA's API reference (docs.nvidia.com/deploy/nvml-api), so that no vendor package is
// needed to build. All of it has been there since driver 450 (2020), but for the later versions
// noted.
#pragma once

extern "C" {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlEnableState_t = int;          // 0 disabled, 1 enabled
using nvmlGpuTopologyLevel_t = int;     // kNvmlTopology…
using nvmlIntNvLinkDeviceType_t = int;  // kNvmlRemote…
using nvmlMemoryErrorType_t = int;      // 1 uncorrected
using nvmlEccCounterType_t = int;       // 0 volatile: since the driver was loaded
using nvmlAffinityScope_t = unsigned;   // 0 the NUMA node

struct nvmlPciInfo_t {  // of nvmlDeviceGetPciInfo_v3
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];  // "00000000:3B:00.0"
};

struct nvmlMemory_t {
  unsigned long long total, free, used;  // bytes
};

struct nvmlDeviceAttributes_t {  // of nvmlDeviceGetAttributes_v2
  unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
      sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;  // in fact MiB
};

struct nvmlProcessInfo_t {  // of nvmlDeviceGetComputeRunningProcesses_v3 (driver 510)
  unsigned pid;
  unsigned long long usedGpuMemory;  // bytes; all ones: unknown
  unsigned gpuInstanceId, computeInstanceId;
};

nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlShutdown();
const char* nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long* cores);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned words, unsigned long* nodes,
                                         nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t* level);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t* state);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned* version);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                 nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link,
                                                 nvmlIntNvLinkDeviceType_t* type);  // driver 460
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long* errors);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device,
                                                    nvmlEnableState_t* pending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t* instance);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* processes);

}  // extern "C"

/// Each of the functions above, for a table of them.
#define BERTH_NVML_FUNCTIONS(X)             \
  X(nvmlInit_v2)                            \
  X(nvmlShutdown)                           \
  X(nvmlErrorString)                        \
  X(nvmlDeviceGetCount_v2)                  \
  X(nvmlDeviceGetHandleByIndex_v2)          \
  X(nvmlDeviceGetUUID)                      \
  X(nvmlDeviceGetName)                      \
  X(nvmlDeviceGetPciInfo_v3)                \
  X(nvmlDeviceGetMemoryInfo)                \
  X(nvmlDeviceGetAttributes_v2)             \
  X(nvmlDeviceGetCpuAffinity)               \
  X(nvmlDeviceGetMemoryAffinity)            \
  X(nvmlDeviceGetTopologyCommonAncestor)    \
  X(nvmlDeviceGetNvLinkState)               \
  X(nvmlDeviceGetNvLinkVersion)             \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2)    \
  X(nvmlDeviceGetNvLinkRemoteDeviceType)    \
  X(nvmlDeviceGetTotalEccErrors)            \
  X(nvmlDeviceGetRetiredPagesPendingStatus) \
  X(nvmlDeviceGetRemappedRows)              \
  X(nvmlDeviceGetMigMode)                   \
  X(nvmlDeviceGetMaxMigDeviceCount)         \
  X(nvmlDeviceGetMigDeviceHandleByIndex)    \
  X(nvmlDeviceGetComputeRunningProcesses_v3)

namespace berth::machine {

inline constexpr nvmlReturn_t kNvmlSuccess = 0, kNvmlInvalidArgument = 2, kNvmlNotSupported = 3,
                              kNvmlNoPermission = 4, kNvmlNotFound = 6, kNvmlInsufficientSize = 7,
                              kNvmlDriverNotLoaded = 9, kNvmlFunctionNotFound = 13,
                              kNvmlGpuIsLost = 15, kNvmlResetRequired = 16, kNvmlUnknown = 999;
inline constexpr nvmlGpuTopologyLevel_t kNvmlTopologyInternal = 0, kNvmlTopologySingle = 10,
                                        kNvmlTopologyMultiple = 20, kNvmlTopologyHostBridge = 30,
                                        kNvmlTopologyNode = 40, kNvmlTopologySystem = 50;
inline constexpr nvmlIntNvLinkDeviceType_t kNvmlRemoteGpu = 0, kNvmlRemoteNpu = 1,
                                           kNvmlRemoteSwitch = 2;

}  // namespace berth::machine
