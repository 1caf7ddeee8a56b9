// The page, and how a viewer comes in: by a link that is good once, or by a token.
#pragma once

#include <string>
#include <vector>

#include "berth/api/routes.h"
#include "berth/api/sessions.h"

namespace berth::cli {

struct PageOptions {
  std::string database;  ///< The file that changes whenever the store does; "": none is known.
  bool tls = false;      ///< Cookies go over TLS alone.
};

/// The routes refer to `sessions`.
std::vector<api::Route> page_routes(api::Sessions& sessions, const PageOptions& options);

}  // namespace berth::cli
