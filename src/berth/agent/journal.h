// What an agent has told and nobody has acknowledged yet, in files of its directory: the very lines
// of the protocol, so that what has to be sent again is copied as it stands. Not synced: it need
// only survive processes.
//
// DIR/journal.1, .2, …, about a megabyte each; one goes when all in it is acknowledged. A byte has
// a position for good, counted from the first ever written.
//
// Ownership: owns its files until remove(). Threads: one. Failure: what cannot be written (no
// space, no descriptor) stays in memory and is tried again; a line that a crash cut is passed over
// by read_journal().
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::agent {

class Journal {
 public:
  Journal(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}

  /// The number of the next message.
  std::int64_t next() const { return last_ + 1; }
  std::int64_t acknowledged() const { return acknowledged_; }
  void append(const exec::FromWorker& message);
  /// invalid: beyond the last message.
  Status acknowledge(std::int64_t up_to);
  /// Into the files. Called once a turn.
  void write();

  /// From the first line that may still be asked for to behind the last.
  std::int64_t begin() const { return files_.empty() ? end_written() : files_.front().begin; }
  std::int64_t end() const { return end_written() + static_cast<std::int64_t>(unwritten_.size()); }
  /// Whole lines from the beginning of one: about `enough` bytes, and at least one line unless it
  /// is the end.
  Result<std::string> read_lines(std::int64_t position, std::size_t enough) const;
  /// Bytes that could not be written yet.
  std::size_t unwritten() const { return unwritten_.size(); }

  void remove();

 private:
  struct File {
    std::string path;
    os::Fd fd;
    std::int64_t begin = 0;  // the position of its first byte
    std::int64_t size = 0;
    std::int64_t last = 0;  // number of the last message in it or before
  };
  std::int64_t end_written() const {
    return files_.empty() ? gone_ : files_.back().begin + files_.back().size;
  }
  Result<std::string> read(std::int64_t position, std::size_t most) const;
  bool begin_file();
  void drop_acknowledged();

  os::Env* env_;
  std::string directory_;
  std::deque<File> files_;
  std::string unwritten_;
  std::int64_t gone_ = 0;  // the end of the files that were removed
  std::int64_t last_ = 0, acknowledged_ = 0;
  std::int64_t made_ = 0;  // files so far
  bool torn_ = false;      // the last file ends in a part of a line, which could not be taken back
};

/// What an agent that is gone has left.
struct Remains {
  std::vector<exec::FromWorker> messages;  // not acknowledged, in order, each once
  std::size_t unreadable = 0;              // lines that are none, but for the one that a crash cut
};
/// Of an agent's directory, with or without a journal. busy: it lives; not_found, denied, io.
Result<Remains> read_journal(os::Env& env, const std::string& directory);

}  // namespace berth::agent
