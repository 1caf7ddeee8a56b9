#include "berth/remote/cloud/curl_sockets.h"

#include <fcntl.h>

namespace berth::remote {

CurlSockets::CurlSockets() : multi_(curl_multi_init()) {
  BERTH_ASSERT(multi_);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, &sockets_);
}

void CurlSockets::step(const std::function<void(CURL* easy, CURLcode code)>& ended) {
  int running = 0;
  curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  for (const auto& [socket, waits] : std::map(sockets_))  // it changes them
    curl_multi_socket_action(multi_.get(), socket, 0, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left))
    if (message->msg == CURLMSG_DONE) ended(message->easy_handle, message->data.result);
}

HttpWaits CurlSockets::waits() const {
  HttpWaits waits;
  for (const auto& [socket, what] : sockets_) {
    if ((what & CURL_POLL_IN) != 0) waits.sockets.push_back({socket, true});
    if ((what & CURL_POLL_OUT) != 0) waits.sockets.push_back({socket, false});
  }
  long ms = -1;
  curl_multi_timeout(multi_.get(), &ms);
  if (ms >= 0) waits.most = from_ms(ms);
  return waits;
}

int CurlSockets::on_socket(CURL*, curl_socket_t socket, int what, void* sockets, void*) {
  auto& all = *static_cast<std::map<curl_socket_t, int>*>(sockets);
  if (what == CURL_POLL_REMOVE)
    all.erase(socket);
  else
    all[socket] = what;
  return 0;
}

int close_on_exec(void*, curl_socket_t socket, curlsocktype) {
  return fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR;
}

bool is_lasting(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
         code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_TOO_MANY_REDIRECTS;
}

}  // namespace berth::remote
