// What somebody meant who wrote a name that is none. Pure.
#pragma once

#include <span>
#include <string_view>

namespace berth {

/// Of the known keys the one that was meant: what other tools call it, or the nearest; empty where
/// none is near.
std::string_view meant_key(std::string_view key, std::span<const std::string_view> known);

/// The resource that `name` probably means ("memory": "mem"); empty where it may be one of a user's
/// own.
std::string_view meant_resource(std::string_view name);

}  // namespace berth
