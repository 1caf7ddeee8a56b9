// A TransferQueue sends files to another machine and fetches files from there, one request after
// another, over one connection to `berth-agent files` (agent/files/files.h). Only objects that are
// missing travel, by their digests; a request that a broken connection stopped goes on behind what
// has arrived.
//
// Ownership: it refers to the Env. Threads: one. Failure: each request has its own Outcome. The
// queue makes a connection that breaks again, as often as it takes: its owner knows when to give
// up.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/files/object_receiver.h"
#include "berth/agent/files/sent_files.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/frame_stream.h"
#include "berth/fileset/fileset.h"
#include "berth/os/background_threads.h"
#include "berth/remote/transfer/direct.h"
#include "berth/remote/transfer/folder.h"

namespace berth::remote {

struct TransferRequest {
  enum class Kind : std::uint8_t {
    bring,    ///< Send a file or directory.
    folder,   ///< Send an experiment's folder, without what folder.h leaves out.
    fetch,    ///< Fetch a file or directory.
    compare,  ///< Find out whether the other machine has the file `there`, too.
    remove,   ///< Remove a file or directory there.
    count,    ///< Count the files below `there` that tasks wrote and that are not fetched.
  };
  Kind kind = Kind::bring;
  std::string here;   ///< Absolute.
  std::string there;  ///< Below the directory of the connection, "" for all of it in a count;
                      ///< absolute for compare.
  bool operator==(const TransferRequest&) const = default;
};
struct Outcome {
  TransferRequest request;
  std::optional<Error> failed;       ///< not_found, where nothing was there.
  std::string left_out = {};         ///< What of a folder was not sent, for people.
  agent::WrittenFiles written = {};  ///< The answer to a count.
};

struct TransferQueueOptions {
  Transport transport;
  AgentFile agent;
  std::string directory;                  ///< On the other machine: paths of requests are below it.
  std::string store;                      ///< The object store on this machine.
  bool confirmed = false;                 ///< Folders are sent whatever their size.
  std::shared_ptr<Holders> holders = {};  ///< Machines that may send in our place; none: nobody.
};

class TransferQueue {
 public:
  /// The queue calls `wake` in a turn of the loop when there are outcomes to take.
  static Result<std::unique_ptr<TransferQueue>> open(os::Env& env, TransferQueueOptions options,
                                                     std::function<void()> wake);

  /// Adds a request, unless the same one waits or is under way.
  void send(TransferRequest request);
  /// How far the present request has come.
  struct Progress {
    TransferRequest request;
    std::int64_t moved = 0, total = 0;  ///< In bytes.
    bool reading = false;   ///< A folder is being read on this machine; nothing was sent yet.
    std::string from = {};  ///< The other machine that sends the files; "": this one.
  };
  /// nullopt, where nothing is under way, or little.
  std::optional<Progress> progress() const;
  /// The outcomes since the last call.
  std::vector<Outcome> take_outcomes() { return std::exchange(done_, {}); }
  /// The sentences for people since the last call.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  TransferQueue(os::Env& env, TransferQueueOptions options, fileset::ObjectStore objects,
                std::function<void()> wake);
  void step();
  void arm();
  void dial();
  void fall();
  Status exchange();
  void begin();
  void read_folder();
  void on_folder(const TransferRequest& request, Result<ReadyFolder> ready);
  void offer();
  Status on_frame(agent::Frame frame);
  Status on_error(Error error);
  Status on_end();
  void set_out();
  void feed();
  bool delegate(std::span<const agent::Piece> pieces);
  void vouch();
  void on_push();
  void refuse(const Error& because);
  Status check_room_here(Status added);
  Status fetch_next();
  Status place();
  void send_frame(agent::FrameKind kind, std::string_view bytes) {
    stream_.send_frame(kind, bytes);
  }
  void end(std::optional<Error> failed);

  os::Env& env_;
  const TransferQueueOptions options_;
  const agent::ConnectionOptions dials_;
  fileset::ObjectStore objects_;
  std::unique_ptr<agent::Connection> connection_;
  agent::FrameStream stream_;
  Status stream_status_;  // what the stream reported last
  int falls_ = 0;         // connections that broke since something moved
  std::optional<Mono> dial_at_;

  std::deque<TransferRequest> requests_;
  std::vector<Outcome> done_;
  // How far the first request has come.
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
    comparing,
    counting
  };
  Step step_ = Step::none;
  fileset::Captured captured_;
  bool folder_ready_ = false;  // captured_ is the folder, however often a connection breaks
  std::string left_out_;
  std::shared_ptr<FolderProgress> progress_;  // of a folder that is being read
  std::string text_;                          // of a list that is coming
  agent::ObjectSender sender_;                // of the objects that go there
  std::deque<agent::Piece> pieces_;           // that come here
  std::int64_t moved_ = 0, total_ = 0;        // bytes of all that travels
  std::unique_ptr<agent::ObjectReceiver> receiver_;
  // Another machine may send those of the request's objects that it has.
  std::optional<Digest> nonce_;  // by which that machine recognizes the object store
  std::unique_ptr<Push> push_;
  std::optional<Transport> pushed_;  // to the machine that pushed for this request
  bool sent_afresh_ = false;         // the request was begun again, which happens once
  std::vector<std::string> notes_;
  std::function<void()> wake_;
  os::Timer due_{env_.loop(), [this] { step(); }};
  os::Poll read_{env_.loop(), [this] {
                   background_->turn();
                   step();
                 }};
  std::unique_ptr<os::BackgroundThreads> background_;  // goes first
};

}  // namespace berth::remote
