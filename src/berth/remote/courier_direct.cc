// How a Courier has another machine send what that has of an errand's objects.
#include "berth/base/text.h"
#include "berth/remote/courier.h"

namespace berth::remote {

using agent::FrameKind;

/// Whether somebody else sends some of it first; it is asked again then what is missing.
bool Courier::delegate(std::span<const agent::Piece> pieces) {
  if (!options_.holders) return false;
  for (;;) {
    auto holder = options_.holders->find(options_.door, pieces);
    if (!holder) return false;
    if (pushed_ && pushed_->words == holder->door.words) {
      refuse({ErrorKind::io, "what was sent directly has not arrived"});
      continue;
    }
    if (nonce_.empty()) {
      vouch();
      return true;
    }
    pushed_ = holder->door;
    moved_ = total_ = 0;
    for (const auto& entry : holder->objects.entries) total_ += entry.size;
    push_ = std::make_unique<Push>(env_, PushOptions{.from = std::move(holder->door),
                                                     .to = options_.door,
                                                     .agent = options_.agent,
                                                     .directory = options_.directory,
                                                     .path = nonce_path_,
                                                     .nonce = nonce_,
                                                     .objects = std::move(holder->objects)});
    step_ = Step::pushing;
    return true;
  }
}

/// Writes there what only the machine that we mean has.
void Courier::vouch() {
  nonce_path_ = fmt::format("direct.{:016x}", env_.random());
  const std::string nonce = fmt::format("{:016x}{:016x}", env_.random(), env_.random());
  fileset::Entry entry;
  entry.path = ".";
  entry.digest = sha256(nonce);
  entry.size = std::ssize(nonce);
  say(FrameKind::files, fileset::to_text({{entry}}));
  say(FrameKind::ask, {});
  say(FrameKind::object, agent::to_text(agent::Piece{to_hex(entry.digest), false, 0, entry.size}));
  say(FrameKind::data, nonce);
  say(FrameKind::publish, nonce_path_);
  vouched_ = 0;
  new_nonce_ = nonce;
  step_ = Step::vouching;
}

/// One answer to what it missed of it, one to where it is now.
Status Courier::hear_vouched() {
  if (++vouched_ < 2) return {};
  nonce_ = std::move(new_nonce_);
  offer();
  return {};
}

void Courier::turn_push(std::span<const os::Watch> watches) {
  push_->turn(watches);
  moved_ = push_->moved();
  if (!push_->over()) return;
  const Status over = *push_->over();
  if (!over) refuse(over.error());
  push_.reset();
  offer();
}

void Courier::refuse(const Error& because) {
  notes_.push_back(options_.holders->refuse(*pushed_, options_.door, because));
}

}  // namespace berth::remote
