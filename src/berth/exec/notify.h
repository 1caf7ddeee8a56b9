// Who is told what becomes of a run, and how: a command, a webhook, or a mail. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/document.h"
#include "berth/base/format.h"
#include "berth/base/names.h"
#include "berth/base/time.h"
#include "berth/exec/command.h"

namespace berth::exec {

struct Notify {
  enum class Event : std::uint8_t { end, failure, first_result, stalled };
  static constexpr auto kEventNames = names<Event>({{Event::end, "end"},
                                                    {Event::failure, "failure"},
                                                    {Event::first_result, "first_result"},
                                                    {Event::stalled, "stalled"}});
  // Exactly one of these three is there.
  Command run = {};
  std::string webhook = {};      // an http or https URL
  std::string mail = {};         // an address
  std::string secret_file = {};  // of a webhook: what its body is signed with
  std::vector<Event> on = {Event::end, Event::failure};
  Duration stalled_after = std::chrono::hours(1);  // without any task's begin or end
  bool operator==(const Notify&) const = default;
};

inline constexpr std::size_t kMostNotify = 16;

/// Reads the map's `notify`: one of them, or a list. Nothing where the key is missing.
Result<std::vector<Notify>> read_notify(const Field& map);
/// What --notify says: a URL, mail:ADDRESS, or a command. usage: names the option.
Result<Notify> notify_of_option(std::string_view text);

/// As JSON that notify_from() and read_notify() read.
std::string to_json(const std::vector<Notify>& list);
Result<std::vector<Notify>> notify_from(std::string_view json);

/// What a body is signed with in the header Berth-Signature: "sha256=" and the HMAC-SHA256 (RFC
/// 2104) of the body, in hexadecimal.
std::string signature(std::string_view secret, std::string_view body);

extern const MapFormat kNotifyMap;
inline constexpr ValueFormat kNotifyOne = format::map_of(kNotifyMap);
inline constexpr ValueFormat kNotifyForms[] = {kNotifyOne,
                                               format::list_of(kNotifyOne, 1, kMostNotify)};
inline constexpr ValueFormat kNotifyFormat = format::either(kNotifyForms);

}  // namespace berth::exec
