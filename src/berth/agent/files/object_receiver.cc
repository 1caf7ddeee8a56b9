#include "berth/agent/files/object_receiver.h"

#include <algorithm>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/objects.h"

namespace berth::agent {
namespace {

constexpr std::size_t kHoleLeast = 4096;  // bytes: the blocks of most volumes

}  // namespace

Result<ObjectReceiver::Part> ObjectReceiver::free_part(const Piece& piece, bool make) const {
  if (make) BERTH_TRY(env_.make_directory(store_ + "/incoming", 0700));
  for (int number = 0;; ++number) {
    auto path = fmt::format("{}/incoming/{}{}.{}", store_, piece.digest,
                            piece.executable ? ".x" : "", number);
    if (!make && !env_.status(path)) return Part{std::move(path), {}};
    auto lock = env_.lock(path, false);
    if (lock) return Part{std::move(path), *std::move(lock)};
    if (lock.error().kind != ErrorKind::busy) return std::unexpected(lock.error());
  }
}

Result<std::vector<Piece>> ObjectReceiver::missing(const fileset::Fileset& fileset) {
  std::vector<Piece> missing;
  std::set<std::pair<Digest, bool>> seen;
  fileset::Paths fresh;  // whole, and for whoever wrote them to sync
  for (const auto& entry : fileset.entries) {
    const bool executable = entry.kind == fileset::Entry::Kind::executable;
    if (!fileset::has_object(entry) || !seen.emplace(entry.digest, executable).second) continue;
    const auto there = fileset::check_object(env_, store_, entry, fresh);
    if (there) continue;
    if (there.error().kind != ErrorKind::not_found && there.error().kind != ErrorKind::corrupt)
      return std::unexpected(there.error());
    Piece piece{to_hex(entry.digest), executable, 0, entry.size};
    BERTH_ASSIGN(const Part part, free_part(piece, false));
    if (const auto begun = env_.status(part.path)) piece.offset = std::min(begun->size, entry.size);
    missing.push_back(std::move(piece));
  }
  return missing;
}

/// Refuses an object that would fill the volume, before a byte of it is written: other tasks need
/// room there too. A quota or a limit of file sizes shows only in write().
Status ObjectReceiver::check_room(const Piece& piece) const {
  constexpr std::int64_t kLeftForOthers = 256 << 10;  // bytes
  const auto volume = env_.volume(store_);
  const std::int64_t needed = piece.size - piece.offset;
  if (!volume || needed <= kLeftForOthers || needed + kLeftForOthers <= volume->available)
    return {};
  return fail(ErrorKind::full, "no space left in {} for {} more; {} are free", store_,
              format_bytes(needed), format_bytes(volume->available));
}

Status ObjectReceiver::begin(const Piece& piece) {
  if (piece_) return fail(ErrorKind::invalid, "an object begins within another");
  BERTH_TRY(check_room(piece));
  BERTH_ASSIGN(part_, free_part(piece, true));
  auto opened = env_.open_append(part_.path, 0600);
  if (!opened) return give_up_part(opened.error());
  fd_ = *std::move(opened);
  const auto status = env_.status(part_.path);
  const std::int64_t there = status ? status->size : 0;
  if (there < piece.offset)
    return fail(ErrorKind::io, "{}: {} bytes are here, not {}", piece.digest, there, piece.offset);
  if (there > piece.offset) BERTH_TRY(env_.truncate(fd_, piece.offset));
  piece_ = piece;
  return piece.offset == piece.size ? finish() : Status{};
}

Status ObjectReceiver::add(std::string_view bytes) {
  if (!piece_) return fail(ErrorKind::invalid, "bytes of no object");
  if (piece_->offset + static_cast<std::int64_t>(bytes.size()) > piece_->size)
    return fail(ErrorKind::invalid, "more bytes than the object has");
  // What may be a hole of the object becomes one.
  const auto next = piece_->offset + static_cast<std::int64_t>(bytes.size());
  const bool zeros = bytes.size() >= kHoleLeast && bytes.find_first_not_of('\0') == bytes.npos;
  if (const auto written = zeros ? env_.truncate(fd_, next) : env_.write_all(fd_, bytes); !written)
    return give_up_part(written.error());
  piece_->offset += static_cast<std::int64_t>(bytes.size());
  return piece_->offset == piece_->size ? finish() : Status{};
}

/// A part is kept for the next attempt, unless there is no room for the rest of it.
Status ObjectReceiver::give_up_part(const Error& error) {
  fd_.reset();
  piece_.reset();
  const Part part = std::exchange(part_, {});
  if (error.kind != ErrorKind::full) return std::unexpected(error);
  (void)env_.remove_file(part.path);
  return std::unexpected(within(part.path, error));
}

Status ObjectReceiver::finish() {
  fd_.reset();
  const Piece piece = *std::exchange(piece_, std::nullopt);
  const Part part = std::exchange(part_, {});
  BERTH_ASSIGN(const auto content, fileset::read_content(env_, part.path));
  BERTH_ASSIGN(const auto digest, parse_digest(piece.digest));
  if (content.digest != digest) {
    (void)env_.remove_file(part.path);
    return fail(ErrorKind::corrupt, "object {} was received with other bytes", piece.digest);
  }
  const std::string object = fileset::object_path(store_, digest, piece.executable);
  BERTH_TRY(env_.make_directory(object.substr(0, object.rfind('/')), 0700));
  BERTH_TRY(fileset::seal(env_, part.path, piece.executable, fileset::Sealed::durable));
  BERTH_TRY(env_.sync(part.path));
  BERTH_TRY(env_.rename(part.path, object));
  fileset::record_object(env_, store_, object, digest);
  return {};
}

Result<std::vector<Piece>> parse_missing(std::string_view text, const fileset::Fileset& fileset) {
  std::map<std::pair<std::string, bool>, std::int64_t> sizes;
  for (const auto& entry : fileset.entries)
    if (fileset::has_object(entry))
      sizes.emplace(std::pair(to_hex(entry.digest), entry.kind == fileset::Entry::Kind::executable),
                    entry.size);
  std::vector<Piece> missing;
  for (const auto line : split(text, '\n')) {
    if (line.empty()) continue;
    BERTH_ASSIGN(auto piece, parse_piece(line));
    const auto size = sizes.extract({piece.digest, piece.executable});
    if (size.empty() || size.mapped() != piece.size)
      return fail(ErrorKind::invalid, "asked for an object that was not offered: {}", clip(line));
    missing.push_back(std::move(piece));
  }
  return missing;
}

Result<std::string> read_object(os::Env& env, const std::string& store, const Piece& piece) {
  BERTH_ASSIGN(const auto digest, parse_digest(piece.digest));
  BERTH_ASSIGN(const os::Fd fd,
               env.open_read(fileset::object_path(store, digest, piece.executable)));
  return env.read_at(fd, piece.offset, kFrameMost);
}

ObjectSender::ObjectSender(std::string store, std::vector<Piece> pieces)
    : store_(std::move(store)) {
  for (auto& piece : pieces) {
    total_ += piece.size - piece.offset;
    pieces_.push_back(std::move(piece));
  }
}

Status ObjectSender::add(os::Env& env, std::string& out, std::size_t most) {
  while (!pieces_.empty() && out.size() < most) {
    Piece& piece = pieces_.front();
    if (!std::exchange(begun_, true)) out += encode(FrameKind::object, to_text(piece));
    BERTH_ASSIGN(const auto bytes, read_object(env, store_, piece));
    if (!bytes.empty()) out += encode(FrameKind::data, bytes);
    piece.offset += std::ssize(bytes);
    moved_ += std::ssize(bytes);
    if (bytes.empty() && piece.offset < piece.size)
      return fail(ErrorKind::corrupt, "an object is too short");
    if (piece.offset < piece.size) continue;
    begun_ = false;
    ++whole_;
    whole_bytes_ += piece.size;
    pieces_.pop_front();
  }
  return {};
}

}  // namespace berth::agent
