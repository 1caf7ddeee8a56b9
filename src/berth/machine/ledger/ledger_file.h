// The text of one user's file of the ledger. Pure.
//
//   berth-ledger 2 BOOT
//   held|waiting ID PID STARTED SINCE_MS PRIORITY SEQUENCE LABEL BLOCK
//
// A line has eleven fields parted by one blank each, empty ones too: the block is three of them
// (block.h). Blanks, control characters, ',' and '%' of the label are written as %XX.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/block_words.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::machine {

inline constexpr std::size_t kLedgerFileMost = 4 << 20;    // bytes
inline constexpr std::size_t kLedgerEntriesMost = 10'000;  // of one user

std::string write_ledger_file(std::string_view boot, std::span<const LedgerEntry> entries);

/// Reads the entries of `user`'s file; none if it is of another boot. Errors: corrupt, with the
/// line, if it is malformed or exceeds a bound.
Result<std::vector<LedgerEntry>> read_ledger_file(std::string_view text, std::string_view boot,
                                                  uid_t user);

}  // namespace berth::machine
