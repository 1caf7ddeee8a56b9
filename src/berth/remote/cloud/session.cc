// Requests one after another, whose answers may be of any size.
#include "berth/base/text.h"
#include "berth/remote/cloud/curl_sockets.h"

namespace berth::remote {
namespace {

constexpr long kConnectTimeoutMs = 30'000;
/// With less than a byte a second for so long it is given up.
constexpr long kSilentS = 60;
constexpr long kMostRedirections = 10;

class CurlSession final : public HttpSession {
 public:
  ~CurlSession() override { drop(); }

  void begin(HttpRequest request) override {
    drop();
    request_ = std::move(request);
    reply_ = {};
    error_[0] = '\0';
    easy_.reset(curl_easy_init());
    BERTH_ASSERT(easy_);
    prepare(easy_.get());
    BERTH_ASSERT(curl_multi_add_handle(sockets_.multi(), easy_.get()) == CURLM_OK);
  }

  std::optional<HttpReply> step() override {
    std::optional<HttpReply> whole;
    sockets_.step([&](CURL*, CURLcode code) {
      if (code != CURLE_OK) {
        reply_.error = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
        reply_.lasting = is_lasting(code);
      }
      note_status();
      drop();
      whole = std::move(reply_);
    });
    return whole;
  }

  HttpWaits waits() override { return sockets_.waits(); }

 private:
  static std::size_t on_bytes(const char* bytes, std::size_t size, std::size_t count, void* of) {
    auto& session = *static_cast<CurlSession*>(of);
    session.note_status();
    HttpReply& reply = session.reply_;
    const std::string_view some(bytes, size * count);
    if (session.request_.take && reply.status / 100 == 2)
      return session.request_.take(reply, some) ? some.size() : 0;
    reply.body += some.substr(0, kMostReply - reply.body.size());
    return some.size();
  }
  static std::size_t on_header(const char* bytes, std::size_t size, std::size_t count, void* of) {
    auto& reply = static_cast<CurlSession*>(of)->reply_;
    const std::string_view line(bytes, size * count);
    if (line.starts_with("HTTP/")) reply.headers.clear();  // of a redirection, or of "continue"
    if (const auto colon = line.find(':'); colon != line.npos)
      reply.headers[lower(trim(line.substr(0, colon)))] =
          trim(line.substr(colon + 1, line.find_first_of("\r\n") - colon - 1));
    return line.size();
  }

  void note_status() {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    reply_.status = static_cast<int>(status);
  }

  void drop() {
    if (!easy_) return;
    curl_multi_remove_handle(sockets_.multi(), easy_.get());
    easy_.reset();
    headers_.reset();
  }

  void add_header(const std::string& header) {
    headers_.reset(curl_slist_append(headers_.release(), header.c_str()));
  }

  void prepare(CURL* easy) {
    for (const auto& header : request_.headers) add_header(header);
    if (request_.signing) sign(easy, *request_.signing);
    const bool https = request_.url.starts_with("https:");
    curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request_.signing ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kMostRedirections);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);  // a key of S3 may have ".." in it
    if (!request_.signing)
      curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    if (request_.method == "HEAD") {
      curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (request_.method == "PUT" || request_.method == "POST") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request_.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.c_str());
    }
    if (request_.method != "HEAD" && request_.method != "GET")
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSilentS);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, close_on_exec);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "berth");
  }

  void sign(CURL* easy, const HttpSigning& signing) {
    const std::string sigv4 = fmt::format("aws:amz:{}:{}", signing.region, signing.service);
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, sigv4.c_str());
    curl_easy_setopt(easy, CURLOPT_USERNAME, signing.credentials.key_id.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, signing.credentials.secret.c_str());
    if (!signing.credentials.session_token.empty())
      add_header("X-Amz-Security-Token: " + signing.credentials.session_token);
  }

  HttpRequest request_;
  HttpReply reply_;
  char error_[CURL_ERROR_SIZE] = "";
  CurlSockets sockets_;
  std::unique_ptr<curl_slist, FreedBy<curl_slist_free_all>> headers_;
  std::unique_ptr<CURL, FreedBy<curl_easy_cleanup>> easy_;  // gone before sockets_
};

}  // namespace

std::unique_ptr<HttpSession> open_http_session() {
  return std::make_unique<CurlSession>();
}

}  // namespace berth::remote
