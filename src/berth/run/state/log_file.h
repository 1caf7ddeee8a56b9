// A run's log holds everything that its tasks printed. It is one file of frames, so that ten
// thousand small outputs cost one file; a task that prints much goes on in a file of its own, so
// that it stays cheap to follow a small one.
//
// A frame has a head of 32 bytes (little-endian: magic u32, length u32, token i64, task u32, stream
// u8, kind u8, 2 bytes 0, number i64 of the output or 0), then `length` bytes. An agent tells again
// what a runner that died did not acknowledge: what the log has already, by that number, is not
// logged again.
//
// Threads: one writer; readers in any process see whole frames or nothing. Failure: after an error
// the file may end in a part of a frame; readers stop there, and the next writer cuts it off.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

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
  /// Opens DIRECTORY/output.log (0600) for appending, and cuts off the part of a frame that a crash
  /// may have left.
  static Result<LogWriter> open(os::Env& env, std::string directory);

  /// Buffers the frame; flush() writes it.
  void append(const exec::Output& output);
  /// Writes what was appended. After an error, such as a full disk, what was not written is kept
  /// for the next call.
  Status flush();
  /// The offset behind all that was appended, for a later read.
  std::int64_t end() const;
  /// The attempt prints nothing more.
  void close(Token token);

 private:
  struct Sink {
    os::Fd file;
    std::int64_t size = 0;  // of the whole frames in the file
    std::string buffer;     // that follow
    bool closed = false;    // it is let go of with the next flush
  };
  LogWriter(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Result<Sink> open_sink(const std::string& path);
  Result<std::int64_t> find_sound_end(const os::Fd& file, std::int64_t size);
  Status open_own(const exec::Output& output);
  Status write_out(Sink& sink);
  void remember(Status status);

  os::Env* env_;
  std::string directory_;
  Sink main_;
  std::map<Token, std::int64_t> written_;  // bytes, by attempt that runs
  std::map<Token, Sink> own_;              // the files of attempts that print much
  std::set<Token> begun_;                  // attempts that an earlier writer gave such a file
  std::unordered_map<std::int64_t, std::int64_t>
      last_;        // numbers that earlier ones logged, by token
  Status failure_;  // one that no later flush can mend
};

class LogReader {
 public:
  /// Failure: not_found, where the run has printed nothing yet.
  static Result<LogReader> open(os::Env& env, std::string directory);

  /// Calls `show` with each frame of one attempt (of all, where the token is 0) from where the last
  /// call stopped to the present end; a log may be larger than memory.
  Status read(Token token, const std::function<void(LogFrame)>& show);
  /// Does the same for a few MiB. Returns false at the present end.
  Result<bool> read_some(Token token, const std::function<void(LogFrame)>& show);
  void seek(std::int64_t offset) { offset_ = offset; }
  /// The last bytes of a stream of one attempt, `most` or fewer, from where a read would go on.
  /// However much the attempt printed, no more than that is read of it.
  Result<std::string> last(Token token, exec::Stream stream, std::size_t most);

 private:
  LogReader(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Status find_last(const os::Fd& file, std::int64_t offset, Token token, exec::Stream stream,
                   std::size_t most, std::string& last, bool& goes_on);
  Result<bool> read_step(const os::Fd& file, std::int64_t& offset, Token token,
                         const std::function<void(LogFrame)>& show);

  os::Env* env_;
  std::string directory_;
  os::Fd file_;
  std::int64_t offset_ = 0;
  std::map<Token, std::int64_t> own_offsets_;
  Token next_own_;  // the first whose own file was not read to its end
};

}  // namespace berth::run
