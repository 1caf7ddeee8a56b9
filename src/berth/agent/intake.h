// Objects that come in pieces, into an object store: a connection that breaks leaves what has come,
// and the next goes on behind it. Each is checked by its digest before it gets its name.
//
// STORE/incoming/DIGEST[.x].N: a part that is there, locked by whoever adds to it. Of an object
// that two connections bring at once each has a part of its own.
//
// Ownership: refers to Env. Threads: one; processes as many as like. Failure: as Env has it;
// corrupt: what came is not what was promised, and is thrown away; io: the part that was to go on
// is not as it was, ask for what is missing once more.
#pragma once

#include <deque>
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
  Status begin(const Piece& piece);
  bool open() const { return piece_.has_value(); }
  /// The last byte makes it an object.
  Status add(std::string_view bytes);

 private:
  /// The first part that nobody adds to, and its lock: none where the part is not there yet.
  struct Part {
    std::string path;
    os::Fd lock;
  };
  Result<Part> free_part(const Piece& piece, bool make) const;
  Status finish();

  os::Env& env_;
  const std::string store_;
  std::optional<Piece> piece_;  // that comes; its offset grows
  Part part_;
  os::Fd fd_;
};

/// What is missing elsewhere of a fileset, as the other side lists it. invalid: what is none of its
/// objects, or one twice.
Result<std::vector<Piece>> parse_missing(std::string_view text, const fileset::Fileset& fileset);

/// A piece of an object of a store, at most a frame's worth. not_found.
Result<std::string> read_object(os::Env& env, const std::string& store, const Piece& piece);

/// What feeds an Intake: objects of a store as frames, one after another.
class Outflow {
 public:
  Outflow() = default;
  Outflow(std::string store, std::vector<Piece> pieces);

  /// Adds to `out` until that holds `most` bytes or nothing is left. corrupt, not_found: what was
  /// begun cannot be taken back but by a new connection.
  Status add(os::Env& env, std::string& out, std::size_t most);
  bool over() const { return pieces_.empty(); }
  std::int64_t moved() const { return moved_; }  // bytes
  std::int64_t total() const { return total_; }
  /// Of the objects that have gone to their ends: how many, and bytes.
  std::int64_t whole() const { return whole_; }
  std::int64_t whole_bytes() const { return whole_bytes_; }

 private:
  std::string store_;
  std::deque<Piece> pieces_;
  bool begun_ = false;  // the first of them
  std::int64_t moved_ = 0, total_ = 0, whole_ = 0, whole_bytes_ = 0;
};

}  // namespace berth::agent
