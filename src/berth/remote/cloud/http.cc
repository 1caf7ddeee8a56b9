#include <map>

#include "berth/remote/cloud/curl_sockets.h"

namespace berth::remote {
namespace {

struct Call {
  std::int64_t number = 0;
  std::unique_ptr<CURL, FreedBy<curl_easy_cleanup>> easy;
  std::string body;
  std::size_t most_bytes = 0;
  char error[CURL_ERROR_SIZE] = "";
};

std::size_t receive(const char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& call = *static_cast<Call*>(into);
  if (call.body.size() + size * count > call.most_bytes) return 0;  // ends the call
  call.body.append(bytes, size * count);
  return size * count;
}

class CurlCalls final : public HttpCalls {
 public:
  explicit CurlCalls(HttpSetup setup) : setup_(std::move(setup)) {
    // No charset: botocore sends none either. No "Expect:" to switch that off: libcurl would sign
    // the header and not send it; what is this short is never announced by one.
    add("Content-Type: application/x-www-form-urlencoded");
    if (!setup_.credentials.session_token.empty())
      add("X-Amz-Security-Token: " + setup_.credentials.session_token);
  }
  ~CurlCalls() override {
    for (const auto& [easy, call] : calls_) curl_multi_remove_handle(sockets_.multi(), easy);
  }

  std::int64_t post(const std::string& body) override {
    auto call = std::make_unique<Call>();
    call->number = ++made_;
    call->most_bytes = setup_.most_bytes;
    CURL* easy = curl_easy_init();
    BERTH_ASSERT(easy != nullptr);
    call->easy.reset(easy);
    prepare(easy, *call, body);
    BERTH_ASSERT(curl_multi_add_handle(sockets_.multi(), easy) == CURLM_OK);
    calls_.emplace(easy, std::move(call));
    return made_;
  }

  std::vector<HttpAnswer> ended() override {
    std::vector<HttpAnswer> answers;
    sockets_.step([&](CURL* easy, CURLcode code) {
      const auto call = calls_.extract(easy);
      answers.push_back(answer(*call.mapped(), code));
      curl_multi_remove_handle(sockets_.multi(), easy);
    });
    return answers;
  }

  HttpWaits waits() override { return sockets_.waits(); }

 private:
  void add(const std::string& header) {
    headers_.reset(curl_slist_append(headers_.release(), header.c_str()));
  }

  void prepare(CURL* easy, Call& call, const std::string& body) const {
    const std::string sigv4 = "aws:amz:" + setup_.region + ":ec2";
    curl_easy_setopt(easy, CURLOPT_URL, setup_.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, sigv4.c_str());
    curl_easy_setopt(easy, CURLOPT_USERNAME, setup_.credentials.key_id.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, setup_.credentials.secret.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body.c_str());
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(to_ms(setup_.timeout)));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, close_on_exec);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call.error);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "berth");
  }

  HttpAnswer answer(Call& call, CURLcode code) const {
    if (code == CURLE_OK) {
      long status = 0;
      curl_easy_getinfo(call.easy.get(), CURLINFO_RESPONSE_CODE, &status);
      return {call.number, static_cast<int>(status), std::move(call.body), false};
    }
    std::string why = call.error[0] != '\0' ? call.error : curl_easy_strerror(code);
    if (code == CURLE_WRITE_ERROR)
      why = fmt::format("an answer of more than {} bytes", setup_.most_bytes);
    return {call.number, 0, std::move(why), code == CURLE_WRITE_ERROR || is_lasting(code)};
  }

  HttpSetup setup_;
  CurlSockets sockets_;
  std::unique_ptr<curl_slist, FreedBy<curl_slist_free_all>> headers_;
  std::map<CURL*, std::unique_ptr<Call>> calls_;  // gone before sockets_
  std::int64_t made_ = 0;
};

}  // namespace

std::unique_ptr<HttpCalls> open_http(const HttpSetup& setup) {
  return std::make_unique<CurlCalls>(setup);
}

}  // namespace berth::remote

/// The part's one symbol: the number grows with every change of cloud.h.
extern "C" const berth::remote::Cloud berth_cloud_3;
extern "C" const berth::remote::Cloud berth_cloud_3 = {
    berth::remote::open_http, berth::remote::open_http_session, berth::remote::read_xml};
