#include "berth/cli/server/listen.h"

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestToken = 4096;
constexpr std::size_t kShortestToken = 16;

}  // namespace

Status read_address(std::string_view source, const std::string& text, api::ServerOptions& options) {
  const auto colon = text.rfind(':');
  const auto port = parse_integer(colon == text.npos ? text : text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || colon == 0)
    return fail(ErrorKind::usage, "{}: wanted HOST:PORT, such as 127.0.0.1:8321, found '{}'",
                source, clip(text));
  options.port = static_cast<int>(*port);
  if (colon == text.npos) return {};
  options.host = text.substr(0, colon);
  if (options.host.starts_with('[') && options.host.ends_with(']'))
    options.host = options.host.substr(1, options.host.size() - 2);
  return {};
}

Result<api::ServerOptions> listen_options(os::Env& env, const std::string& listen,
                                          const std::string& token_file,
                                          const std::string& certificate, const std::string& key) {
  api::ServerOptions options;
  options.certificate = certificate;
  options.key = key;
  if (options.certificate.empty() != options.key.empty())
    return fail(ErrorKind::usage, "--tls-cert and --tls-key go together");
  if (!listen.empty()) BERTH_TRY(read_address("--listen", listen, options));
  if (token_file.empty()) return options;
  BERTH_ASSIGN(options.token, read_token(env, token_file));
  return options;
}

Result<std::string> read_token(os::Env& env, const std::string& file) {
  BERTH_ASSIGN(const std::string text, env.read_file(file, kLongestToken));
  std::string token(trim(text));
  if (token.size() < kShortestToken)
    return fail(ErrorKind::invalid, "{}: wanted a token of at least {} letters, found {}", file,
                kShortestToken, token.size());
  return token;
}

std::string url_of(const api::ServerOptions& options, int port) {
  const bool v6 = options.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https",
                     v6 ? "[" + options.host + "]" : options.host, port);
}

}  // namespace berth::cli
