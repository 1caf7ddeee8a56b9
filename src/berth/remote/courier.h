// Brings files to a machine elsewhere and fetches them from there, one errand after another, over
// one connection to `berth-agent files` (agent/files.h). Only what is missing travels, by digest;
// an errand that a broken connection stopped goes on behind what has arrived.
//
// Ownership: refers to Env. Threads: one. Failure: an errand's own; a connection that breaks is
// made again, as often as it takes: whoever owns the Courier knows when to give up.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/frames.h"
#include "berth/agent/intake.h"
#include "berth/agent/line.h"
#include "berth/fileset/fileset.h"
#include "berth/os/aside.h"
#include "berth/remote/folder.h"

namespace berth::remote {

struct Errand {
  // folder: bring, but of an experiment's folder what folder.h says.
  enum class Kind : std::uint8_t { bring, folder, fetch, compare, remove };
  Kind kind = Kind::bring;
  std::string here;   // absolute
  std::string there;  // below the directory of the connection; of compare: absolute
  bool operator==(const Errand&) const = default;
};
struct Outcome {
  Errand errand;
  std::optional<Error> failed;  // not_found: nothing was there
  std::string left_out = {};    // of a folder: for people
};

class Courier {
 public:
  /// `store`: the object store here. `confirmed`: folders go whatever their size.
  static Result<std::unique_ptr<Courier>> open(os::Env& env, agent::LineOptions line,
                                               std::string store, bool confirmed);

  /// Unless it is on the way already.
  void send(Errand errand);
  /// What is on its way, where that is much.
  struct Way {
    Errand errand;
    std::int64_t moved = 0, total = 0;  // bytes
    bool reading = false;               // a folder here, before any of it is sent
  };
  std::optional<Way> way() const;
  void watch(std::vector<os::Watch>& watches);
  std::optional<Mono> deadline() const;
  void turn(std::span<const os::Watch> watches, std::vector<Outcome>& done);

 private:
  Courier(os::Env& env, agent::LineOptions line, std::string store, bool confirmed,
          fileset::ObjectStore objects);
  void dial();
  void fall();
  Status exchange(std::span<const os::Watch> watches);
  void begin();
  void read_folder();
  void on_folder(const Errand& errand, Result<ReadyFolder> ready);
  void offer();
  void set_out();
  Status hear(agent::Frame frame);
  Status hear_end();
  void feed();
  Status fetch_next();
  Status place();
  void say(agent::FrameKind kind, std::string_view bytes) { out_ += agent::encode(kind, bytes); }
  void end(std::optional<Error> failed);

  os::Env& env_;
  const agent::LineOptions options_;
  const std::string store_;
  const bool confirmed_;
  fileset::ObjectStore objects_;
  std::unique_ptr<agent::Line> line_;
  os::Fd fd_;
  std::string out_;
  std::size_t sent_ = 0;
  agent::FrameReader reader_;
  int falls_ = 0;
  std::optional<Mono> dial_at_;

  std::deque<Errand> errands_;
  std::vector<Outcome> done_;
  // Of the first errand, once it has begun.
  enum class Step : std::uint8_t {
    none,
    reading,
    asked,
    feeding,
    publishing,
    capturing,
    getting,
    comparing
  };
  Step step_ = Step::none;
  fileset::Captured captured_;
  bool folder_ready_ = false;  // captured_ is the folder, however often a connection breaks
  std::string left_out_;
  std::shared_ptr<FolderProgress> progress_;  // of the one that is being read
  std::string text_;                          // of a list that comes
  std::deque<agent::Piece> pieces_;           // that are to travel
  bool begun_ = false;                        // the first of them
  std::int64_t moved_ = 0, total_ = 0;        // bytes of all of them
  std::unique_ptr<agent::Intake> intake_;
  std::unique_ptr<os::Aside> aside_;  // goes first
};

}  // namespace berth::remote
