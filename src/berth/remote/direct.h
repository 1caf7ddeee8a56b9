// Objects that go from one machine elsewhere to another without coming through here: the runner
// asks `berth-agent push` (agent/push.h) on the one that has them. By what its own user has there:
// no key and no agent goes along. Whatever comes of it, the runner asks the other machine what it
// lacks then, and brings that itself.
//
// Ownership: refer to Env. Threads: one. Failure: a push that fails is over(); who has failed once
// is not asked again for that machine.
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

#include "berth/agent/frame_stream.h"
#include "berth/agent/line.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/command.h"
#include "berth/remote/door.h"

namespace berth::remote {

/// Who has what, as far as this runner has seen it come to be there, and who may be asked for it.
class Holders {
 public:
  /// Less is brought sooner than a connection is made.
  static constexpr std::int64_t kLeast = 4 << 20;  // bytes

  void add(const Door& door, const fileset::Fileset& fileset);
  struct Holder {
    Door door;
    fileset::Fileset objects;  // of those that were asked about, each under a name of its own
  };
  /// The machine that has the most of what `to` lacks, kLeast of it at least.
  std::optional<Holder> find(const Door& to, std::span<const agent::Piece> lacking) const;
  /// Never again, for these two; what a person is told about it.
  std::string refuse(const Door& from, const Door& to, const Error& because);

 private:
  struct Known {
    Door door;
    std::array<std::unordered_set<Digest>, 2> objects = {};  // [1]: executable
  };
  static bool has(const Known& known, const agent::Piece& piece);
  std::map<std::vector<std::string>, Known> known_;  // by the words of its door
  std::set<std::pair<std::vector<std::string>, std::vector<std::string>>> refused_;
};

struct PushOptions {
  Door from, to;
  AgentFile agent;
  std::string directory;  // on `to`: of the connection that looks for the nonce
  Digest nonce;           // of what its store has, and no other
  fileset::Fileset objects;
};

/// One push under way; going, it ends there, too.
class Push {
 public:
  /// `wake` is called in a turn of the loop when something has moved, or it is over.
  Push(os::Env& env, PushOptions options, std::function<void()> wake);
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;
  const Door& from() const { return options_.from; }
  std::int64_t moved() const { return moved_; }  // bytes
  const std::optional<Status>& over() const { return over_; }

 private:
  void step();
  void arm();
  Mono still_until() const;
  void look_up();
  void dial(const Result<Door>& to);
  Status exchange();

  os::Env& env_;
  const PushOptions options_;
  std::optional<Command> lookup_;  // of the address, by ssh here
  std::optional<agent::Line> line_;
  agent::FrameStream stream_;
  Status stream_status_;  // what the stream told last
  std::int64_t moved_ = 0;
  Mono heard_at_, moved_at_;
  std::optional<Status> over_;
  std::function<void()> wake_;
  os::Timer due_{env_.loop(), [this] { step(); }};
};

}  // namespace berth::remote
