#include "berth/remote/transfer/transfer_queue.h"

#include <algorithm>
#include <array>

#include "berth/base/backoff.h"

namespace berth::remote {
namespace {

using agent::FrameKind;

constexpr std::size_t kAhead = 4 << 20;  // bytes that wait to be sent
constexpr Backoff kDialAgain{std::chrono::milliseconds(500), std::chrono::seconds(10)};

/// Says which of the two machines has no room.
Error on_this_machine(Error error) {
  return error.kind == ErrorKind::full ? within("no room on this machine", std::move(error))
                                       : error;
}

}  // namespace

Result<std::unique_ptr<TransferQueue>> TransferQueue::open(os::Env& env,
                                                           TransferQueueOptions options,
                                                           std::function<void()> wake) {
  BERTH_ASSIGN(auto objects, fileset::ObjectStore::open(env, options.store));
  return std::unique_ptr<TransferQueue>(
      new TransferQueue(env, std::move(options), std::move(objects), std::move(wake)));
}

TransferQueue::TransferQueue(os::Env& env, TransferQueueOptions options,
                             fileset::ObjectStore objects, std::function<void()> wake)
    : env_(env),
      options_(std::move(options)),
      dials_(connection_to(options_.transport, options_.agent,
                           std::array<std::string, 2>{"files", options_.directory})),
      objects_(std::move(objects)),
      stream_(env,
              [this](Status status) {
                stream_status_ = std::move(status);
                due_.no_later_than(env_.now());
              }),
      wake_(std::move(wake)),
      background_(env.background_threads()) {}

void TransferQueue::send(TransferRequest request) {
  if (std::ranges::find(requests_, request) == requests_.end())
    requests_.push_back(std::move(request));
  arm();
}

std::optional<TransferQueue::Progress> TransferQueue::progress() const {
  constexpr std::int64_t kMuch = 4 << 20;
  if (requests_.empty()) return std::nullopt;
  if (progress_ && progress_->total >= kMuch)
    return Progress{requests_.front(), progress_->read, progress_->total, true};
  if (total_ < kMuch) return std::nullopt;
  return Progress{requests_.front(), moved_, total_, false, push_ ? push_->from().name : ""};
}

/// Begins to move objects, once it is known which ones are missing.
void TransferQueue::set_out() {
  moved_ = total_ = 0;
  for (const auto& piece : pieces_) total_ += piece.size - piece.offset;
}

void TransferQueue::dial() {
  dial_at_.reset();
  stream_.reset();
  stream_status_ = {};
  step_ = Step::none;
  connection_ =
      std::make_unique<agent::Connection>(env_, dials_, [this] { due_.no_later_than(env_.now()); });
}

void TransferQueue::fall() {
  stream_.close();
  connection_.reset();
  step_ = Step::none;
  receiver_.reset();
  push_.reset();
  pushed_.reset();
  nonce_.reset();  // it may not have come there
  dial_at_ = env_.now() + kDialAgain.pause(++falls_, env_.random());
}

/// Sets the timer for what the queue has to do next, as things stand.
void TransferQueue::arm() {
  read_.watch(background_->busy() ? background_->ready() : -1);
  const bool begins = stream_.is_open() && step_ == Step::none;
  if (requests_.empty())
    due_.set(std::nullopt);
  else if (!connection_)
    due_.no_later_than(dial_at_.value_or(env_.now()));
  else if (begins || connection_->lost())
    due_.no_later_than(env_.now());
  if (!done_.empty()) wake_();
}

void TransferQueue::step() {
  if (!connection_ && !requests_.empty() && (!dial_at_ || env_.now() >= *dial_at_)) dial();
  if (connection_ && connection_->lost()) {
    const Error lost = *connection_->lost();
    fall();
    // No other call would find it: nothing can be brought there.
    if (lost.kind == ErrorKind::impossible)
      while (!requests_.empty()) end(lost);
  } else if (connection_ && !stream_.is_open() && connection_->here()) {
    stream_.open(connection_->take());
  } else if (stream_.is_open() && !exchange()) {
    fall();
  }
  if (push_) on_push();
  if (stream_.is_open() && step_ == Step::none && !requests_.empty()) begin();
  arm();
}

Status TransferQueue::exchange() {
  const auto status = std::exchange(stream_status_, Status{});
  while (stream_.is_open()) {
    BERTH_ASSIGN(auto frame, stream_.next());
    if (!frame) break;
    falls_ = 0;
    BERTH_TRY(on_frame(*std::move(frame)));
  }
  BERTH_TRY(status);
  if (stream_.ended()) return fail(ErrorKind::io, "the connection ended");
  if (step_ == Step::feeding) feed();
  return {};
}

void TransferQueue::begin() {
  const TransferRequest& request = requests_.front();
  text_.clear();
  pieces_.clear();
  set_out();
  const auto send = [&](Step step, FrameKind frame) {
    step_ = step;
    send_frame(frame, request.there);
  };
  using enum TransferRequest::Kind;
  switch (request.kind) {
    case compare: return send(Step::comparing, FrameKind::same);
    case remove: return send(Step::comparing, FrameKind::remove);
    case count: return send(Step::counting, FrameKind::written);
    case fetch: return send(Step::capturing, FrameKind::capture);
    case folder: return folder_ready_ ? offer() : read_folder();
    case bring: break;
  }
  auto captured = objects_.capture(request.here, fileset::Expect::stored);
  if (!captured) return end(on_this_machine(captured.error()));
  captured_ = *std::move(captured);
  offer();
}

/// Has a background thread read the folder, once, whatever becomes of the connection meanwhile.
void TransferQueue::read_folder() {
  step_ = Step::reading;
  if (progress_) return;
  progress_ = std::make_shared<FolderProgress>();
  const auto started =
      background_->start([this, request = requests_.front(), progress = progress_,
                          store = options_.store, confirmed = options_.confirmed,
                          &here = env_](os::Env& there) -> os::BackgroundThreads::Then {
        auto ready = prepare_folder(there, request.here, store, confirmed, *progress);
        if (ready) ready->captured.hold = std::move(ready->captured.hold).in(here);
        return [this, request, ready = std::move(ready)]() mutable {
          on_folder(request, std::move(ready));
        };
      });
  if (started) return;
  progress_.reset();
  end(started.error());
}

void TransferQueue::on_folder(const TransferRequest& request, Result<ReadyFolder> ready) {
  progress_.reset();
  if (requests_.empty() || requests_.front() != request) return;
  if (!ready) return end(on_this_machine(ready.error()));
  captured_ = std::move(ready->captured);
  left_out_ = std::move(ready->left_out);
  folder_ready_ = true;
  if (step_ == Step::reading) offer();
}

/// Asks the other machine which objects of the fileset it lacks.
void TransferQueue::offer() {
  text_.clear();
  const std::string text = fileset::to_text(captured_.fileset);
  for (auto rest = std::string_view(text); !rest.empty();
       rest.remove_prefix(std::min(rest.size(), agent::kFrameMost)))
    send_frame(FrameKind::files, rest.substr(0, agent::kFrameMost));
  send_frame(FrameKind::ask, {});
  step_ = Step::asked;
}

Status TransferQueue::on_frame(agent::Frame frame) {
  switch (frame.kind) {
    case FrameKind::error: return on_error(agent::parse_error(frame.bytes));
    case FrameKind::missing:
    case FrameKind::files:
      if (text_.size() + frame.bytes.size() > fileset::kMostText)
        return fail(ErrorKind::invalid, "a list that is too long");
      text_ += frame.bytes;
      return {};
    case FrameKind::data:
      if (!receiver_ || !receiver_->open()) return fail(ErrorKind::invalid, "unexpected bytes");
      moved_ += std::ssize(frame.bytes);
      return check_room_here(receiver_->add(frame.bytes));
    case FrameKind::end: return on_end();
    default: return fail(ErrorKind::invalid, "a frame that is not an answer");
  }
}

Status TransferQueue::on_error(Error error) {
  if (step_ == Step::none || step_ == Step::reading || step_ == Step::pushing)
    return fail(ErrorKind::invalid, "an answer to nothing");
  const bool sent = step_ == Step::feeding || step_ == Step::publishing;
  // What stood there before ours may have been another machine's, and is thrown away by now.
  if (error.kind == ErrorKind::corrupt && sent && !std::exchange(sent_afresh_, true))
    return std::unexpected(std::move(error));
  end(std::move(error));
  return {};
}

Status TransferQueue::on_end() {
  switch (step_) {
    case Step::asked: {
      BERTH_ASSIGN(auto pieces, agent::parse_missing(text_, captured_.fileset));
      if (delegate(pieces)) return {};
      sender_ = agent::ObjectSender(options_.store, std::move(pieces));
      total_ = sender_.total();
      step_ = Step::feeding;
      return {};
    }
    case Step::vouching: offer(); return {};
    case Step::publishing:
    case Step::comparing: end({}); return {};
    case Step::counting: {
      BERTH_ASSIGN(const auto written, agent::parse_written(text_));
      end({});
      done_.back().written = written;
      return {};
    }
    case Step::capturing: {
      BERTH_ASSIGN(captured_.fileset, fileset::parse_fileset(text_));
      receiver_ = std::make_unique<agent::ObjectReceiver>(env_, options_.store);
      auto missing = receiver_->missing(captured_.fileset);
      if (!missing) {
        end(missing.error());
        return {};
      }
      pieces_.assign(missing->begin(), missing->end());
      set_out();
      step_ = Step::getting;
      return fetch_next();
    }
    case Step::getting: return fetch_next();
    default: return fail(ErrorKind::invalid, "an answer to nothing");
  }
}

/// Sends the missing objects as fast as the connection takes them.
void TransferQueue::feed() {
  if (stream_.unsent() >= kAhead) return;
  std::string more;
  const auto fed = sender_.add(env_, more, kAhead - stream_.unsent());
  stream_.send(more);
  moved_ = sender_.moved();
  if (!fed) return end(fed.error()), fall();
  if (!sender_.over()) return;
  const bool is_folder = requests_.front().kind == TransferRequest::Kind::folder;
  send_frame(is_folder ? FrameKind::publish_folder : FrameKind::publish, requests_.front().there);
  step_ = Step::publishing;
}

/// Ends the request where this machine has no room for what comes: another connection would not
/// make room. What is still on its way belongs to nothing, so this connection ends.
Status TransferQueue::check_room_here(Status added) {
  if (added || added.error().kind != ErrorKind::full) return added;
  end(on_this_machine(added.error()));
  return added;
}

Status TransferQueue::fetch_next() {
  while (!pieces_.empty()) {
    const agent::Piece piece = pieces_.front();
    pieces_.pop_front();
    if (const auto begun = receiver_->begin(piece); !begun) {
      if (begun.error().kind != ErrorKind::full) return begun;
      end(on_this_machine(begun.error()));
      return {};
    }
    if (!receiver_->open()) continue;  // all of it was here
    send_frame(FrameKind::get, agent::to_text(piece));
    return {};
  }
  const auto placed = place();
  if (options_.holders) options_.holders->add(options_.transport, captured_.fileset);
  end(placed ? std::nullopt : std::optional(on_this_machine(placed.error())));
  return {};
}

Status TransferQueue::place() {
  const std::string& to = requests_.front().here;
  BERTH_ASSIGN(const auto hold, objects_.hold(captured_.fileset));
  BERTH_TRY(env_.make_directory(to.substr(0, std::max<std::size_t>(to.rfind('/'), 1)), 0700));
  return objects_.publish(captured_.fileset, to, fileset::Publish::copies);
}

void TransferQueue::end(std::optional<Error> failed) {
  done_.push_back(
      {std::move(requests_.front()), std::move(failed), std::exchange(left_out_, {}), {}});
  requests_.pop_front();
  step_ = Step::none;
  captured_ = {};
  folder_ready_ = false;
  receiver_.reset();
  push_.reset();
  pushed_.reset();
  sent_afresh_ = false;
  total_ = 0;
}

}  // namespace berth::remote
