#include "berth/remote/transfer/direct.h"

#include <algorithm>
#include <array>

#include "berth/agent/files/push.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/objects.h"
#include "berth/remote/ssh/ssh.h"

namespace berth::remote {
namespace {

/// Whoever pushes says something every second.
constexpr Duration kSilentMost = std::chrono::minutes(1);
constexpr Duration kLookupMost = std::chrono::seconds(10);

}  // namespace

void Holders::add(const Transport& transport, const fileset::Fileset& fileset) {
  if (!transport.direct) return;
  Known& known = known_.try_emplace(transport.words, Known{transport}).first->second;
  for (const auto& entry : fileset.entries)
    if (fileset::has_object(entry))
      known.objects[entry.kind == fileset::Entry::Kind::executable].insert(entry.digest);
}

bool Holders::has(const Known& known, const agent::Piece& piece) {
  const auto digest = parse_digest(piece.digest);
  return digest && known.objects[piece.executable].contains(*digest);
}

std::optional<Holders::Holder> Holders::find(const Transport& to,
                                             std::span<const agent::Piece> lacking) const {
  if (!to.direct) return std::nullopt;
  const Known* best = nullptr;
  std::int64_t most = kLeast - 1;
  for (const auto& [words, known] : known_) {
    if (words == to.words || refused_.contains({words, to.words})) continue;
    std::int64_t bytes = 0;
    for (const auto& piece : lacking)
      if (has(known, piece)) bytes += piece.size - piece.offset;
    if (bytes > most) {
      most = bytes;
      best = &known;
    }
  }
  if (best == nullptr) return std::nullopt;
  Holder holder{best->transport, {}};
  for (const auto& piece : lacking) {
    const auto digest = parse_digest(piece.digest);
    if (!digest || !has(*best, piece)) continue;
    fileset::Entry entry;
    entry.path = piece.digest + (piece.executable ? "x" : "");
    entry.kind = piece.executable ? fileset::Entry::Kind::executable : fileset::Entry::Kind::file;
    entry.digest = *digest;
    entry.size = piece.size;
    holder.objects.entries.push_back(std::move(entry));
  }
  std::ranges::sort(holder.objects.entries, {}, &fileset::Entry::path);
  return holder;
}

std::string Holders::refuse(const Transport& from, const Transport& to, const Error& because) {
  refused_.emplace(from.words, to.words);
  return fmt::format(
      "files from {} to {} go through this machine: {} (direct copying was tried because of "
      "direct: true)",
      from.name, to.name, because.message);
}

Push::Push(os::Env& env, PushOptions options, std::function<void()> wake)
    : env_(env),
      options_(std::move(options)),
      stream_(env,
              [this](Status status) {
                stream_status_ = std::move(status);
                due_.no_later_than(env_.now());
              }),
      received_at_(env.now()),
      moved_at_(env.now()),
      wake_(std::move(wake)) {
  if (options_.to.address.empty()) {
    lookup_.emplace(env_, ssh_lookup(options_.to), env_.environment(), kLookupMost,
                    [this] { due_.no_later_than(env_.now()); });
  } else {
    const auto address = parse_ssh_host(options_.to.address);
    dial(address ? Result<Transport>(ssh_transport_between(*address))
                 : std::unexpected(address.error()));
  }
  arm();
}

/// For a pusher that says that it is there, and no more; another gives up sooner, and says why.
Mono Push::still_until() const {
  const std::int64_t objects = std::ssize(options_.objects.entries);
  return moved_at_ + kSilentMost +
         agent::still_most(objects, fileset::total_bytes(options_.objects));
}

/// What the loop waits for, as it is now.
void Push::arm() {
  if (over_ || (connection_ && connection_->lost()))
    due_.no_later_than(env_.now());
  else
    due_.no_later_than(std::min(received_at_ + kSilentMost, still_until()));
}

void Push::step() {
  const std::int64_t moved = moved_;
  if (lookup_) look_up();
  if (connection_ && !over_) {
    if (connection_->lost())
      over_ = std::unexpected(*connection_->lost());
    else if (!stream_.is_open() && connection_->here())
      stream_.open(connection_->take());
    if (stream_.is_open())
      if (const auto status = exchange(); !status && !over_)
        over_ = std::unexpected(connection_->because(status.error()));
  }
  if (!over_ && env_.now() >= received_at_ + kSilentMost)
    over_ = fail(ErrorKind::busy, "no message from it for {}", format_duration(kSilentMost));
  if (!over_ && env_.now() >= still_until())
    over_ = fail(ErrorKind::busy, "nothing moved for {}", format_duration(env_.now() - moved_at_));
  if (over_)
    due_.set(std::nullopt);
  else
    arm();
  if (over_ || moved_ != moved) wake_();
}

void Push::look_up() {
  const auto end = lookup_->take();
  if (!end) return;
  lookup_.reset();
  const auto host = parse_ssh_lookup(end->out);
  if (end->good() && host) return dial(ssh_transport_between(*host));
  const std::string why = end->error ? end->error->message : clip(trim(end->err), 300);
  over_ = fail(ErrorKind::io, "ssh -G reports no address of {}: {}", options_.to.name, why);
}

void Push::dial(const Result<Transport>& to) {
  if (!to) {
    over_ = std::unexpected(to.error());
    return;
  }
  const std::array<std::string, 2> files{"files", options_.directory};
  const std::array<std::string, 1> push{"push"};
  const std::string text = fileset::to_text(options_.objects);
  for (auto rest = std::string_view(text); !rest.empty();
       rest.remove_prefix(std::min(rest.size(), agent::kFrameMost)))
    stream_.send_frame(agent::FrameKind::files, rest.substr(0, agent::kFrameMost));
  stream_.send_frame(
      agent::FrameKind::to,
      agent::to_json({.command = through(*to, known_agent_command(options_.agent, files)),
                      .nonce = options_.nonce}));
  connection_.emplace(env_, connection_to(options_.from, options_.agent, push),
                      [this] { due_.no_later_than(env_.now()); });
  received_at_ = moved_at_ = env_.now();
}

Status Push::exchange() {
  const auto reported = std::exchange(stream_status_, Status{});
  for (;;) {
    BERTH_ASSIGN(const auto frame, stream_.next());
    if (!frame) break;
    received_at_ = env_.now();
    if (frame->kind == agent::FrameKind::error) {
      over_ = std::unexpected(agent::parse_error(frame->bytes));
      return {};
    }
    if (frame->kind == agent::FrameKind::end) {
      over_ = Status{};
      return {};
    }
    if (frame->kind != agent::FrameKind::sent)
      return fail(ErrorKind::invalid, "a frame that is not an answer");
    BERTH_ASSIGN(const auto moved, parse_integer(frame->bytes));
    if (moved > fileset::total_bytes(options_.objects))
      return fail(ErrorKind::invalid, "more bytes were sent than announced");
    if (moved <= moved_) continue;
    moved_ = moved;
    moved_at_ = env_.now();
  }
  BERTH_TRY(reported);
  if (stream_.ended()) return fail(ErrorKind::io, "the connection to {} ended", options_.from.name);
  return {};
}

}  // namespace berth::remote
