// dlopen stands here and not in Env: what it gives is code that runs in this process, which no Env
// could play; faults are injected one step above, at the Nvml interface, or by a library of one's
// own.
#include "berth/machine/devices/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "berth/machine/devices/devices_pci.h"
#include "berth/machine/devices/nvml_api.h"

namespace berth::machine {
namespace {

constexpr std::size_t kMaskWords = 1024 / sizeof(unsigned long);  // 8192 cores
constexpr unsigned kTextBytes = 128;  // more than NVML's longest name or UUID, 96
constexpr unsigned kFirstProcesses = 64, kMostProcesses = 1U << 16;
constexpr unsigned long long kNotTold = ~0ULL;

struct LibraryClose {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryClose>;

/// A null one is not in the library.
struct Functions {
#define BERTH_MEMBER(function) decltype(&::function) function = nullptr;
  BERTH_NVML_FUNCTIONS(BERTH_MEMBER)
#undef BERTH_MEMBER
};

template <class Function>
void look_up(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

Functions functions_of(void* library) {
  Functions f;
#define BERTH_LOOK_UP(function) look_up(library, f.function, #function);
  BERTH_NVML_FUNCTIONS(BERTH_LOOK_UP)
#undef BERTH_LOOK_UP
  return f;
}

std::int64_t bytes_of(unsigned long long bytes) {
  return static_cast<std::int64_t>(std::min<unsigned long long>(bytes, INT64_MAX));
}

ErrorKind kind_of(nvmlReturn_t code) {
  switch (code) {
    case kNvmlGpuIsLost:
    case kNvmlResetRequired: return ErrorKind::not_found;
    case kNvmlNoPermission: return ErrorKind::denied;
    default: return ErrorKind::io;
  }
}

/// An argument that is refused is one that this driver or card has no notion of.
bool means_not_told(nvmlReturn_t code) {
  return code == kNvmlNotSupported || code == kNvmlFunctionNotFound || code == kNvmlNotFound ||
         code == kNvmlInvalidArgument;
}

std::vector<int> bits_of(const std::array<unsigned long, kMaskWords>& mask) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<int> bits;
  for (std::size_t bit = 0; bit < kMaskWords * kBits; ++bit)
    if ((mask[bit / kBits] >> bit % kBits & 1) != 0) bits.push_back(static_cast<int>(bit));
  return bits;
}

std::optional<topology::Pcie> pcie_of(nvmlGpuTopologyLevel_t level) {
  switch (level) {
    case kNvmlTopologyInternal: return topology::Pcie::board;
    case kNvmlTopologySingle: return topology::Pcie::pix;
    case kNvmlTopologyMultiple: return topology::Pcie::pxb;
    case kNvmlTopologyHostBridge: return topology::Pcie::phb;
    case kNvmlTopologyNode: return topology::Pcie::node;
    case kNvmlTopologySystem: return topology::Pcie::sys;
    default: return std::nullopt;
  }
}

NvmlLink::End end_of(nvmlIntNvLinkDeviceType_t type) {
  switch (type) {
    case kNvmlRemoteGpu: return NvmlLink::End::gpu;
    case kNvmlRemoteNpu: return NvmlLink::End::npu;
    case kNvmlRemoteSwitch: return NvmlLink::End::nvswitch;
    default: return NvmlLink::End::unknown;
  }
}

std::string text_of(const std::array<char, kTextBytes>& buffer) {
  return std::string(buffer.data(), strnlen(buffer.data(), buffer.size()));
}

class LoadedNvml : public Nvml {
 public:
  LoadedNvml(Library library, const Functions& functions)
      : library_(std::move(library)), f_(functions) {}
  LoadedNvml(const LoadedNvml&) = delete;
  LoadedNvml& operator=(const LoadedNvml&) = delete;
  ~LoadedNvml() override {
    if (started_ && f_.nvmlShutdown) f_.nvmlShutdown();
  }

  Status start() {
    if (!f_.nvmlInit_v2 || !f_.nvmlDeviceGetCount_v2 || !f_.nvmlDeviceGetHandleByIndex_v2 ||
        !f_.nvmlDeviceGetUUID)
      return fail(ErrorKind::invalid,
                  "it has no nvmlInit_v2, DeviceGetCount_v2, "
                  "DeviceGetHandleByIndex_v2 or DeviceGetUUID");
    BERTH_TRY(call("nvmlInit_v2", f_.nvmlInit_v2));
    started_ = true;
    return {};
  }

  Result<unsigned> count() override {
    unsigned count = 0;
    BERTH_TRY(call("count", f_.nvmlDeviceGetCount_v2, &count));
    return count;
  }
  Result<Handle> card(unsigned index) override {
    Handle handle = nullptr;
    BERTH_TRY(call("handle", f_.nvmlDeviceGetHandleByIndex_v2, index, &handle));
    return handle;
  }
  Result<std::string> uuid(Handle device) override {
    std::array<char, kTextBytes> buffer{};
    BERTH_TRY(call("UUID", f_.nvmlDeviceGetUUID, device, buffer.data(), kTextBytes));
    return text_of(buffer);
  }
  Reported<std::string> model(Handle device) override {
    std::array<char, kTextBytes> buffer{};
    BERTH_ASSIGN(const bool told,
                 ask("name", f_.nvmlDeviceGetName, device, buffer.data(), kTextBytes));
    return told ? std::optional(text_of(buffer)) : std::nullopt;
  }
  Reported<std::string> pci(Handle device) override {
    nvmlPciInfo_t pci{};
    BERTH_ASSIGN(const bool told, ask("PCI address", f_.nvmlDeviceGetPciInfo_v3, device, &pci));
    return told ? std::optional(address_of(pci)) : std::nullopt;
  }
  Reported<std::int64_t> memory(Handle device) override {
    nvmlMemory_t memory{};
    BERTH_ASSIGN(bool told, ask("memory", f_.nvmlDeviceGetMemoryInfo, device, &memory));
    if (told) return bytes_of(memory.total);
    nvmlDeviceAttributes_t attributes{};
    BERTH_ASSIGN(told, ask("attributes", f_.nvmlDeviceGetAttributes_v2, device, &attributes));
    if (told) return bytes_of(attributes.memorySizeMB << 20);
    return std::nullopt;
  }
  Reported<std::vector<int>> cores(Handle device) override {
    std::array<unsigned long, kMaskWords> mask{};
    BERTH_ASSIGN(const bool told, ask("near cores", f_.nvmlDeviceGetCpuAffinity, device,
                                      static_cast<unsigned>(mask.size()), mask.data()));
    return told ? std::optional(bits_of(mask)) : std::nullopt;
  }
  Reported<std::vector<int>> nodes(Handle device) override {
    // Not nvmlDeviceGetNumaNodeId: that is the node which the card's own memory makes.
    std::array<unsigned long, kMaskWords> mask{};
    BERTH_ASSIGN(const bool told, ask("near nodes", f_.nvmlDeviceGetMemoryAffinity, device,
                                      static_cast<unsigned>(mask.size()), mask.data(), 0U));
    return told ? std::optional(bits_of(mask)) : std::nullopt;
  }
  Reported<topology::Pcie> level(Handle one, Handle other) override {
    nvmlGpuTopologyLevel_t level = 0;
    BERTH_ASSIGN(const bool told, ask("common ancestor", f_.nvmlDeviceGetTopologyCommonAncestor,
                                      one, other, &level));
    return told ? pcie_of(level) : std::nullopt;
  }
  Reported<NvmlLink> link(Handle card, unsigned number) override {
    nvmlEnableState_t up = 0;
    BERTH_ASSIGN(const bool told, ask("NVLink", f_.nvmlDeviceGetNvLinkState, card, number, &up));
    if (!told || up == 0) return std::nullopt;
    NvmlLink link;
    nvmlIntNvLinkDeviceType_t type = 0;
    nvmlPciInfo_t pci{};
    unsigned generation = 0;
    BERTH_ASSIGN(const bool has_type,
                 ask("NVLink's end", f_.nvmlDeviceGetNvLinkRemoteDeviceType, card, number, &type));
    BERTH_ASSIGN(const bool has_pci,
                 ask("NVLink's end", f_.nvmlDeviceGetNvLinkRemotePciInfo_v2, card, number, &pci));
    BERTH_ASSIGN(const bool has_generation,
                 ask("NVLink's version", f_.nvmlDeviceGetNvLinkVersion, card, number, &generation));
    if (has_type) link.end = end_of(type);
    if (has_pci) link.pci = address_of(pci);
    if (has_generation) link.generation = static_cast<int>(generation);
    return link;
  }
  Reported<std::int64_t> uncorrected_errors(Handle card) override {
    unsigned long long errors = 0;
    BERTH_ASSIGN(const bool told,
                 ask("ECC errors", f_.nvmlDeviceGetTotalEccErrors, card, 1, 0, &errors));
    return told ? std::optional(bytes_of(errors)) : std::nullopt;
  }
  Reported<std::string> memory_fault(Handle card) override {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    BERTH_ASSIGN(const bool has_rows, ask("remapped rows", f_.nvmlDeviceGetRemappedRows, card,
                                          &corrected, &uncorrected, &pending, &failed));
    nvmlEnableState_t retiring = 0;
    BERTH_ASSIGN(const bool has_pages,
                 ask("retired pages", f_.nvmlDeviceGetRetiredPagesPendingStatus, card, &retiring));
    if (!has_rows && !has_pages) return std::nullopt;
    if (failed != 0) return "a memory row could not be remapped";
    if (pending != 0) return "a memory row waits for a reset to be remapped";
    if (retiring != 0) return "a memory page waits for a reset to be retired";
    return "";
  }
  Reported<bool> mig_enabled(Handle card) override {
    unsigned current = 0, pending = 0;
    BERTH_ASSIGN(const bool told,
                 ask("MIG mode", f_.nvmlDeviceGetMigMode, card, &current, &pending));
    return told ? std::optional(current != 0) : std::nullopt;
  }
  Reported<unsigned> most_instances(Handle card) override {
    unsigned count = 0;
    BERTH_ASSIGN(const bool told,
                 ask("MIG count", f_.nvmlDeviceGetMaxMigDeviceCount, card, &count));
    return told ? std::optional(count) : std::nullopt;
  }
  Reported<Handle> instance(Handle card, unsigned index) override {
    Handle handle = nullptr;
    BERTH_ASSIGN(const bool told,
                 ask("MIG instance", f_.nvmlDeviceGetMigDeviceHandleByIndex, card, index, &handle));
    return told ? std::optional(handle) : std::nullopt;
  }
  Reported<std::vector<DeviceProcess>> processes(Handle device) override {
    if (!f_.nvmlDeviceGetComputeRunningProcesses_v3) return std::nullopt;
    std::vector<nvmlProcessInfo_t> infos(kFirstProcesses);
    nvmlReturn_t code = kNvmlInsufficientSize;
    unsigned count = 0;
    // Others start processes between two calls, so the room is doubled and not what was asked for.
    for (; code == kNvmlInsufficientSize && infos.size() < kMostProcesses;
         infos.resize(2 * infos.size())) {
      count = static_cast<unsigned>(infos.size());
      code = f_.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos.data());
    }
    if (means_not_told(code)) return std::nullopt;
    BERTH_TRY(checked("processes", code));
    std::vector<DeviceProcess> processes;
    for (unsigned i = 0; i < count; ++i)
      processes.push_back(
          {static_cast<pid_t>(infos[i].pid),
           infos[i].usedGpuMemory == kNotTold ? 0 : bytes_of(infos[i].usedGpuMemory)});
    return processes;
  }

 private:
  static std::string address_of(const nvmlPciInfo_t& pci) {
    return pci_address(std::string_view(pci.busId, strnlen(pci.busId, sizeof pci.busId)));
  }
  Status checked(std::string_view what, nvmlReturn_t code) const {
    if (code == kNvmlSuccess) return {};
    const char* words = f_.nvmlErrorString ? f_.nvmlErrorString(code) : nullptr;
    return fail(kind_of(code), "{}: {} (NVML {})", what, words ? words : "error", code);
  }
  template <class Function, class... Args>
  Status call(std::string_view what, Function* function, Args... args) const {
    return checked(what, function(args...));
  }
  /// Whether the driver reported it; an error only if it should have.
  template <class Function, class... Args>
  Result<bool> ask(std::string_view what, Function* function, Args... args) const {
    const nvmlReturn_t code = function ? function(args...) : kNvmlFunctionNotFound;
    if (means_not_told(code)) return false;
    BERTH_TRY(checked(what, code));
    return true;
  }

  Library library_;  // outlives what is called in it
  Functions f_;
  bool started_ = false;
};

}  // namespace

Result<std::unique_ptr<Nvml>> open_nvml(const std::string& library) {
  Library opened(dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (!opened) return fail(ErrorKind::not_found, "{}", dlerror());
  const Functions functions = functions_of(opened.get());
  auto nvml = std::make_unique<LoadedNvml>(std::move(opened), functions);
  if (const Status started = nvml->start(); !started)
    return std::unexpected(within(library, started.error()));
  return nvml;
}

}  // namespace berth::machine
