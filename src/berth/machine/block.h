// A block: a concrete part of one machine, and the two forms in which it is written. The text form
// is that of the ledger, of messages, of options and of BERTH_ALLOC; it is read again. The JSON
// form is that of logs, of traces and of a run's record, for people and their programs. Pure.
//
// The text form has three fields, parted by one blank each, empty ones too:
//   RESOURCES  cpu=1500,mem=4096: thousandths, bytes, counts
//   CORES      core:node:milli,… ascending
//   DEVICES    index:node:memory:slots:size:whole:vendor:UUID,… with blanks, control characters,
//              ',' and '%' of a UUID as %XX
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/devices/device_shares.h"
#include "berth/resource/cores.h"
#include "berth/resource/resources.h"

namespace berth::machine {

struct Block {
  Resources resources;  ///< A part of a device counts as gpu_mem and gpu_slots, not as gpu.
  std::vector<CoreShare> cores;  ///< Thousandths of each core; together the cpu of `resources`, or
                                 ///< more where a quota is tighter than the cores.
  std::vector<DeviceShare> devices = {};  ///< By index: the gpu parts of `resources`.
  bool operator==(const Block&) const = default;
};

std::string write_block(const Block& block);
/// Appends the text that write_block() gives.
void append_block(std::string& text, const Block& block);
/// Errors: invalid unless write_block() could have written it.
Result<Block> read_block(std::string_view text);

/// {"resources":{"cpu":1},"cores":[{"core":0,"node":0,"milli":1000}],"devices":[{"uuid":"GPU-…",
/// "index":0,"memory":34359738368,"slots":13,"whole":true}]}; a block without devices has no such
/// key.
std::string to_json(const Block& block);

}  // namespace berth::machine
