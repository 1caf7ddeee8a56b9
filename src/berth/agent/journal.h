// A Journal keeps an agent's messages that no runner has acknowledged, in files of the agent's
// directory. They are the very lines of the protocol, so that a message is sent again as it stands.
// The files are not synced, for they need only survive processes.
//
// DIR/journal.1, .2, … have about a megabyte each; a file is removed when every message in it is
// acknowledged. A byte keeps its position for good, counted from the first byte ever written.
//
// Ownership: it owns its files until remove(). Threads: one. Failure: what cannot be written (for
// want of space or descriptors) stays in memory and is tried again, until all of it is
// acknowledged: then it goes, and the files too. read_journal() passes over a line that a crash cut
// short.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "berth/agent/protocol/protocol.h"
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
  /// Failure: invalid, where `up_to` is beyond the last message.
  Status acknowledge(std::int64_t up_to);
  /// Writes what was appended into the files; to be called once a turn.
  void write();

  /// The positions of the first line that may still be asked for, and behind the last line.
  std::int64_t begin() const { return files_.empty() ? end_written() : files_.front().begin; }
  std::int64_t end() const { return end_written() + static_cast<std::int64_t>(unwritten_.size()); }
  /// Whole lines from `position` on, which is the beginning of a line: about `enough` bytes, and at
  /// least one line unless `position` is the end.
  Result<std::string> read_lines(std::int64_t position, std::size_t enough) const;
  /// The number of bytes that could not be written yet.
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
  bool put_unwritten();
  void forget();
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

/// The messages that an agent which is gone has left in its journal.
struct UnacknowledgedJournal {
  std::vector<Numbered> messages;  ///< In order, each once.
  std::size_t unreadable = 0;      ///< How many lines are no message, but for one that a crash cut.
};
/// Reads the journal in an agent's directory; there may be none. Failure: busy, where the agent
/// lives; not_found, denied, io.
Result<UnacknowledgedJournal> read_journal(os::Env& env, const std::string& directory);

}  // namespace berth::agent
