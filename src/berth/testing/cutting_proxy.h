// For tests: a way to a server on loopback that breaks at a chosen message, on either side of it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <thread>

#include "berth/base/result.h"

namespace berth::store {

class CuttingProxy {
 public:
  enum class Cut : std::uint8_t {
    before,     // the message is lost, and both ends see the connection break
    after,      // it arrives, then they do
    unnoticed,  // it arrives, and the server goes on waiting
  };

  explicit CuttingProxy(std::uint16_t server_port) : server_port_(server_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(0);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    BERTH_ASSERT(::bind(listener_, generic, length) == 0 && ::listen(listener_, 16) == 0);
    BERTH_ASSERT(::getsockname(listener_, generic, &length) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;
  ~CuttingProxy() {
    thread_.request_stop();
    thread_.join();
    for (const auto& [client, server] : pairs_) {
      ::close(client);
      ::close(server);
    }
    for (const int fd : orphans_) ::close(fd);
    ::close(listener_);
  }

  std::uint16_t port() const { return port_; }
  /// The `nth` message from now on, in either direction; once.
  void arm(int nth, Cut cut) {
    cut_ = cut;
    left_ = nth;
  }
  /// Whether it has happened.
  bool cut() const { return left_ <= 0; }

 private:
  struct Pair {
    int client, server;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> watches{{listener_, POLLIN, 0}};
      for (const auto& [client, server] : pairs_) {
        watches.push_back({client, POLLIN, 0});
        watches.push_back({server, POLLIN, 0});
      }
      if (::poll(watches.data(), watches.size(), 20) <= 0) continue;
      auto watch = watches.begin() + 1;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); watch += 2) {
        const bool goes_on = pass(*pair, watch->revents != 0, pair->client, pair->server) &&
                             pass(*pair, (watch + 1)->revents != 0, pair->server, pair->client);
        pair = goes_on ? std::next(pair) : pairs_.erase(pair);
      }
      if (watches.front().revents != 0) accept();
    }
  }

  void accept() {
    const int client = ::accept(listener_, nullptr, nullptr);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(server_port_);
    if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
    } else {
      pairs_.push_back({client, server});
    }
  }

  /// False when the connection is no more.
  bool pass(const Pair& pair, bool ready, int from, int to) {
    if (!ready) return true;
    char buffer[65536];
    const auto size = ::read(from, buffer, sizeof buffer);
    const bool now = size > 0 && left_ > 0 && --left_ == 0;
    if (size > 0 && !(now && cut_ == Cut::before))
      (void)!::send(to, buffer, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (size > 0 && !now) return true;
    ::close(pair.client);
    if (now && cut_ == Cut::unnoticed)
      orphans_.push_back(pair.server);
    else
      ::close(pair.server);
    return false;
  }

  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::list<Pair> pairs_;
  std::vector<int> orphans_;  // ends that the server holds for alive
  std::atomic<int> left_ = -1;
  std::atomic<Cut> cut_ = Cut::before;
  std::jthread thread_;
};

}  // namespace berth::store
