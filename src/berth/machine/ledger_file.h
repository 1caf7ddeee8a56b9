// One user's file of the ledger as text. Pure.
//
//   berth-ledger 2 BOOT
//   held|waiting ID PID STARTED SINCE_MS PRIORITY SEQUENCE LABEL RESOURCES CORES DEVICES
//
// Eleven fields parted by one blank each, empty ones too. LABEL, UUID: blanks, control characters,
// ',' and '%' as %XX. RESOURCES: cpu=1500,mem=4096 in thousandths, bytes, counts. CORES:
// core:node:milli,… ascending. DEVICES: index:node:memory:slots:size:whole:vendor:UUID,…
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/ledger.h"

namespace berth::machine {

inline constexpr std::size_t kLedgerFileMost = 4 << 20;    // bytes
inline constexpr std::size_t kLedgerEntriesMost = 10'000;  // of one user
inline constexpr std::size_t kLabelMost = 200;             // bytes

/// The last three of those fields.
std::string write_block(const Block& block);
/// invalid: not what write_block() gives.
Result<Block> read_block(std::string_view text);

std::string write_ledger_file(std::string_view boot, std::span<const LedgerEntry> entries);

/// The entries of `user`'s file, none where it is of another boot. corrupt: malformed, or beyond a
/// bound; names the line.
Result<std::vector<LedgerEntry>> read_ledger_file(std::string_view text, std::string_view boot,
                                                  uid_t user);

}  // namespace berth::machine
