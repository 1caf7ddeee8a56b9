// Brings files to a machine elsewhere and fetches them from there, one errand after another, over
// one connection to `berth-agent files` (agent/files.h). Only what is missing travels, by digest;
// an errand that a broken connection stopped goes on behind what has arrived.
//
// Ownership: refers to Env. Threads: one. Failure: an errand's own; a connection that breaks is
// made again, as often as it takes: whoever owns the Courier knows when to give up.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/frame_stream.h"
#include "berth/agent/intake.h"
#include "berth/agent/line.h"
#include "berth/fileset/fileset.h"
#include "berth/os/aside.h"
#include "berth/remote/direct.h"
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

struct CourierOptions {
  Door door;
  AgentFile agent;
  std::string directory;                  // there: of the connection
  std::string store;                      // the object store here
  bool confirmed = false;                 // folders go whatever their size
  std::shared_ptr<Holders> holders = {};  // who may send from there to there; none: nobody
};

class Courier {
 public:
  /// `wake` is called in a turn of the loop when there are outcomes to take.
  static Result<std::unique_ptr<Courier>> open(os::Env& env, CourierOptions options,
                                               std::function<void()> wake);

  /// Unless it is on the way already.
  void send(Errand errand);
  /// What is on its way, where that is much.
  struct Way {
    Errand errand;
    std::int64_t moved = 0, total = 0;  // bytes
    bool reading = false;               // a folder here, before any of it is sent
    std::string from = {};              // another machine that sends it; "": this one
  };
  std::optional<Way> way() const;
  std::vector<Outcome> take_outcomes() { return std::exchange(done_, {}); }
  /// What a person is to know, since it was asked last.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  Courier(os::Env& env, CourierOptions options, fileset::ObjectStore objects,
          std::function<void()> wake);
  void step();
  void arm();
  void dial();
  void fall();
  Status exchange();
  void begin();
  void read_folder();
  void on_folder(const Errand& errand, Result<ReadyFolder> ready);
  void offer();
  Status hear(agent::Frame frame);
  Status hear_error(Error error);
  Status hear_end();
  void set_out();
  void feed();
  bool delegate(std::span<const agent::Piece> pieces);
  void vouch();
  void on_push();
  void refuse(const Error& because);
  Status fetch_next();
  Status place();
  void say(agent::FrameKind kind, std::string_view bytes) { stream_.send_frame(kind, bytes); }
  void end(std::optional<Error> failed);

  os::Env& env_;
  const CourierOptions options_;
  const agent::LineOptions dials_;
  fileset::ObjectStore objects_;
  std::unique_ptr<agent::Line> line_;
  agent::FrameStream stream_;
  Status stream_status_;  // what the stream told last
  int falls_ = 0;
  std::optional<Mono> dial_at_;

  std::deque<Errand> errands_;
  std::vector<Outcome> done_;
  // Of the first errand, once it has begun.
  enum class Step : std::uint8_t {
    none,
    reading,
    asked,
    vouching,
    pushing,
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
  agent::Outflow outflow_;                    // what is to travel there
  std::deque<agent::Piece> pieces_;           // that are to travel here
  std::int64_t moved_ = 0, total_ = 0;        // bytes of all that travels
  std::unique_ptr<agent::Intake> intake_;
  // Another machine sends what it has of the errand's objects.
  std::optional<Digest> nonce_;  // by which it knows the place
  std::unique_ptr<Push> push_;
  std::optional<Door> pushed_;  // by whom, for this errand
  bool sent_afresh_ = false;    // from its beginning, once
  std::vector<std::string> notes_;
  std::function<void()> wake_;
  os::Timer due_{env_.loop(), [this] { step(); }};
  os::Poll read_{env_.loop(), [this] {
                   aside_->turn();
                   step();
                 }};
  std::unique_ptr<os::Aside> aside_;  // goes first
};

}  // namespace berth::remote
