// Objects may go from one other machine straight to another one, without coming through this
// machine: the runner asks `berth-agent push` (agent/files/push.h) on the machine that has them.
// That uses what its own user has there; no key of ours goes along. Whether it succeeds or not, the
// runner then asks the receiving machine what it still lacks, and sends that itself.
//
// Ownership: the classes refer to the Env. Threads: one. Failure: a push that fails is over(); the
// runner does not ask a machine again that has failed once for the same receiver.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/frame_stream.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/command.h"
#include "berth/remote/transport.h"

namespace berth::remote {

/// Holders knows which machines hold which objects, as far as this runner has brought them there or
/// fetched them, and which of these may be asked for them.
class Holders {
 public:
  /// In bytes. Fewer are sent from here sooner than a connection is made.
  static constexpr std::int64_t kLeast = 4 << 20;

  /// The machine holds the fileset's objects.
  void add(const Transport& transport, const fileset::Fileset& fileset);
  struct Holder {
    Transport transport;
    fileset::Fileset
        objects;  ///< That it holds of those in question, each under a name of its own.
  };
  /// The machine that holds the most of what `to` lacks, and kLeast of it at least.
  std::optional<Holder> find(const Transport& to, std::span<const agent::Piece> lacking) const;
  /// Never returns `from` for `to` again. Returns what a person is told about it.
  std::string refuse(const Transport& from, const Transport& to, const Error& because);

 private:
  struct Known {
    Transport transport;
    std::array<std::unordered_set<Digest>, 2> objects = {};  // [1]: executable
  };
  static bool has(const Known& known, const agent::Piece& piece);
  std::map<std::vector<std::string>, Known> known_;  // by the words of its transport
  std::set<std::pair<std::vector<std::string>, std::vector<std::string>>> refused_;
};

struct PushOptions {
  Transport from, to;
  AgentFile agent;
  std::string directory;  ///< On `to`: of the connection that looks for the nonce.
  Digest nonce;           ///< Of bytes that the object store of `to` has, and no other.
  fileset::Fileset objects;
};

/// A Push is one push under way. Its destructor ends it on the other machine, too.
class Push {
 public:
  /// The Push calls `wake` in a turn of the loop when bytes have moved, or it is over.
  Push(os::Env& env, PushOptions options, std::function<void()> wake);
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;
  const Transport& from() const { return options_.from; }
  /// How many bytes have moved.
  std::int64_t moved() const { return moved_; }
  /// How the push ended; nullopt while it goes on.
  const std::optional<Status>& over() const { return over_; }

 private:
  void step();
  void arm();
  Mono still_until() const;
  void look_up();
  void dial(const Result<Transport>& to);
  Status exchange();

  os::Env& env_;
  const PushOptions options_;
  std::optional<Command> lookup_;  // asks ssh on this machine for the address
  std::optional<agent::Connection> connection_;
  agent::FrameStream stream_;
  Status stream_status_;  // what the stream told last
  std::int64_t moved_ = 0;
  Mono received_at_, moved_at_;
  std::optional<Status> over_;
  std::function<void()> wake_;
  os::Timer due_{env_.loop(), [this] { step(); }};
};

}  // namespace berth::remote
