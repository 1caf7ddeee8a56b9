// What the tasks of a run printed, whole: framed in one file a run, so that ten thousand small
// outputs cost one file. A task that prints much goes on in a file of its own, so that following a
// small one stays cheap.
//
// A frame: 32 bytes of head (little-endian: magic u32, length u32, token i64, task u32, stream u8,
// kind u8, 10 bytes 0), then `length` bytes. Threads: one writer; readers in any process see whole
// frames or nothing. Failure: after an error the file may end in part of a frame; readers stop
// there, and the next writer cuts it off.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::run {

struct LogFrame {
  TaskNumber task;
  Token token;
  exec::Stream stream = exec::Stream::out;
  std::string bytes;
};

class LogWriter {
 public:
  /// Opens DIRECTORY/output.log (0600) for appending and cuts off what a crash left half written.
  static Result<LogWriter> open(os::Env& env, std::string directory);

  /// Buffers; the frame is in the file after flush().
  void append(const exec::Output& output);
  /// After an error, such as a full disk, what was not written is kept for the next call.
  Status flush();
  /// The end of all that was appended: an offset for a later read.
  std::int64_t end() const;
  /// Nothing more comes of this attempt.
  void close(Token token);

 private:
  struct Sink {
    os::Fd file;
    std::int64_t size = 0;  // of the whole frames in the file
    std::string buffer;     // that follow
  };
  LogWriter(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Result<Sink> open_sink(const std::string& path);
  Status open_own(const exec::Output& output);
  Status write_out(Sink& sink);
  void remember(Status status);

  os::Env* env_;
  std::string directory_;
  Sink main_;
  std::map<Token, std::int64_t> written_;  // bytes of each attempt that runs
  std::map<Token, Sink> own_;              // of those that print much
  std::set<Token> begun_;                  // that an earlier writer gave a file of their own
  Status failure_;                         // that no later flush can mend
};

class LogReader {
 public:
  /// not_found: the run has printed nothing yet.
  static Result<LogReader> open(os::Env& env, std::string directory);

  /// Shows the frames of one attempt (token 0: of all), from where the last call stopped to the
  /// present end, one at a time: a log may be larger than memory.
  Status read(Token token, const std::function<void(LogFrame)>& show);
  void seek(std::int64_t offset) { offset_ = offset; }

 private:
  LogReader(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Status read_file(const os::Fd& file, std::int64_t& offset, Token token,
                   const std::function<void(LogFrame)>& show);

  os::Env* env_;
  std::string directory_;
  os::Fd file_;
  std::int64_t offset_ = 0;
  std::map<Token, std::int64_t> own_offsets_;
};

}  // namespace berth::run
