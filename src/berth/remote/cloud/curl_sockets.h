// A multi handle of libcurl whose sockets its user waits for. Only in the plugin.
//
// Ownership: handles that were added to multi() are removed and freed before it. Threads: one.
#pragma once

#include <curl/curl.h>

#include <functional>
#include <map>
#include <memory>

#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

/// What frees a handle of libcurl in a std::unique_ptr.
template <auto free>
struct FreedBy {
  void operator()(auto* handle) const { free(handle); }
};

class CurlSockets {
 public:
  CurlSockets();
  CURLM* multi() const { return multi_.get(); }
  /// Goes on with whatever can; `ended` gets each transfer that has ended, and may remove it.
  void step(const std::function<void(CURL* easy, CURLcode code)>& ended);
  /// What has to happen before step() is called again.
  HttpWaits waits() const;

 private:
  static int on_socket(CURL*, curl_socket_t socket, int what, void* sockets, void*);

  std::map<curl_socket_t, int> sockets_;  // what is waited for at each: CURL_POLL_…
  std::unique_ptr<CURLM, FreedBy<curl_multi_cleanup>> multi_;
};

/// For CURLOPT_SOCKOPTFUNCTION: no process that we start may inherit the socket.
int close_on_exec(void*, curl_socket_t socket, curlsocktype);

/// Whether a transfer that ended so would end so again.
bool is_lasting(CURLcode code);

}  // namespace berth::remote
