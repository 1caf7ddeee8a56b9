// A ledger file that is read is written back as one that reads the same.
#include "berth/machine/ledger/ledger_file.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  const auto entries = machine::read_ledger_file(text, "BOOT", 1000);
  if (!entries) return;
  const auto again =
      machine::read_ledger_file(machine::write_ledger_file("BOOT", *entries), "BOOT", 1000);
  BERTH_ASSERT(again && *again == *entries);
}
