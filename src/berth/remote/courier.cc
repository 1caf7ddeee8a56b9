#include "berth/remote/courier.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"

namespace berth::remote {
namespace {

using agent::FrameKind;

constexpr std::size_t kAhead = 4 << 20;  // bytes that wait to be sent
constexpr Duration kDialFirst = std::chrono::milliseconds(500);
constexpr Duration kDialMost = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<Courier>> Courier::open(os::Env& env, CourierOptions options,
                                               std::function<void()> wake) {
  BERTH_ASSIGN(auto objects, fileset::ObjectStore::open(env, options.store));
  return std::unique_ptr<Courier>(
      new Courier(env, std::move(options), std::move(objects), std::move(wake)));
}

Courier::Courier(os::Env& env, CourierOptions options, fileset::ObjectStore objects,
                 std::function<void()> wake)
    : env_(env),
      options_(std::move(options)),
      dials_(line_to(options_.door, options_.agent,
                     std::array<std::string, 2>{"files", options_.directory})),
      objects_(std::move(objects)),
      stream_(env,
              [this](Status status) {
                stream_status_ = std::move(status);
                due_.no_later_than(env_.now());
              }),
      wake_(std::move(wake)),
      aside_(env.aside()) {}

void Courier::send(Errand errand) {
  if (std::ranges::find(errands_, errand) == errands_.end()) errands_.push_back(std::move(errand));
  arm();
}

std::optional<Courier::Way> Courier::way() const {
  constexpr std::int64_t kMuch = 4 << 20;
  if (errands_.empty()) return std::nullopt;
  if (progress_ && progress_->total >= kMuch)
    return Way{errands_.front(), progress_->read, progress_->total, true};
  if (total_ < kMuch) return std::nullopt;
  return Way{errands_.front(), moved_, total_, false, push_ ? push_->from().name : ""};
}

/// All of what is to travel is known.
void Courier::set_out() {
  moved_ = total_ = 0;
  for (const auto& piece : pieces_) total_ += piece.size - piece.offset;
}

void Courier::dial() {
  dial_at_.reset();
  stream_.reset();
  stream_status_ = {};
  step_ = Step::none;
  line_ = std::make_unique<agent::Line>(env_, dials_, [this] { due_.no_later_than(env_.now()); });
}

void Courier::fall() {
  stream_.close();
  line_.reset();
  step_ = Step::none;
  intake_.reset();
  push_.reset();
  pushed_.reset();
  nonce_.reset();  // it may not have come there
  const Duration pause = std::min(kDialMost, kDialFirst * (1 << std::min(falls_++, 5)));
  const auto jitter = static_cast<std::int64_t>(env_.random() % 1024);  // 50 % to 150 %
  dial_at_ = env_.now() + pause * (512 + jitter) / 1024;
}

/// What the loop waits for, as it is now.
void Courier::arm() {
  read_.watch(aside_->busy() ? aside_->ready() : -1);
  const bool begins = stream_.is_open() && step_ == Step::none;
  if (errands_.empty())
    due_.set(std::nullopt);
  else if (!line_)
    due_.no_later_than(dial_at_.value_or(env_.now()));
  else if (begins || line_->lost())
    due_.no_later_than(env_.now());
  if (!done_.empty()) wake_();
}

void Courier::step() {
  if (!line_ && !errands_.empty() && (!dial_at_ || env_.now() >= *dial_at_)) dial();
  if (line_ && line_->lost()) {
    const Error lost = *line_->lost();
    fall();
    // No other call would find it: nothing can be brought there.
    if (lost.kind == ErrorKind::impossible)
      while (!errands_.empty()) end(lost);
  } else if (line_ && !stream_.is_open() && line_->here()) {
    stream_.open(line_->take());
  } else if (stream_.is_open() && !exchange()) {
    fall();
  }
  if (push_) on_push();
  if (stream_.is_open() && step_ == Step::none && !errands_.empty()) begin();
  arm();
}

Status Courier::exchange() {
  const auto status = std::exchange(stream_status_, Status{});
  while (stream_.is_open()) {
    BERTH_ASSIGN(auto frame, stream_.next());
    if (!frame) break;
    falls_ = 0;
    BERTH_TRY(hear(*std::move(frame)));
  }
  BERTH_TRY(status);
  if (stream_.ended()) return fail(ErrorKind::io, "the connection ended");
  if (step_ == Step::feeding) feed();
  return {};
}

void Courier::begin() {
  const Errand& errand = errands_.front();
  text_.clear();
  pieces_.clear();
  set_out();
  if (errand.kind == Errand::Kind::compare) {
    step_ = Step::comparing;
    return say(FrameKind::same, errand.there);
  }
  if (errand.kind == Errand::Kind::remove) {
    step_ = Step::comparing;
    return say(FrameKind::remove, errand.there);
  }
  if (errand.kind == Errand::Kind::fetch) {
    step_ = Step::capturing;
    return say(FrameKind::capture, errand.there);
  }
  if (errand.kind == Errand::Kind::folder) return folder_ready_ ? offer() : read_folder();
  auto captured = objects_.capture(errand.here, fileset::Expect::stored);
  if (!captured) return end(captured.error());
  captured_ = *std::move(captured);
  offer();
}

/// Beside the loop, once, whatever becomes of the connection meanwhile.
void Courier::read_folder() {
  step_ = Step::reading;
  if (progress_) return;
  progress_ = std::make_shared<FolderProgress>();
  const auto started = aside_->start([this, errand = errands_.front(), progress = progress_,
                                      store = options_.store, confirmed = options_.confirmed,
                                      &here = env_](os::Env& there) -> os::Aside::Then {
    auto ready = prepare_folder(there, errand.here, store, confirmed, *progress);
    if (ready) ready->captured.hold = std::move(ready->captured.hold).in(here);
    return
        [this, errand, ready = std::move(ready)]() mutable { on_folder(errand, std::move(ready)); };
  });
  if (started) return;
  progress_.reset();
  end(started.error());
}

void Courier::on_folder(const Errand& errand, Result<ReadyFolder> ready) {
  progress_.reset();
  if (errands_.empty() || errands_.front() != errand) return;
  if (!ready) return end(ready.error());
  captured_ = std::move(ready->captured);
  left_out_ = std::move(ready->left_out);
  folder_ready_ = true;
  if (step_ == Step::reading) offer();
}

/// Asks which of it is missing there.
void Courier::offer() {
  text_.clear();
  const std::string text = fileset::to_text(captured_.fileset);
  for (auto rest = std::string_view(text); !rest.empty();
       rest.remove_prefix(std::min(rest.size(), agent::kFrameMost)))
    say(FrameKind::files, rest.substr(0, agent::kFrameMost));
  say(FrameKind::ask, {});
  step_ = Step::asked;
}

Status Courier::hear(agent::Frame frame) {
  switch (frame.kind) {
    case FrameKind::error: return hear_error(agent::parse_error(frame.bytes));
    case FrameKind::missing:
    case FrameKind::files:
      if (text_.size() + frame.bytes.size() > fileset::kMostText)
        return fail(ErrorKind::invalid, "a list that is too long");
      text_ += frame.bytes;
      return {};
    case FrameKind::data:
      if (!intake_ || !intake_->open()) return fail(ErrorKind::invalid, "bytes that nobody wanted");
      moved_ += std::ssize(frame.bytes);
      return intake_->add(frame.bytes);
    case FrameKind::end: return hear_end();
    default: return fail(ErrorKind::invalid, "a frame that is no answer");
  }
}

Status Courier::hear_error(Error error) {
  if (step_ == Step::none || step_ == Step::reading || step_ == Step::pushing)
    return fail(ErrorKind::invalid, "an answer to nothing");
  const bool sent = step_ == Step::feeding || step_ == Step::publishing;
  // What stood there before ours may have been another machine's, and is thrown away by now.
  if (error.kind == ErrorKind::corrupt && sent && !std::exchange(sent_afresh_, true))
    return std::unexpected(std::move(error));
  end(std::move(error));
  return {};
}

Status Courier::hear_end() {
  switch (step_) {
    case Step::asked: {
      BERTH_ASSIGN(auto pieces, agent::parse_missing(text_, captured_.fileset));
      if (delegate(pieces)) return {};
      outflow_ = agent::Outflow(options_.store, std::move(pieces));
      total_ = outflow_.total();
      step_ = Step::feeding;
      return {};
    }
    case Step::vouching: offer(); return {};
    case Step::publishing:
    case Step::comparing: end({}); return {};
    case Step::capturing: {
      BERTH_ASSIGN(captured_.fileset, fileset::parse_fileset(text_));
      intake_ = std::make_unique<agent::Intake>(env_, options_.store);
      auto missing = intake_->missing(captured_.fileset);
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

/// What is missing there, as fast as it goes.
void Courier::feed() {
  if (stream_.unsent() >= kAhead) return;
  std::string more;
  const auto fed = outflow_.add(env_, more, kAhead - stream_.unsent());
  stream_.send(more);
  moved_ = outflow_.moved();
  if (!fed) return end(fed.error()), fall();
  if (!outflow_.over()) return;
  say(FrameKind::publish, errands_.front().there);
  step_ = Step::publishing;
}

Status Courier::fetch_next() {
  while (!pieces_.empty()) {
    const agent::Piece piece = pieces_.front();
    pieces_.pop_front();
    BERTH_TRY(intake_->begin(piece));
    if (!intake_->open()) continue;  // all of it was here
    say(FrameKind::get, agent::to_text(piece));
    return {};
  }
  const auto placed = place();
  if (options_.holders) options_.holders->add(options_.door, captured_.fileset);
  end(placed ? std::nullopt : std::optional(placed.error()));
  return {};
}

Status Courier::place() {
  const std::string& to = errands_.front().here;
  BERTH_ASSIGN(const auto hold, objects_.hold(captured_.fileset));
  BERTH_TRY(env_.make_directory(to.substr(0, std::max<std::size_t>(to.rfind('/'), 1)), 0700));
  return objects_.publish(captured_.fileset, to, fileset::Publish::copies);
}

void Courier::end(std::optional<Error> failed) {
  done_.push_back({std::move(errands_.front()), std::move(failed), std::exchange(left_out_, {})});
  errands_.pop_front();
  step_ = Step::none;
  captured_ = {};
  folder_ready_ = false;
  intake_.reset();
  push_.reset();
  pushed_.reset();
  sent_afresh_ = false;
  total_ = 0;
}

}  // namespace berth::remote
