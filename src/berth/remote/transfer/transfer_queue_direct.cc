// How a TransferQueue has another machine send what that has of a request's objects.
#include "berth/agent/files/push.h"
#include "berth/base/text.h"
#include "berth/remote/transfer/transfer_queue.h"

namespace berth::remote {

using agent::FrameKind;

/// Whether another machine sends some of the objects first. The receiver is asked again afterwards
/// what it lacks.
bool TransferQueue::delegate(std::span<const agent::Piece> pieces) {
  if (!options_.holders) return false;
  for (;;) {
    auto holder = options_.holders->find(options_.transport, pieces);
    if (!holder) return false;
    if (pushed_ && pushed_->words == holder->transport.words) {
      refuse({ErrorKind::io, "what was sent directly has not arrived"});
      continue;
    }
    if (!nonce_) {
      vouch();
      return true;
    }
    pushed_ = holder->transport;
    moved_ = total_ = 0;
    for (const auto& entry : holder->objects.entries) total_ += entry.size;
    push_ = std::make_unique<Push>(env_,
                                   PushOptions{.from = std::move(holder->transport),
                                               .to = options_.transport,
                                               .agent = options_.agent,
                                               .directory = options_.directory,
                                               .nonce = *nonce_,
                                               .objects = std::move(holder->objects)},
                                   [this] { due_.no_later_than(env_.now()); });
    step_ = Step::pushing;
    return true;
  }
}

/// Brings a nonce into the other machine's object store, which no other store has.
void TransferQueue::vouch() {
  const std::string nonce = fmt::format("{:016x}{:016x}", env_.random(), env_.random());
  fileset::Entry entry;
  entry.path = ".";
  entry.digest = sha256(nonce);
  entry.size = agent::kNonceBytes;
  send_frame(FrameKind::files, fileset::to_text({{entry}}));
  send_frame(FrameKind::ask, {});
  send_frame(FrameKind::object,
             agent::to_text(agent::Piece{to_hex(entry.digest), false, 0, entry.size}));
  send_frame(FrameKind::data, nonce);
  nonce_ = entry.digest;
  step_ = Step::vouching;
}

void TransferQueue::on_push() {
  moved_ = push_->moved();
  if (!push_->over()) return;
  const Status over = *push_->over();
  if (!over) refuse(over.error());
  push_.reset();
  offer();
}

void TransferQueue::refuse(const Error& because) {
  notes_.push_back(options_.holders->refuse(*pushed_, options_.transport, because));
}

}  // namespace berth::remote
