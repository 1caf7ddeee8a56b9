// Files of a store to S3: what is small in one request, what is large in parts. Which content an
// object has stands in its metadata, so that nothing is brought there twice.
#include <algorithm>

#include "berth/fileset/objects.h"
#include "berth/remote/transfer/elsewhere.h"

namespace berth::remote {
namespace {

constexpr std::string_view kContentHeader = "x-amz-meta-berth-sha256";
constexpr std::int64_t kPart = 16 << 20;  // of what is larger than this
constexpr std::int64_t kMostParts = 10'000;
constexpr std::size_t kReadAtOnce = 1U << 20;

Result<std::string> read_part(os::Env& env, const os::Fd& file, std::int64_t from,
                              std::int64_t size) {
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(size));
  while (static_cast<std::int64_t>(bytes.size()) < size) {
    const auto left = static_cast<std::size_t>(size) - bytes.size();
    BERTH_ASSIGN(const std::string some,
                 env.read_at(file, from + static_cast<std::int64_t>(bytes.size()),
                             std::min(left, kReadAtOnce)));
    if (some.empty()) return fail(ErrorKind::corrupt, "an object of the cache is too short");
    bytes += some;
  }
  return bytes;
}

}  // namespace

Status Elsewhere::put(const fileset::ObjectStore& store, const fileset::Fileset& content,
                      const Url& url, TransferProgress& progress) {
  BERTH_TRY(find_s3_once(url));
  progress.total = fileset::total_bytes(content);
  for (const auto& entry : content.entries) {
    using Kind = fileset::Entry::Kind;
    if (entry.kind == Kind::directory) continue;  // S3 has none
    Url of = url;
    if (entry.path != ".") of.path += entry.path;
    of.text = fmt::format("s3://{}/{}", of.host, of.path);
    if (entry.kind == Kind::link)
      return fail(ErrorKind::invalid, "{}: S3 has no links, and this is a link to {}",
                  shown(of.text), entry.target);
    const std::string object =
        fileset::object_path(store.directory(), entry.digest, entry.kind == Kind::executable);
    BERTH_TRY(put_file(object, entry, of, progress));
  }
  return {};
}

Status Elsewhere::put_file(const std::string& object, const fileset::Entry& entry, const Url& url,
                           TransferProgress& progress) {
  const std::string digest = to_hex(entry.digest);
  BERTH_ASSIGN(const HttpReply there, ask(url, [&] { return request("HEAD", url); }));
  if (there.status == 200 && there.header(std::string(kContentHeader)) == digest &&
      there.header("content-length") == fmt::format("{}", entry.size)) {
    progress.done += entry.size;
    return {};
  }
  BERTH_ASSIGN(const os::Fd file, env_.open_read(object));
  if (entry.size > kPart) return put_parts(file, entry, url, progress);
  BERTH_ASSIGN(const std::string bytes, read_part(env_, file, 0, entry.size));
  BERTH_ASSIGN(const HttpReply reply, ask(url, [&] {
                 HttpRequest put = s3_request(*s3_, "PUT", url, {}, bytes);
                 put.headers.emplace_back("content-type: application/octet-stream");
                 put.headers.push_back(fmt::format("{}: {}", kContentHeader, digest));
                 return put;
               }));
  if (reply.status / 100 != 2) return std::unexpected(refusal(url, reply));
  progress.done += entry.size;
  return {};
}

/// What was begun and not completed is aborted, so that nobody pays for it.
Status Elsewhere::put_parts(const os::Fd& file, const fileset::Entry& entry, const Url& url,
                            TransferProgress& progress) {
  BERTH_ASSIGN(
      const HttpReply begun, ask(url, [&] {
        HttpRequest post = s3_request(*s3_, "POST", url, "uploads=");
        post.headers.emplace_back("content-type: application/octet-stream");
        post.headers.push_back(fmt::format("{}: {}", kContentHeader, to_hex(entry.digest)));
        return post;
      }));
  if (begun.status / 100 != 2) return std::unexpected(refusal(url, begun));
  BERTH_ASSIGN(const Xml xml, cloud_.read_xml(begun.body));
  const std::string upload = "uploadId=" + percent_encoded(xml.text_of("UploadId"));
  const std::int64_t part = std::max(kPart, (entry.size + kMostParts - 1) / kMostParts);
  std::string list = "<CompleteMultipartUpload>";
  const auto put_all = [&]() -> Status {
    std::int64_t number = 1;
    for (std::int64_t from = 0; from < entry.size; from += part, ++number) {
      const std::int64_t size = std::min(part, entry.size - from);
      BERTH_ASSIGN(
          const std::string etag,
          put_part(file, from, size, url, fmt::format("partNumber={}&{}", number, upload)));
      list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, etag);
      progress.done += size;
    }
    list += "</CompleteMultipartUpload>";
    BERTH_ASSIGN(const HttpReply whole, ask(url, [&] {
                   HttpRequest post = s3_request(*s3_, "POST", url, upload, list);
                   post.headers.emplace_back("content-type: application/xml");
                   return post;
                 }));
    // It may begin to say yes, and then think otherwise.
    const auto said = whole.status == 200 ? cloud_.read_xml(whole.body) : Result<Xml>(Xml{});
    if (whole.status / 100 != 2 || !said || said->name == "Error")
      return std::unexpected(refusal(url, whole));
    return {};
  };
  auto status = put_all();
  if (!status) (void)ask(url, [&] { return s3_request(*s3_, "DELETE", url, upload); });
  return status;
}

Result<std::string> Elsewhere::put_part(const os::Fd& file, std::int64_t from, std::int64_t size,
                                        const Url& url, const std::string& query) {
  BERTH_ASSIGN(const std::string bytes, read_part(env_, file, from, size));
  BERTH_ASSIGN(const HttpReply reply, ask(url, [&] {
                 HttpRequest put = s3_request(*s3_, "PUT", url, query, bytes);
                 put.headers.emplace_back("content-type: application/octet-stream");
                 return put;
               }));
  if (reply.status / 100 != 2) return std::unexpected(refusal(url, reply));
  return reply.header("etag");
}

}  // namespace berth::remote
