// What the C++ runtime asks of a C library of 2022 (2.35) and this program must do without: where
// the unwind table of some code lies. It is linked into berth-agent alone, which throws only its
// own code's exceptions.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>

namespace {

struct Search {
  ElfW(Addr) address = 0;
  dl_find_object* found = nullptr;
};

int look(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const ElfW(Phdr)* table = nullptr;
  const ElfW(Phdr)* code = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) table = &part;
    if (part.p_type == PT_LOAD && search.address >= begin && search.address < begin + part.p_memsz)
      code = &part;
  }
  if (table == nullptr || code == nullptr) return 0;
  const ElfW(Addr) begin = info->dlpi_addr + code->p_vaddr;
  search.found->dlfo_flags = 0;
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(begin + code->p_memsz);
  search.found->dlfo_link_map = nullptr;
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + table->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
