#include "berth/fileset/objects.h"

#include <set>

#include "berth/base/text.h"
#include "berth/fileset/seen.h"

namespace berth::fileset {
namespace {

/// The time of an object.
constexpr Wall sealed_at(Sealed how) {
  return Wall(std::chrono::seconds(how == Sealed::durable ? 1 : 2));
}
constexpr std::size_t kBlock = 1U << 20;
constexpr std::string_view kExecutable = ".x";

Status set_aside(os::Env& env, const std::string& store, const Digest& digest, bool executable,
                 std::string_view because) {
  const std::string aside =
      fmt::format("{}/damaged/{}{}.{:016x}", store, to_hex(digest),
                  executable ? kExecutable : std::string_view(), env.random());
  BERTH_TRY(env.rename(object_path(store, digest, executable), aside));
  return fail(ErrorKind::corrupt, "object {} {}; it is now {}", to_hex(digest), because, aside);
}

/// An object that is there, and is to be read.
struct Found {
  Digest digest;
  bool executable = false;
  std::string path;
  Wall began;  // before its status was asked for
  os::FileStatus status;
};

Result<Found> find_object(os::Env& env, const std::string& store, const Digest& digest,
                          bool executable) {
  Found found{digest, executable, object_path(store, digest, executable), env.wall(), {}};
  BERTH_ASSIGN(found.status, env.status(found.path));
  return found;
}

Status read_object(os::Env& env, const std::string& store, const Found& object, Paths& fresh) {
  auto found = read_content(env, object.path);
  // What a disk could not read it may read when it is asked again; a task costs more than a look.
  if (!found && found.error().kind == ErrorKind::io) found = read_content(env, object.path);
  if (found && found->digest == object.digest) {
    if (found->size >= kWorthRemembering)
      if (const auto after = env.status(object.path))
        remember(env, store + std::string(kSeen), object.status, *after, object.began,
                 object.digest, Duration(0));
    if (object.status.modified == sealed_at(Sealed::durable)) return {};
    if (object.status.modified == sealed_at(Sealed::fresh) && fresh.contains(object.path))
      return {};
    fresh.insert(object.path);
    return keep_record(env, store, object.path,
                       [&] { return seal(env, object.path, object.executable, Sealed::fresh); });
  }
  // A power cut damaged the object before anything recorded it.
  if (found && object.status.modified == sealed_at(Sealed::fresh)) {
    BERTH_TRY(env.remove_file(object.path));
    return fail(ErrorKind::not_found, "object {} was never whole on the disk",
                to_hex(object.digest));
  }
  if (found)
    return set_aside(env, store, object.digest, object.executable,
                     "contains other bytes than it did");
  if (found.error().kind != ErrorKind::io) return std::unexpected(found.error());
  return set_aside(env, store, object.digest, object.executable, "cannot be read");
}

}  // namespace

std::string object_path(const std::string& store, const Digest& digest, bool executable) {
  const std::string hex = to_hex(digest);
  return fmt::format("{}/objects/{}/{}{}", store, hex.substr(0, 2), hex.substr(2),
                     executable ? kExecutable : std::string_view());
}

std::optional<Digest> object_digest(std::string_view fan, std::string_view name) {
  if (name.ends_with(kExecutable)) name.remove_suffix(kExecutable.size());
  const auto digest = parse_digest(fmt::format("{}{}", fan, name));
  return digest ? std::optional(*digest) : std::nullopt;
}

Result<Content> read_content(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const os::Fd fd, env.open_read(path));
  // Asked for little first: most files are small, and a block must be made ready to be read into.
  std::size_t most = 16U << 10;
  Sha256 hash;
  for (std::int64_t size = 0;;) {
    if (env.stop_signals() > 1)
      return fail(ErrorKind::interrupted, "{}: not read to its end", path);
    BERTH_ASSIGN(const std::string block, env.read_at(fd, size, most));
    hash.add(block);
    size += static_cast<std::int64_t>(block.size());
    if (block.size() < most) return Content{hash.finish(), size};
    most = kBlock;
  }
}

Status seal(os::Env& env, const std::string& path, bool executable, Sealed how) {
  return env.stamp(path, sealed_mode(executable), sealed_at(how));
}

void record_object(os::Env& env, const std::string& store, const std::string& path,
                   const Digest& digest) {
  const auto status = env.status(path);
  if (!status || status->size < kWorthRemembering) return;
  remember(env, store + std::string(kSeen), *status, *status, env.wall(), digest, Duration(0));
}

Status keep_record(os::Env& env, const std::string& store, const std::string& path,
                   const std::function<Status()>& change) {
  const auto before = env.status(path);
  const auto digest = before && before->size >= kWorthRemembering
                          ? remembered(env, store + std::string(kSeen), *before)
                          : std::nullopt;
  BERTH_TRY(change());
  if (digest) record_object(env, store, path, *digest);
  return {};
}

Status check_object(os::Env& env, const std::string& store, const Entry& entry, Paths& fresh) {
  BERTH_ASSIGN(const Found object,
               find_object(env, store, entry.digest, entry.kind == Entry::Kind::executable));
  const os::FileStatus& status = object.status;
  if (status.mode != sealed_mode(object.executable))  // an older Berth made it
    (void)keep_record(env, store, object.path, [&] {
      return env.stamp(object.path, sealed_mode(object.executable), status.modified);
    });
  const bool known = status.modified == sealed_at(Sealed::durable) ||
                     (status.modified == sealed_at(Sealed::fresh) && fresh.contains(object.path));
  if (known && status.size == entry.size && status.size >= kWorthRemembering &&
      remembered(env, store + std::string(kSeen), status) == entry.digest)
    return {};
  return read_object(env, store, object, fresh);
}

Status verify_object(os::Env& env, const std::string& store, const Digest& digest, bool executable,
                     Paths& fresh) {
  BERTH_ASSIGN(const Found object, find_object(env, store, digest, executable));
  return read_object(env, store, object, fresh);
}

Work::~Work() {
  // What cannot be removed is swept by the next collect().
  (void)remove_all(*env_, directory_);
}

bool Work::is_full() const {
  constexpr std::int64_t kEnough = 10'000;  // objects: some 900 kB, which collect() reads again
  return torn_ || named_ >= kEnough;
}

void Work::move_to(os::Env& env) {
  if (env_ == &env) return;
  env_ = &env;
  lock_ = std::move(lock_).in(env);
  for (Notes* notes : {&needs_, &publishes_}) notes->file = std::move(notes->file).in(env);
}

Status Work::add(Notes& notes, std::string_view name, const std::string& text) {
  if (!notes.file) {
    BERTH_ASSIGN(notes.file, env_->open_append(fmt::format("{}{}", directory_, name), 0600));
  }
  if (const auto written = env_->write_all(notes.file, text); !written) {
    torn_ = !env_->truncate(notes.file, notes.size);
    return written;
  }
  notes.size += static_cast<std::int64_t>(text.size());
  return {};
}

/// The text is that of a fileset, whose paths are numbers: an older Berth may read it too.
Status Work::name(const Fileset& fileset, std::vector<Digest>& named) {
  std::string text = needs_.size == 0 ? to_text({}) : "";
  const std::size_t before = named.size();
  for (const auto& entry : fileset.entries) {
    if (!has_object(entry)) continue;
    text += fmt::format("f {} {} {:010}\n", to_hex(entry.digest), entry.size, named_++);
    named.push_back(entry.digest);
  }
  for (std::size_t i = before; i < named.size(); ++i) ++needed_[named[i]];
  return text.empty() ? Status() : add(needs_, kNeeds, text);
}

void Work::release(const std::vector<Digest>& named) {
  for (const auto& digest : named)
    if (const auto found = needed_.find(digest); --found->second == 0) needed_.erase(found);
}

Status Work::will_make(const std::string& making, const std::string& place) {
  ++named_;
  return add(publishes_, kPublishes, making + '\0' + place + '\0');
}

std::unordered_set<Digest> parse_needs(std::string_view text) {
  constexpr std::size_t kBefore = 2, kHex = 64;  // "f DIGEST SIZE PATH"
  std::unordered_set<Digest> needs;
  for (const auto line : split(text, '\n'))
    if (line.starts_with("f ") || line.starts_with("x "))
      if (const auto digest = parse_digest(line.substr(kBefore, kHex))) needs.insert(*digest);
  return needs;
}

std::vector<std::pair<std::string, std::string>> parse_publishes(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto parts = split(text, '\0');  // the last is what stands behind the last NUL
  for (std::size_t i = 0; i + 2 < parts.size(); i += 2)
    pairs.emplace_back(std::string(parts[i]), std::string(parts[i + 1]));
  return pairs;
}

Hold& Hold::operator=(Hold&& other) noexcept {
  work_.swap(other.work_);
  named_.swap(other.named_);
  return *this;
}

Hold::~Hold() {
  if (work_) work_->release(named_);
}

Status Hold::name(const Fileset& fileset) {
  return work_->name(fileset, named_);
}

Hold Hold::in(os::Env& env) && {
  if (work_) work_->move_to(env);
  return std::move(*this);
}

Result<Hold> begin_work(os::Env& env, const std::string& store) {
  // Under the lock, so that collect() finds no directory that is not locked yet.
  BERTH_ASSIGN(const os::Fd shared, env.lock_shared(store + "/lock"));
  const std::string directory = fmt::format("{}/work/{:016x}", store, env.random());
  BERTH_TRY(env.make_directory(directory, 0700));
  auto lock = env.lock(directory, false);
  if (!lock) {
    (void)env.remove_directory(directory);
    return std::unexpected(std::move(lock).error());
  }
  return Hold(std::make_shared<Work>(env, directory, *std::move(lock)));
}

Result<os::Fd> name_needs(os::Env& env, const std::string& store, Hold& work,
                          const Fileset& fileset) {
  BERTH_ASSIGN(os::Fd shared, env.lock_shared(store + "/lock"));
  BERTH_TRY(work.name(fileset));
  return shared;
}

Result<Missing> declare_needs(os::Env& env, const std::string& store, Hold& work,
                              const Fileset& fileset, Paths& fresh) {
  BERTH_TRY(work.name(fileset));
  Missing missing;
  std::set<std::pair<Digest, Entry::Kind>> seen;
  for (const auto& entry : fileset.entries) {
    if (!has_object(entry) || !seen.emplace(entry.digest, entry.kind).second) continue;
    const auto there = check_object(env, store, entry, fresh);
    if (there) continue;
    if (there.error().kind == ErrorKind::corrupt)
      missing.damaged.push_back(there.error().message);
    else if (there.error().kind != ErrorKind::not_found)
      return std::unexpected(there.error());
    missing.entries.push_back(entry);
  }
  return missing;
}

}  // namespace berth::fileset
