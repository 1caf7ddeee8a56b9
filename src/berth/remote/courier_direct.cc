// How a Courier has another machine send what that has of an errand's objects.
#include "berth/agent/push.h"
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
    if (!nonce_) {
      vouch();
      return true;
    }
    pushed_ = holder->door;
    moved_ = total_ = 0;
    for (const auto& entry : holder->objects.entries) total_ += entry.size;
    push_ = std::make_unique<Push>(env_,
                                   PushOptions{.from = std::move(holder->door),
                                               .to = options_.door,
                                               .agent = options_.agent,
                                               .directory = options_.directory,
                                               .nonce = *nonce_,
                                               .objects = std::move(holder->objects)},
                                   [this] { due_.no_later_than(env_.now()); });
    step_ = Step::pushing;
    return true;
  }
}

/// Brings into the store there what no other has.
void Courier::vouch() {
  const std::string nonce = fmt::format("{:016x}{:016x}", env_.random(), env_.random());
  fileset::Entry entry;
  entry.path = ".";
  entry.digest = sha256(nonce);
  entry.size = agent::kNonceBytes;
  say(FrameKind::files, fileset::to_text({{entry}}));
  say(FrameKind::ask, {});
  say(FrameKind::object, agent::to_text(agent::Piece{to_hex(entry.digest), false, 0, entry.size}));
  say(FrameKind::data, nonce);
  nonce_ = entry.digest;
  step_ = Step::vouching;
}

void Courier::on_push() {
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
