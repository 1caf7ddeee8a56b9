// Where the programs of berth-server listen, and to whom.
#pragma once

#include <string>
#include <string_view>

#include "berth/api/server.h"
#include "berth/cli/commands/serve.h"
#include "berth/os/env.h"

namespace berth::cli {

/// "127.0.0.1:8321", "[::1]:0", or a port alone. `source`: where it was written.
Status read_address(std::string_view source, const std::string& text, api::ServerOptions& options);

/// `listen`: an address, "" is that of the options. Errors: usage, invalid, as read_token().
Result<api::ServerOptions> listen_options(os::Env& env, const std::string& listen,
                                          const AccessOptions& access);

/// A token that stands alone in a file, which is made (0600) with a new one where there is none.
/// Errors: as of files; denied: others than its owner can read or write it; invalid: the token is
/// too short.
Result<std::string> read_token(os::Env& env, const std::string& file);

/// "https://[::1]:8321".
std::string url_of(const api::ServerOptions& options, int port);

}  // namespace berth::cli
