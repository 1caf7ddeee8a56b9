#include "berth/cli/server/listen.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/print.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestToken = 4096;
constexpr std::size_t kShortestToken = 16;
constexpr int kRandomWords = 3;  // of 64 bits
constexpr mode_t kOwnersMode = 0600, kMode = 07777, kOthers = 066, kOthersWrite = 022;

}  // namespace

Status read_address(std::string_view source, const std::string& text, api::ServerOptions& options) {
  const auto colon = text.rfind(':');
  const auto port = parse_integer(colon == text.npos ? text : text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || colon == 0)
    return fail(ErrorKind::usage, "{}: expected HOST:PORT, such as 127.0.0.1:8321, got '{}'",
                source, clip(text));
  options.port = static_cast<int>(*port);
  if (colon == text.npos) return {};
  options.host = text.substr(0, colon);
  if (options.host.starts_with('[') && options.host.ends_with(']'))
    options.host = options.host.substr(1, options.host.size() - 2);
  return {};
}

Result<api::ServerOptions> listen_options(os::Env& env, const std::string& listen,
                                          const AccessOptions& access) {
  api::ServerOptions options;
  options.certificate = access.certificate;
  options.key = access.key;
  if (options.certificate.empty() != options.key.empty())
    return fail(ErrorKind::usage, "--tls-cert and --tls-key go together");
  if (!listen.empty()) BERTH_TRY(read_address("--listen", listen, options));
  for (const auto& [file, token] : {std::pair(&access.token_file, &options.token),
                                    {&access.read_token_file, &options.read_token}}) {
    if (file->empty()) continue;
    BERTH_ASSIGN(*token, read_token(env, *file));
  }
  if (options.has_tokens() && options.token == options.read_token)
    return fail(ErrorKind::usage, "--token-file and --read-token-file contain the same token");
  return options;
}

Result<std::string> read_token(os::Env& env, const std::string& file) {
  auto status = env.status(file);
  if (!status && status.error().kind == ErrorKind::not_found) {
    std::string fresh;
    for (int i = 0; i < kRandomWords; ++i) fresh += fmt::format("{:016x}", env.random());
    BERTH_TRY(env.replace_file(file, fresh + "\n", kOwnersMode));
    print_error(fmt::format("note: {} was made, with a new token\n", file));
    status = env.status(file);
  }
  if (!status) return std::unexpected(status.error());
  if (const mode_t mode = status->mode & kMode; (mode & kOthers) != 0)
    return fail(ErrorKind::denied, "{}: others can {} it (mode {:04o}); chmod 600 {}", file,
                (mode & kOthersWrite) != 0 ? "change" : "read", mode, file);
  BERTH_ASSIGN(const std::string text, env.read_file(file, kLongestToken));
  std::string token(trim(text));
  if (token.size() < kShortestToken)
    return fail(ErrorKind::invalid, "{}: expected a token of at least {} letters, got {}", file,
                kShortestToken, token.size());
  return token;
}

std::string url_of(const api::ServerOptions& options, int port) {
  const bool v6 = options.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https",
                     v6 ? "[" + options.host + "]" : options.host, port);
}

}  // namespace berth::cli
