// Files that lie elsewhere (base/url.h), brought into an object store and out of it. What was
// fetched once stays known in STORE/urls: it is asked for again only where its server says that it
// has changed, and not at all where its checksum is known. A fetch that was cut off, by whatever,
// goes on where it was if the server can. Requests that fail in a way that may pass are made again
// a bounded number of times, with growing pauses.
//
// Everything here waits: it is for other threads than that of the loop (os/background_threads.h),
// and ends early where that is told to break off. Ownership: refers to the Env and the plugin.
// Threads: one. Failure: not_found, denied, invalid, io, full; interrupted. Each names the URL, the
// status, and what to do; what has come of a file is kept for the next try.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "berth/base/url.h"
#include "berth/fileset/fileset.h"
#include "berth/remote/cloud/cloud.h"
#include "berth/remote/transfer/s3.h"

namespace berth::remote {

/// How far a transfer is, for another thread to look at.
struct TransferProgress {
  std::atomic<std::int64_t> done = 0;
  std::atomic<std::int64_t> total = -1;  ///< -1: not known (yet).
};
/// " (1.2G of 4G)"; "" before the first byte.
std::string to_text(const TransferProgress& progress);

class Elsewhere {
 public:
  Elsewhere(os::Env& env, const Cloud& cloud)
      : env_(env), cloud_(cloud), session_(cloud.open_session()) {}

  /// Brings the file into the store: its fileset is that one file. Not durable before the store is
  /// made so. Errors: invalid too, where its checksum is another.
  Result<fileset::Captured> fetch(fileset::ObjectStore& store, const Url& url,
                                  TransferProgress& progress);

  /// What would be fetched. Errors: as fetch().
  struct Look {
    std::int64_t size = -1;      ///< -1: the server does not say.
    bool there = false;          ///< In the store, and it has not changed.
    fileset::Fileset content{};  ///< Where it is there.
  };
  Result<Look> look(fileset::ObjectStore& store, const Url& url);

  /// Brings a file or a directory of the store to an s3 URL, which for a directory is what the keys
  /// of its files begin with; what is there already stays. Errors: invalid too, for links.
  Status put(const fileset::ObjectStore& store, const fileset::Fileset& content, const Url& url,
             TransferProgress& progress);

 private:
  using Make = std::function<Result<HttpRequest>()>;
  /// The reply to what `make` makes, each time anew; without an error and below 500. `done` tells
  /// how much has come: who gets on may try for ever.
  Result<HttpReply> ask(const Url& url, const Make& make,
                        const std::function<std::int64_t()>& done = {});
  Result<HttpReply> exchange(HttpRequest request);
  Status pause(Duration length);
  Status find_s3_once(const Url& url);
  HttpRequest request(std::string method, const Url& url) const;
  /// What a reply that says no means.
  Error refusal(const Url& url, const HttpReply& reply) const;
  Result<Look> known(fileset::ObjectStore& store, const Url& url, struct UrlRecord& record) const;
  Status download(const Url& url, struct Download& download);
  Status put_file(const std::string& object, const fileset::Entry& entry, const Url& url,
                  TransferProgress& progress);
  Status put_parts(const os::Fd& file, const fileset::Entry& entry, const Url& url,
                   TransferProgress& progress);
  Result<std::string> put_part(const os::Fd& file, std::int64_t from, std::int64_t size,
                               const Url& url, const std::string& query);

  os::Env& env_;
  const Cloud& cloud_;
  std::unique_ptr<HttpSession> session_;
  std::optional<S3> s3_;
};

/// The contents of what was fetched and has been used since then, which a collection keeps; of all
/// else what is known and what was begun is forgotten.
Status keep_fetched(os::Env& env, const std::string& store, Wall used_since,
                    std::unordered_set<Digest>& live);

}  // namespace berth::remote
