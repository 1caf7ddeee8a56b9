#include "berth/agent/files/files.h"

#include <array>

#include "berth/agent/files/object_receiver.h"
#include "berth/agent/files/sent_files.h"
#include "berth/agent/layout.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/frames.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/user_directory.h"

namespace berth::agent {
namespace {

using fileset::Fileset;

/// Nothing that comes from elsewhere leaves the directory.
Result<std::string> below(const std::string& directory, std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos)
    return fail(ErrorKind::invalid, "no path: {}", clip(path));
  for (const auto name : split(path, '/'))
    if (name.empty() || name == "." || name == "..")
      return fail(ErrorKind::invalid, "a path that may lead outside the directory: {}", clip(path));
  return fmt::format("{}/{}", directory, path);
}

/// Checks that this machine was not started anew since the agent of the lease directory began: what
/// its tasks had written may not have reached the disk. Errors: stale.
Status check_boot(os::Env& env, const std::string& work) {
  const std::string lease_directory = work.substr(0, work.rfind('/'));
  if (work != work_directory(lease_directory)) return {};
  const auto text = env.read_file(agent_file(agent_directory(lease_directory)), kAgentFileMost);
  const auto agent = text ? parse_agent_file(*text) : std::unexpected(text.error());
  // Another machine's, where they share the directory; or it is over, and nothing was lost.
  if (!agent || agent->host != env.host_name() || agent->boot == env.boot_id()) return {};
  return fail(ErrorKind::stale,
              "{} was restarted after its tasks began: some of their output may be missing",
              env.host_name());
}

class FileServer {
 public:
  FileServer(os::Env& env, const os::Fd& out, std::string directory, std::string store,
             fileset::ObjectStore objects)
      : env_(env),
        directory_(std::move(directory)),
        store_(store),
        objects_(std::move(objects)),
        receiver_(env, std::move(store)),
        sent_(env, directory_),
        out_(out) {}

  /// An error ends the connection: what came is not what was promised.
  Status take(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::files:
        if (text_.size() + frame.bytes.size() > fileset::kMostText)
          return fail(ErrorKind::invalid, "a list of files that is too long");
        text_ += frame.bytes;
        return {};
      case FrameKind::object: {
        BERTH_ASSIGN(const auto piece, parse_piece(frame.bytes));
        return receiver_.begin(piece);
      }
      case FrameKind::data: return receiver_.add(frame.bytes);
      case FrameKind::ask: return answer(ask());
      case FrameKind::publish: return answer(publish(frame.bytes, Changes::ignored));
      case FrameKind::publish_folder: return answer(publish(frame.bytes, Changes::recorded));
      case FrameKind::written: return answer(written(frame.bytes));
      case FrameKind::capture: return answer(capture(frame.bytes));
      case FrameKind::get: return answer(get(frame.bytes));
      case FrameKind::remove: return answer(remove(frame.bytes));
      case FrameKind::same: return answer(same(frame.bytes));
      default: return fail(ErrorKind::invalid, "a frame that is an answer");
    }
  }

 private:
  Status send(FrameKind kind, std::string_view bytes) {
    return env_.write_all(out_, encode(kind, bytes));
  }
  Status send_all(FrameKind kind, std::string_view text) {
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), kFrameMost)))
      BERTH_TRY(send(kind, text.substr(0, kFrameMost)));
    return {};
  }
  Status answer(const Status& status) {
    return status ? send(FrameKind::end, {}) : send(FrameKind::error, to_text(status.error()));
  }

  Status ask() {
    auto parsed = fileset::parse_fileset(std::exchange(text_, {}));
    if (!parsed) return std::unexpected(parsed.error());
    fileset_ = *std::move(parsed);
    // What is here already stays until the rest has come.
    BERTH_ASSIGN(hold_, objects_.reserve(fileset_));
    BERTH_ASSIGN(const auto missing, receiver_.missing(fileset_));
    std::string list;
    for (const auto& piece : missing) list += to_text(piece) + "\n";
    return send_all(FrameKind::missing, list);
  }

  /// Whether changes of the files by tasks count as written.
  enum class Changes : std::uint8_t { ignored, recorded };
  Status publish(std::string_view path, Changes changes) {
    BERTH_ASSIGN(const auto to, below(directory_, path));
    BERTH_TRY(env_.make_directory(to.substr(0, to.rfind('/')), 0700));
    auto status = objects_.publish(fileset_, to, fileset::Publish::copies);
    if (!status && status.error().kind == ErrorKind::full) {
      free_room();
      status.error().message += fmt::format(" (to copy {} out of {})",
                                            format_bytes(fileset::total_bytes(fileset_)), store_);
    }
    // It was here when it was asked about; who asks again brings it again.
    if (!status && status.error().kind == ErrorKind::not_found) status.error().kind = ErrorKind::io;
    // A record that cannot be written makes a count wrong, and no task.
    if (status)
      (void)(changes == Changes::recorded ? sent_.add_files(path, fileset_) : sent_.add(path));
    return status;
  }

  Status written(std::string_view path) {
    if (!path.empty()) BERTH_TRY(below(directory_, path));
    BERTH_ASSIGN(const auto written, sent_.written(path));
    return send(FrameKind::files, to_text(written));
  }

  /// What just came must not keep the volume full: the next attempt brings it again.
  void free_room() {
    hold_ = {};
    (void)objects_.collect([](std::unordered_set<Digest>&) { return Status(); }, {});
  }

  Status capture(std::string_view path) {
    BERTH_ASSIGN(const auto from, below(directory_, path));
    BERTH_TRY(check_boot(env_, directory_));
    auto captured = objects_.capture(from, fileset::Expect::fresh);
    if (!captured && captured.error().kind == ErrorKind::not_found && is_over())
      return fail(ErrorKind::io, "{}: the lease is over", from);
    if (!captured) return std::unexpected(captured.error());
    hold_ = std::move(captured->hold);
    (void)sent_.add(path);
    return send_all(FrameKind::files, to_text(captured->fileset));
  }

  /// The agent of the lease has ended, and removed its files.
  bool is_over() {
    const std::string lease_directory = directory_.substr(0, directory_.rfind('/'));
    const auto agent = env_.status(agent_file(agent_directory(lease_directory)));
    return !agent && agent.error().kind == ErrorKind::not_found;
  }

  Status get(std::string_view text) {
    BERTH_ASSIGN(auto piece, parse_piece(text));
    while (piece.offset < piece.size) {
      BERTH_ASSIGN(const auto bytes, read_object(env_, store_, piece));
      if (bytes.empty()) return fail(ErrorKind::corrupt, "{}: it is too short", piece.digest);
      BERTH_TRY(send(FrameKind::data, bytes));
      piece.offset += static_cast<std::int64_t>(bytes.size());
    }
    return {};
  }

  Status remove(std::string_view path) {
    BERTH_ASSIGN(const auto gone, below(directory_, path));
    return fileset::remove_all(env_, gone);
  }

  Status same(const std::string& path) {
    if (!path.starts_with('/')) return fail(ErrorKind::invalid, "expected an absolute path");
    BERTH_TRY(env_.status(path));
    return {};
  }

  os::Env& env_;
  const std::string directory_, store_;
  fileset::ObjectStore objects_;
  ObjectReceiver receiver_;
  SentFiles sent_;
  const os::Fd& out_;
  std::string text_;
  Fileset fileset_;
  fileset::Hold hold_;  // of what was asked about or captured last
};

}  // namespace

Result<std::string> objects_directory(os::Env& env) {
  if (const auto cache = os::own_directory(env, os::kCacheHome)) return *cache + "/objects";
  return fail(ErrorKind::impossible, "no place for files: neither XDG_CACHE_HOME nor HOME");
}

Status serve_files(os::Env& env, const std::string& directory) {
  BERTH_ASSIGN(const auto store, objects_directory(env));
  BERTH_ASSIGN(auto objects, fileset::ObjectStore::open(env, store));
  const os::Fd in(env, 0);
  const os::Fd out(env, 1);
  FileServer server(env, out, directory, store, std::move(objects));
  BERTH_TRY(env.write_all(out, fmt::format("\n{}\n", kHere)));
  FrameReader reader;
  os::ReadBuffer buffer;
  for (;;) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = 0}};
    BERTH_TRY(env.wait(watches, std::nullopt));
    BERTH_ASSIGN(const auto got, env.read_some(in, buffer));
    if (got && *got == 0) return {};
    if (got) reader.add({buffer.data(), *got});
    for (;;) {
      BERTH_ASSIGN(const auto frame, reader.next());
      if (!frame) break;
      const auto status = server.take(*frame);
      if (status) continue;
      (void)env.write_all(out, encode(FrameKind::error, to_text(status.error())));
      return status;
    }
  }
}

}  // namespace berth::agent
