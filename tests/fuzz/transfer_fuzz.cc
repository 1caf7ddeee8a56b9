// What a machine elsewhere says while files travel, and what it says of itself: taken or refused,
// and what is taken is written as what reads the same.
#include "berth/agent/files/push.h"
#include "berth/agent/protocol/frames.h"
#include "berth/agent/protocol/pool_protocol.h"
#include "berth/base/text.h"
#include "berth/remote/transport.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  agent::FrameReader reader;
  std::string written;
  // In two parts, as a connection may bring it.
  for (const auto part : {text.substr(0, text.size() / 2), text.substr(text.size() / 2)}) {
    reader.add(part);
    for (;;) {
      const auto frame = reader.next();
      if (!frame) return;
      if (!*frame) break;
      written += agent::encode((*frame)->kind, (*frame)->bytes);
      if (const auto piece = agent::parse_piece((*frame)->bytes))
        BERTH_ASSERT(agent::parse_piece(agent::to_text(*piece)));
      (void)agent::parse_error((*frame)->bytes);
    }
  }
  BERTH_ASSERT(text.starts_with(written));
  for (const auto line : split(text, '\n')) {
    if (const auto call = agent::decode_pool_call(line)) {
      const std::string again = agent::encode(*call);
      BERTH_ASSERT(agent::encode(*agent::decode_pool_call(again)) == again);
    }
    if (const auto answer = agent::decode_pool_answer(line)) {
      const std::string again = agent::encode(*answer);
      BERTH_ASSERT(agent::encode(*agent::decode_pool_answer(again)) == again);
    }
    if (const auto place = remote::parse_lease_directory(line))
      BERTH_ASSERT(remote::parse_lease_directory(remote::to_json(*place)));
    if (const auto push = agent::parse_push(line))
      BERTH_ASSERT(agent::parse_push(agent::to_json(*push)) == *push);
  }
}
