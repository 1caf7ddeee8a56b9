// The API as an OpenAPI 3.1 document, made of the routes that the server answers by.
#pragma once

#include <span>
#include <string>

#include "berth/api/routes.h"

namespace berth::cli {

/// The document: JSON, one line. Precondition: each schema that a route names is in schemas.json
/// or, where its name begins with "fleet", in the format of fleet documents.
std::string openapi_document(std::span<const api::Route> routes);

/// GET /v1/openapi.json, to be added to `routes`; the document has it too.
api::Route openapi_route(std::span<const api::Route> routes);

}  // namespace berth::cli
