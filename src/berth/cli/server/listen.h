// Where the programs of berth-server listen, and to whom.
#pragma once

#include <string>
#include <string_view>

#include "berth/api/server.h"
#include "berth/os/env.h"

namespace berth::cli {

/// "127.0.0.1:8321", "[::1]:0", or a port alone. `source`: where it was written.
Status read_address(std::string_view source, const std::string& text, api::ServerOptions& options);

/// `listen`: an address, "" is that of the options; the others are names of files, "" is none.
/// Errors: usage, invalid, as of files.
Result<api::ServerOptions> listen_options(os::Env& env, const std::string& listen,
                                          const std::string& token_file,
                                          const std::string& certificate, const std::string& key);

/// A token that stands alone in a file. Errors: as of files; invalid: it is too short.
Result<std::string> read_token(os::Env& env, const std::string& file);

/// "https://[::1]:8321".
std::string url_of(const api::ServerOptions& options, int port);

}  // namespace berth::cli
