// Files from elsewhere into a store. STORE/urls has of each URL, or of each checksum, ID: what was
// fetched last; ID.part: what has come of it, and ID.begun: of which state of it; ID.lock.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/failpoint.h"
#include "berth/remote/transfer/elsewhere.h"
#include "berth/remote/transfer/validators.h"

namespace berth::remote {

/// What is known of a file that was fetched, or begun to be; as lines in this order.
struct UrlRecord {
  std::string etag{}, modified{}, digest{};
  std::int64_t size = -1;
  bool is_dated = false;  // `modified` was a strong validator when the server sent it

  /// The strong validator of this state of the file, with which a server continues a transfer (RFC
  /// 9110, 13.1.5); "": there is none, and parts of two answers may not be joined.
  std::string state() const { return is_strong_etag(etag) ? etag : is_dated ? modified : ""; }
  /// Returns true if both were sent for the same state, as far as any validator says.
  bool is_like(const UrlRecord& other) const {
    return etag == other.etag && modified == other.modified &&
           (size < 0 || other.size < 0 || size == other.size);
  }
};

/// A file on its way.
struct Download {
  std::string part, begun;  // paths
  UrlRecord known{};        // what is in the store; without a digest: nothing is
  UrlRecord now{};          // what comes
  os::Fd file{};
  std::int64_t size = 0;  // of the part
  std::int64_t asked_from = 0;
  bool open = false;  // of this answer bytes are taken
  bool unchanged = false;
  std::optional<Error> error{};
  TransferProgress* progress = nullptr;
};

namespace {

constexpr std::size_t kMostRecord = 16U << 10;
constexpr std::string_view kDated = "dated";
constexpr Duration kLockAgain = std::chrono::milliseconds(200);

std::string urls_of(const std::string& store) {
  return store + "/urls";
}

/// With a checksum it is the same file wherever it comes from.
std::string id_of(const Url& url) {
  return url.sha256.empty() ? to_hex(sha256(url.text)) : "sha256-" + url.sha256;
}

std::string to_text(const UrlRecord& record) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", record.etag, record.modified, record.digest,
                     record.size, record.is_dated ? kDated : "");
}

UrlRecord read_record(os::Env& env, const std::string& path) {
  const auto text = env.read_file(path, kMostRecord);
  if (!text) return {};
  const auto lines = split(*text, '\n');
  const bool is_older = lines.size() == 5;  // of a Berth that did not record `is_dated`
  if (!is_older && lines.size() != 6) return {};
  const auto size = parse_integer(lines[3]);
  if (!size) return {};
  return {std::string(lines[0]), std::string(lines[1]), std::string(lines[2]), *size,
          !is_older && lines[4] == kDated};
}

/// Its time says when it was used last.
Status write_record(os::Env& env, const std::string& path, const UrlRecord& record) {
  BERTH_TRY(env.replace_file(path, to_text(record), 0600));
  return env.stamp(path, 0600, env.wall());
}

std::optional<fileset::Fileset> content_of(const UrlRecord& record) {
  const auto digest = parse_digest(record.digest);
  if (!digest || record.size < 0) return std::nullopt;
  fileset::Fileset content;
  content.entries.push_back(
      {.path = ".", .kind = fileset::Entry::Kind::file, .digest = *digest, .size = record.size});
  return content;
}

UrlRecord record_of(const HttpReply& reply) {
  UrlRecord record{.etag = reply.header("etag"), .modified = reply.header("last-modified")};
  record.is_dated = is_strong_date(record.modified, reply.header("date"));
  const std::string range = reply.header("content-range");  // "bytes 100-199/200"
  const auto size = parse_integer(reply.status == 206 ? range.substr(range.rfind('/') + 1)
                                                      : reply.header("content-length"));
  if (size && *size >= 0) record.size = *size;
  return record;
}

/// The first bytes of an answer have come: they go on with the part, or it begins anew.
Status open_part(os::Env& env, Download& download, const HttpReply& reply) {
  UrlRecord now = record_of(reply);
  const bool goes_on =
      reply.status == 206 &&
      reply.header("content-range").starts_with(fmt::format("bytes {}-", download.asked_from)) &&
      now.is_like(download.now);
  if (reply.status == 206 && !goes_on)
    return fail(ErrorKind::stale, "the server sends another part than it was asked for");
  if (!goes_on) {
    BERTH_TRY(env.remove_tree(download.part));
    BERTH_TRY(env.replace_file(download.begun, to_text(now), 0600));
    download.size = 0;
  }
  download.now = std::move(now);
  BERTH_ASSIGN(download.file, env.open_append(download.part, 0600));
  download.open = true;
  if (download.progress != nullptr) download.progress->total = download.now.size;
  return {};
}

bool take(os::Env& env, Download& download, const HttpReply& reply, std::string_view bytes) {
  Status status;
  if (!download.open) status = open_part(env, download, reply);
  if (status) status = env.write_all(download.file, bytes);
  if (!status) {
    download.error = status.error();
    return false;
  }
  download.size += static_cast<std::int64_t>(bytes.size());
  if (download.progress != nullptr) download.progress->done = download.size;
  os::failpoint("part fetched");
  return true;
}

/// Prepares to continue the part, if that is safe: a strong validator names its state, or a
/// checksum is compared at the end. Otherwise removes it.
Status look_at_part(os::Env& env, const Url& url, Download& download) {
  download.open = false;
  download.file.reset();
  const auto part = env.status(download.part);
  download.now = read_record(env, download.begun);
  const bool is_safe = !download.now.state().empty() || !url.sha256.empty();
  download.size = part && is_safe ? part->size : 0;
  // Of what is whole the last byte is asked for again, by which the server says that it is so yet.
  if (download.size > 0 && download.size == download.now.size) {
    BERTH_ASSIGN(const os::Fd file, env.open_write(download.part));
    BERTH_TRY(env.truncate(file, --download.size));
  }
  if (download.size == 0) BERTH_TRY(env.remove_tree(download.part));
  download.asked_from = download.size;
  return {};
}

void add_conditions(const Url& url, const Download& download, HttpRequest& request) {
  if (download.size > 0) {
    request.headers.push_back(fmt::format("Range: bytes={}-", download.size));
    const std::string state = download.now.state();
    if (url.scheme == "s3" && is_strong_etag(state))
      request.headers.push_back("If-Match: " + state);
    else if (!state.empty())
      request.headers.push_back("If-Range: " + state);
    return;
  }
  if (download.known.digest.empty()) return;
  if (!download.known.etag.empty())
    request.headers.push_back("If-None-Match: " + download.known.etag);
  else if (download.known.is_dated)
    request.headers.push_back("If-Modified-Since: " + download.known.modified);
}

/// Waits for who fetches the same, without sleeping through a stop.
Result<os::Fd> lock_url(os::Env& env, const std::string& path) {
  for (;;) {
    auto lock = env.lock(path, false);
    if (lock || lock.error().kind != ErrorKind::busy) return lock;
    if (env.stop_signals() > 1) return fail(ErrorKind::interrupted, "stopped");
    BERTH_TRY(env.wait({}, env.now() + kLockAgain));
  }
}

}  // namespace

/// What is in the store of it, held by nobody; with a checksum that is enough.
Result<Elsewhere::Look> Elsewhere::known(fileset::ObjectStore& store, const Url& url,
                                         UrlRecord& record) const {
  record = read_record(env_, urls_of(store.directory()) + "/" + id_of(url));
  Look look;
  const auto content = content_of(record);
  if (!content || (!url.sha256.empty() && record.digest != url.sha256)) {
    record = {};
    return look;
  }
  const auto hold = store.hold(*content);
  if (!hold) {
    record = {};
    if (hold.error().kind != ErrorKind::not_found) return std::unexpected(hold.error());
    return look;
  }
  return Look{record.size, true, *content};
}

/// Until the part is whole, or it is known that nothing has changed.
Status Elsewhere::download(const Url& url, Download& download) {
  const auto make = [&]() -> Result<HttpRequest> {
    BERTH_TRY(look_at_part(env_, url, download));
    HttpRequest request = this->request("GET", url);
    add_conditions(url, download, request);
    request.take = [this, &download](const HttpReply& reply, std::string_view bytes) {
      return take(env_, download, reply, bytes);
    };
    return request;
  };
  for (bool anew = false;;) {
    auto asked = ask(
        url,
        [&]() -> Result<HttpRequest> {
          if (const auto error = std::exchange(download.error, {}))
            return std::unexpected(within(shown(url.text), *error));
          return make();
        },
        [&] { return download.size; });
    const int status = asked ? asked->status : 0;
    // The part is of another state of the file, or too long.
    const bool wrong_part =
        status == 412 || status == 416 || (!asked && asked.error().kind == ErrorKind::stale);
    if (wrong_part && !anew) {
      anew = true;
      BERTH_TRY(env_.remove_tree(download.part));
      continue;
    }
    if (!asked) return std::unexpected(asked.error());
    download.unchanged = status == 304 && !download.known.digest.empty();
    if (download.unchanged) return {};
    if (status / 100 != 2) return std::unexpected(refusal(url, *asked));
    if (!download.open) BERTH_TRY(open_part(env_, download, *asked));  // an empty file
    download.file.reset();
    return {};
  }
}

Result<fileset::Captured> Elsewhere::fetch(fileset::ObjectStore& store, const Url& url,
                                           TransferProgress& progress) {
  BERTH_TRY(find_s3_once(url));
  const std::string urls = urls_of(store.directory());
  const std::string path = urls + "/" + id_of(url);
  BERTH_TRY(env_.make_directory(urls, 0700));
  BERTH_ASSIGN(const os::Fd lock, lock_url(env_, path + ".lock"));
  const auto taken = [&](const Look& look, UrlRecord record) -> Result<fileset::Captured> {
    BERTH_ASSIGN(auto hold, store.hold(look.content));
    BERTH_TRY(write_record(env_, path, record));
    return fileset::Captured{look.content, std::move(hold)};
  };
  for (bool anew = false;; anew = true) {
    Download download{.part = path + ".part", .begun = path + ".begun"};
    download.progress = &progress;
    BERTH_ASSIGN(const Look look, known(store, url, download.known));
    if (look.there && !url.sha256.empty()) return taken(look, download.known);
    const auto part = env_.status(download.part);
    BERTH_TRY(this->download(url, download));
    if (download.unchanged) return taken(look, download.known);
    BERTH_TRY(env_.stamp(download.part, 0600, env_.wall()));  // on some volumes all is executable
    BERTH_ASSIGN(auto captured, store.capture(download.part, fileset::Expect::fresh));
    const fileset::Entry& entry = captured.fileset.entries.at(0);
    download.now.digest = to_hex(entry.digest);
    download.now.size = entry.size;
    (void)env_.remove_tree(download.part);
    (void)env_.remove_tree(download.begun);
    if (!url.sha256.empty() && download.now.digest != url.sha256) {
      if (part && !anew) continue;  // what an earlier fetch has left may be at fault
      return fail(
          ErrorKind::invalid,
          "{}: the download has the checksum {}, and the flow expects {}: one of the two is wrong",
          shown(url.text), download.now.digest, url.sha256);
    }
    BERTH_TRY(write_record(env_, path, download.now));
    return captured;
  }
}

Result<Elsewhere::Look> Elsewhere::look(fileset::ObjectStore& store, const Url& url) {
  BERTH_TRY(find_s3_once(url));
  UrlRecord record;
  BERTH_ASSIGN(Look look, known(store, url, record));
  if (look.there && !url.sha256.empty()) return look;
  BERTH_ASSIGN(const HttpReply reply, ask(url, [&] { return request("HEAD", url); }));
  // Some allow to get what they do not allow to ask about.
  if (reply.status == 403 || reply.status == 405 || reply.status == 501) return Look{};
  if (reply.status / 100 != 2) return std::unexpected(refusal(url, reply));
  const UrlRecord now = record_of(reply);
  const bool same = look.there && now.size == record.size && now.is_like(record) &&
                    (!now.etag.empty() || record.is_dated);
  if (same) return look;
  return Look{.size = now.size};
}

Status keep_fetched(os::Env& env, const std::string& store, Wall used_since,
                    std::unordered_set<Digest>& live) {
  const std::string urls = urls_of(store);
  const auto names = env.list(urls);
  if (!names)
    return names.error().kind == ErrorKind::not_found ? Status() : std::unexpected(names.error());
  for (const auto& name : *names) {
    const std::string path = urls + "/" + name;
    const auto status = env.status(path);
    if (!status) continue;  // just done
    if (status->modified < used_since) {
      if (!name.ends_with(".lock")) (void)env.remove_tree(path);
      continue;
    }
    if (const auto content = content_of(read_record(env, path))) fileset::add_live(live, *content);
  }
  return {};
}

}  // namespace berth::remote
