// An ObjectReceiver brings objects into an object store that come in pieces. When a connection
// breaks, the part that has come stays, and the next connection goes on behind it. An object gets
// its name once its digest was checked.
//
// STORE/incoming/DIGEST[.x].N is such a part; whoever adds to it holds its lock. Where two
// connections bring one object at once, each has a part of its own.
//
// Ownership: it refers to the Env. Threads: one; any number of processes. Failure: that of the Env;
// corrupt, where the object has another digest than was promised, and is thrown away; io, where the
// part is not as it was: the sender has to ask again what is missing.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/agent/protocol/frames.h"
#include "berth/fileset/fileset.h"
#include "berth/os/env.h"

namespace berth::agent {

class ObjectReceiver {
 public:
  ObjectReceiver(os::Env& env, std::string store) : env_(env), store_(std::move(store)) {}

  /// The objects of the fileset that the store lacks, each once, from the byte on that is missing.
  Result<std::vector<Piece>> missing(const fileset::Fileset& fileset);
  /// Begins an object, or resumes it. Failure: full, where the store has no room for it.
  Status begin(const Piece& piece);
  /// Whether an object was begun and more of it has to come.
  bool open() const { return piece_.has_value(); }
  /// Adds bytes to the object; its last byte brings it into the store. Failure: full, where the
  /// store has no room for them; nothing of the object is left then.
  Status add(std::string_view bytes);

 private:
  /// The first part that nobody adds to, and its lock: none where the part is not there yet.
  struct Part {
    std::string path;
    os::Fd lock;
  };
  Result<Part> free_part(const Piece& piece, bool make) const;
  Status check_room(const Piece& piece) const;
  Status give_up_part(const Error& error);
  Status finish();

  os::Env& env_;
  const std::string store_;
  std::optional<Piece> piece_;  // that comes; its offset grows
  Part part_;
  os::Fd fd_;
};

/// Reads the list of missing objects that the other side sent. Failure: invalid, where it names an
/// object that is not in the fileset, or one twice.
Result<std::vector<Piece>> parse_missing(std::string_view text, const fileset::Fileset& fileset);

/// A piece of an object in the store, of kFrameMost bytes at most. Failure: not_found.
Result<std::string> read_object(os::Env& env, const std::string& store, const Piece& piece);

/// An ObjectSender turns objects of a store into frames, one after another, for an ObjectReceiver
/// at the other end.
class ObjectSender {
 public:
  ObjectSender() = default;
  ObjectSender(std::string store, std::vector<Piece> pieces);

  /// Adds frames to `out` until that holds `most` bytes or nothing is left. Failure: corrupt or
  /// not_found; an object that was begun can then be taken back only by a new connection.
  Status add(os::Env& env, std::string& out, std::size_t most);
  bool over() const { return pieces_.empty(); }
  /// How many bytes have gone, and how many there are in all.
  std::int64_t moved() const { return moved_; }
  std::int64_t total() const { return total_; }
  /// How many objects have gone whole, and their bytes.
  std::int64_t whole() const { return whole_; }
  std::int64_t whole_bytes() const { return whole_bytes_; }

 private:
  std::string store_;
  std::deque<Piece> pieces_;
  bool begun_ = false;  // the first of them
  std::int64_t moved_ = 0, total_ = 0, whole_ = 0, whole_bytes_ = 0;
};

}  // namespace berth::agent
