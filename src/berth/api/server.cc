#include "berth/api/server.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "berth/api/connections.h"
#include "berth/base/text.h"

namespace berth::api {
namespace {

constexpr auto kLongestAnswer = std::chrono::minutes(5);  // after which a search ends
constexpr auto kLongestEnd = std::chrono::seconds(3);     // after a stop signal

/// Whether the host is a loopback address or localhost; a name such as 127.0.0.1.example.org is
/// not.
bool loopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string text = lower(host);
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return text == "localhost";
}

/// An authority such as "[::1]:8321" or "localhost:8321" without its port.
std::string_view without_port(std::string_view authority) {
  const auto colon = authority.rfind(':');
  const bool port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  return port ? authority.substr(0, colon) : authority;
}

/// Compares in the same time for any two texts of the same length.
bool same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

/// Not `request.path`, which is decoded as a whole: a name could not hold a slash.
std::string path_of(const httplib::Request& request) {
  return request.target.substr(0, request.target.find('?'));
}

Role role_of(const httplib::Request& request, const ServerOptions& options) {
  if (!options.has_tokens() && options.sessions == nullptr) return options.most;
  const std::string bearer = request.get_header_value("Authorization");
  Role role = Role::none;
  if (!options.token.empty() && same(bearer, "Bearer " + options.token))
    role = Role::control;
  else if (!options.read_token.empty() && same(bearer, "Bearer " + options.read_token))
    role = Role::read;
  else if (options.sessions != nullptr)
    role = options.sessions->role(request.get_header_value("Cookie"));
  return std::min(role, options.most);
}

/// A page of another site asks, or has led a browser here under a name of its own.
std::string foreign(const httplib::Request& request, const ServerOptions& options) {
  const std::string host = request.get_header_value("Host");
  const std::string origin = request.get_header_value("Origin");
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  if (!options.has_tokens() && !loopback(without_port(host)))
    return fmt::format("Host '{}' is not this server", clip(host));
  const auto scheme = origin.find("://");
  const bool ours = scheme != origin.npos && origin.substr(scheme + 3) == host;
  if (!origin.empty() && !ours) return fmt::format("Origin '{}' is not this server", clip(origin));
  if (!site.empty() && site != "same-origin" && site != "none")
    return "requests from pages of other sites are refused";
  return "";
}

/// The status and the reason of a refusal; 0 means that the request is not refused.
std::pair<int, std::string> refusal(const httplib::Request& request, std::span<const Route> routes,
                                    const ServerOptions& options) {
  if (auto why = foreign(request, options); !why.empty()) return {403, std::move(why)};
  const std::string path = path_of(request);
  const Match found = match(routes, request.method, path);
  const bool is_free = found.route == nullptr || found.route->is_free;
  const Role wanted = is_free ? Role::none : found.route->call.role;
  const Role has = role_of(request, options);
  if (has < wanted && has != Role::none)
    return {403,
            fmt::format("{} {} requires the role {}, and this is {}, which is read-only",
                        request.method, clip(path), kRoleNames.name(wanted), kRoleNames.name(has))};
  if (has < wanted && options.has_tokens())
    return {401, "expected the header 'Authorization: Bearer TOKEN' with the server's token"};
  if (has < wanted)
    return {401,
            "expected the link that the server printed, which is valid once; another start prints "
            "a new one"};
  return {0, ""};
}

void say(httplib::Response& response, const Reply& reply) {
  response.status = reply.status;
  response.set_content(reply.body, reply.type);
}

/// A port must be ours alone: by default the library shares it with whoever has it already.
void own_port(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

/// The threads made while it lives leave signals to the one that waits for them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

void set_up(httplib::Server& server, std::span<const Route> routes, const ServerOptions& options,
            const std::atomic<bool>& is_ending) {
  server.set_tcp_nodelay(true);
  server.set_socket_options(own_port);
  const auto answer = [routes, &options, &is_ending](const httplib::Request& request,
                                                     httplib::Response& response) {
    const auto mark = request.target.find('?');
    const auto latest = std::chrono::steady_clock::now() + kLongestAnswer;
    Reply reply = api::answer(
        routes, {.method = request.method,
                 .path = path_of(request),
                 .body = request.body,
                 .query = mark == std::string::npos ? "" : request.target.substr(mark + 1),
                 .role = role_of(request, options),
                 .is_abandoned = [&is_ending] { return is_ending || client_left(); },
                 .is_late = [latest] { return std::chrono::steady_clock::now() > latest; }});
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (!reply.more) {
      if (reply.ends_line) reply.body += "\n";
      return response.set_content(std::move(reply.body), reply.type);
    }
    response.set_chunked_content_provider(
        reply.type, [reply = std::move(reply), begun = false](std::size_t, auto& sink) mutable {
          const bool first = !std::exchange(begun, true) && !reply.body.empty();
          const auto part = first ? std::optional(std::move(reply.body)) : reply.more();
          if (!part) return false;
          if (*part) return (*part)->empty() || sink.write((*part)->data(), (*part)->size());
          sink.done();
          return true;
        });
  };
  server.set_pre_routing_handler([routes, &options](const auto& request, auto& response) {
    const auto [status, why] = refusal(request, routes, options);
    if (status == 0) return httplib::Server::HandlerResponse::Unhandled;
    say(response, failed({ErrorKind::denied, why}, status));
    return httplib::Server::HandlerResponse::Handled;
  });
  if (options.on_answer)
    server.set_logger([&options](const httplib::Request&, const httplib::Response& response) {
      options.on_answer(response.status);
    });
  server.Get(".*", answer);
  server.Post(".*", answer);
  server.Put(".*", answer);
  server.Delete(".*", answer);
  server.Patch(".*", answer);
  server.Options(".*", answer);
  server.set_exception_handler([](const auto&, auto& response, const std::exception_ptr&) {
    say(response, failed({ErrorKind::io, "out of memory, or an error of the server"}));
  });
  server.set_error_handler([](const auto&, auto& response) {
    if (!response.body.empty()) return;
    say(response, failed({ErrorKind::invalid,
                          fmt::format("the request was not understood ({})", response.status)},
                         response.status));
  });
}

}  // namespace

Status serve(os::Env& env, std::span<const Route> routes, const ServerOptions& options,
             const std::function<void(int port)>& listening, const std::function<Status()>& work) {
  const bool tls = !options.certificate.empty();
  if (!loopback(options.host) && (!tls || !options.has_tokens()))
    return fail(ErrorKind::usage,
                "to listen at {}, a token and TLS are required: --token-file or --read-token-file, "
                "--tls-cert, --tls-key",
                options.host);
  TlsContext context;
  if (tls) {
    BERTH_ASSIGN(context, tls_context(options.certificate, options.key));
  }
  const auto admits = [&](const httplib::Request& request) {
    return refusal(request, routes, options).first == 0 ? std::optional(role_of(request, options))
                                                        : std::nullopt;
  };
  BoundedServer server(std::move(context), admits, options.on_answer);
  std::atomic<bool> is_ending = false;
  set_up(server, routes, options, is_ending);
  const int port = server.bind(options.host, options.port);
  if (port < 0)
    return fail(ErrorKind::io,
                "cannot listen at {}:{}: another process may use that address, or it is not an "
                "address of this machine",
                options.host, options.port);
  std::future<bool> done;
  {
    const BlockedSignals blocked;
    done = std::async(std::launch::async, [&] { return server.listen_after_bind(); });
  }
  listening(port);
  Status waited;
  if (work)
    waited = work();
  else
    while (waited && env.stop_signals() == 0) waited = env.wait({}, std::nullopt);
  is_ending = true;
  server.stop();
  // A computation that does not ask whether it is abandoned must not keep the server alive.
  if (done.wait_for(kLongestEnd) == std::future_status::ready) return waited;
  std::fflush(nullptr);
  std::_Exit(waited ? 0 : exit_code(waited.error().kind));
}

}  // namespace berth::api
