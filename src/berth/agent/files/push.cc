#include "berth/agent/files/push.h"

#include <algorithm>
#include <array>

#include "berth/agent/files/files.h"
#include "berth/agent/files/object_receiver.h"
#include "berth/agent/protocol/codec.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/frame_stream.h"
#include "berth/base/units.h"
#include "berth/fileset/objects.h"
#include "berth/os/loop.h"

namespace berth::agent {
namespace {

constexpr std::size_t kAhead = 4 << 20;  // bytes that wait to be sent
constexpr Duration kAnswersWithin = std::chrono::seconds(15);
constexpr Duration kReportEvery = std::chrono::seconds(1);

/// The connection to the other machine.
class Pusher {
 public:
  Pusher(os::Env& env, std::string store, fileset::Fileset objects, PushRequest request)
      : env_(env),
        store_(std::move(store)),
        objects_(std::move(objects)),
        request_(std::move(request)),
        connection_(
            env, {.command = request_.command, .agent_file = "", .answers_within = kAnswersWithin},
            [] {}),
        stream_(env,
                [this](Status status) {
                  stream_status_ = std::move(status);
                  moved_at_ = env_.now();
                }),
        moved_at_(env.now()) {}

  bool over() const { return step_ == Step::over; }
  std::int64_t moved() const { return sender_.moved(); }
  Mono deadline() const { return connection_.lost() ? env_.now() : moved_at_ + still_most(); }

  /// After each turn of the loop, and when the deadline has come.
  Status step() {
    if (connection_.lost()) return std::unexpected(*connection_.lost());
    if (step_ == Step::dialling) {
      if (!connection_.here()) return {};
      stream_.open(connection_.take());
      stream_.send_frame(FrameKind::get,
                         to_text(Piece{to_hex(request_.nonce), false, 0, kNonceBytes}));
      step_ = Step::proving;
    }
    if (const auto status = exchange(); !status) {
      if (status.error().kind != ErrorKind::io) return status;
      return std::unexpected(connection_.because(status.error()));
    }
    if (env_.now() >= moved_at_ + still_most())
      return fail(ErrorKind::busy, "nothing moved for {}", format_duration(still_most()));
    return {};
  }

 private:
  enum class Step : std::uint8_t { dialling, proving, asking, feeding, confirming, over };

  Duration still_most() const { return agent::still_most(sender_.whole(), sender_.whole_bytes()); }

  Status exchange() {
    for (;;) {
      BERTH_ASSIGN(const auto frame, stream_.next());
      if (!frame) break;
      BERTH_TRY(on_frame(*frame));
    }
    BERTH_TRY(stream_status_);
    if (!over() && stream_.ended()) return fail(ErrorKind::io, "the connection ended");
    return step_ == Step::feeding ? feed() : Status();
  }

  Status on_frame(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::error: return refused(parse_error(frame.bytes));
      case FrameKind::data:
      case FrameKind::missing:
        if (text_.size() + frame.bytes.size() > fileset::kMostText)
          return fail(ErrorKind::invalid, "a list that is too long");
        text_ += frame.bytes;
        return {};
      case FrameKind::end: return on_end(std::exchange(text_, {}));
      default: return fail(ErrorKind::invalid, "a frame that is not an answer");
    }
  }

  Status refused(const Error& error) const {
    if (step_ == Step::proving && error.kind == ErrorKind::not_found) return stranger();
    return std::unexpected(error);
  }

  static Status stranger() {
    return fail(ErrorKind::denied, "from that host, the address leads to another machine");
  }

  Status on_end(const std::string& text) {
    switch (step_) {
      case Step::proving: {
        if (sha256(text) != request_.nonce) return stranger();
        ask();
        step_ = Step::asking;
        return {};
      }
      case Step::asking: {
        BERTH_ASSIGN(auto pieces, parse_missing(text, objects_));
        sender_ = ObjectSender(store_, std::move(pieces));
        step_ = Step::feeding;
        return {};
      }
      case Step::confirming:
        if (!text.empty()) return fail(ErrorKind::corrupt, "the sent data is missing");
        step_ = Step::over;
        return {};
      default: return fail(ErrorKind::invalid, "an answer to nothing");
    }
  }

  /// Which of them are missing there.
  void ask() {
    const std::string text = fileset::to_text(objects_);
    for (auto rest = std::string_view(text); !rest.empty();
         rest.remove_prefix(std::min(rest.size(), kFrameMost)))
      stream_.send_frame(FrameKind::files, rest.substr(0, kFrameMost));
    stream_.send_frame(FrameKind::ask, {});
  }

  Status feed() {
    if (stream_.unsent() >= kAhead) return {};
    std::string more;
    BERTH_TRY(sender_.add(env_, more, kAhead - stream_.unsent()));
    stream_.send(more);
    if (!sender_.over()) return {};
    ask();
    step_ = Step::confirming;
    return {};
  }

  os::Env& env_;
  const std::string store_;
  const fileset::Fileset objects_;
  const PushRequest request_;
  Connection connection_;
  FrameStream stream_;
  Status stream_status_;  // what the stream told last
  std::string text_;      // of an answer that comes
  ObjectSender sender_;
  Step step_ = Step::dialling;
  Mono moved_at_;
};

/// What the runner says, up to its request; nullopt: it has gone.
struct Asked {
  fileset::Fileset objects;
  PushRequest request;
};
Result<std::optional<Asked>> read_request(os::Env& env, const os::Fd& in) {
  FrameReader reader;
  os::ReadBuffer buffer;
  std::string text;
  for (;;) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = in.number()}};
    BERTH_TRY(env.wait(watches, std::nullopt));
    BERTH_ASSIGN(const auto got, env.read_some(in, buffer));
    if (got && *got == 0) return std::nullopt;
    if (got) reader.add({buffer.data(), *got});
    for (;;) {
      BERTH_ASSIGN(const auto frame, reader.next());
      if (!frame) break;
      if (frame->kind == FrameKind::to) {
        BERTH_ASSIGN(auto objects, fileset::parse_fileset(text));
        BERTH_ASSIGN(auto request, parse_push(frame->bytes));
        return Asked{std::move(objects), std::move(request)};
      }
      if (frame->kind != FrameKind::files || text.size() > fileset::kMostText)
        return fail(ErrorKind::invalid, "expected a list of objects, and where they go");
      text += frame->bytes;
    }
  }
}

Status push(os::Env& env, const os::Fd& in, const os::Fd& out) {
  BERTH_ASSIGN(auto asked, read_request(env, in));
  if (!asked) return {};
  BERTH_ASSIGN(const auto store, objects_directory(env));
  BERTH_TRY(fileset::ObjectStore::open(env, store));
  // Not read here: the other machine checks what comes, and the runner waits for a word.
  BERTH_ASSIGN(auto work, fileset::begin_work(env, store));
  BERTH_TRY(fileset::name_needs(env, store, work, asked->objects));
  Pusher pusher(env, store, std::move(asked->objects), std::move(asked->request));
  Mono report_at = env.now() + kReportEvery;
  bool runner_gone = false;
  os::Poll runner(env.loop(), [&] { runner_gone = true; });
  runner.watch(in.number());
  while (!pusher.over()) {
    BERTH_TRY(env.loop().turn(std::min(report_at, pusher.deadline())));
    if (runner_gone || env.stop_signals() > 0) return {};
    BERTH_TRY(pusher.step());
    if (env.now() < report_at) continue;
    report_at = env.now() + kReportEvery;
    BERTH_TRY(env.write_all(out, encode(FrameKind::sent, fmt::format("{}", pusher.moved()))));
  }
  return env.write_all(
      out, encode(FrameKind::sent, fmt::format("{}", pusher.moved())) + encode(FrameKind::end, {}));
}

}  // namespace

Duration still_most(std::int64_t objects, std::int64_t bytes) {
  constexpr std::int64_t kEach = 50;                 // milliseconds
  constexpr std::int64_t kLeastRate = 50'000;        // bytes a millisecond
  constexpr std::int64_t kMostMore = 24 * 3600'000;  // milliseconds
  return std::chrono::minutes(1) +
         from_ms(std::min(objects * kEach + bytes / kLeastRate, kMostMore));
}

template <class Codec>
void describe(Codec& codec, Of<Codec, PushRequest>& request) {
  codec.field("command", request.command, kUtf8);
  codec.require("command", !request.command.empty());
  codec.field("nonce", request.nonce);
}

std::string to_json(const PushRequest& request) {
  return write_object(request);
}

Result<PushRequest> parse_push(std::string_view text) {
  return read_object<PushRequest>(text);
}

Status serve_push(os::Env& env) {
  os::install_stop_signals();
  const os::Fd in(env, 0);
  const os::Fd out(env, 1);
  BERTH_TRY(env.write_all(out, fmt::format("\n{}\n", kHere)));
  const auto pushed = push(env, in, out);
  if (!pushed) (void)env.write_all(out, encode(FrameKind::error, to_text(pushed.error())));
  return pushed;
}

}  // namespace berth::agent
