// Objects that come in pieces, into an object store: a connection that breaks leaves what has come,
// and the next goes on behind it. Each is checked by its digest before it gets its name.
//
// STORE/incoming/DIGEST[.x]: the part that is there.
//
// Ownership: refers to Env. Threads: one; processes as many as like, but one an object. Failure: as
// Env has it; corrupt: what came is not what was promised, and is thrown away.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/frames.h"
#include "berth/fileset/fileset.h"
#include "berth/os/env.h"

namespace berth::agent {

class Intake {
 public:
  Intake(os::Env& env, std::string store) : env_(env), store_(std::move(store)) {}

  /// The objects of a fileset that the store lacks, each once, and how much of each is there.
  Result<std::vector<Piece>> missing(const fileset::Fileset& fileset);
  /// invalid: not where the part that is there ends.
  Status begin(const Piece& piece);
  bool open() const { return piece_.has_value(); }
  /// The last byte makes it an object.
  Status add(std::string_view bytes);

 private:
  std::string part(const Piece& piece) const;
  Status finish();

  os::Env& env_;
  const std::string store_;
  std::optional<Piece> piece_;  // that comes; its offset grows
  os::Fd fd_;
};

/// A piece of an object of a store, at most a frame's worth. not_found.
Result<std::string> read_object(os::Env& env, const std::string& store, const Piece& piece);

}  // namespace berth::agent
