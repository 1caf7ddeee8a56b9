#include "berth/store/postgres_address.h"

#include <algorithm>
#include <memory>

#include "berth/base/text.h"
#include "berth/store/database.h"
#include "berth/store/postgres_library.h"

namespace berth::store {
namespace {

/// Where the URL and the environment leave them open: a dead connection is noticed within half a
/// minute, and after a failover only the server that may be written to will do.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"keepalives_idle", "15"},     {"keepalives_interval", "5"},
    {"keepalives_count", "3"},     {"tcp_user_timeout", "30000"},
    {"client_encoding", "UTF8"},   {"target_session_attrs", "read-write"},
    {"application_name", "berth"},
};

std::string place_of(const Address& address) {
  const auto value = [&](std::string_view word) -> std::string {
    const auto found =
        std::ranges::find(address.parameters, word, &std::pair<std::string, std::string>::first);
    return found == address.parameters.end() ? "" : found->second;
  };
  std::string place = "postgresql://";
  if (const auto user = value("user"); !user.empty()) place += user + "@";
  const auto hosts = value("host");
  const auto ports = value("port");
  if (!hosts.starts_with('/')) place += hosts;  // a directory of a socket is told at the end
  if (!ports.empty()) place += ":" + ports;
  place += "/" + value("dbname");
  if (hosts.starts_with('/')) place += "?host=" + hosts;
  if (const auto service = value("service"); !service.empty()) place += "?service=" + service;
  return clip(place, 200);
}

std::string rotated(const std::string& list) {
  const auto comma = list.find(',');
  return comma == std::string::npos ? list : list.substr(comma + 1) + "," + list.substr(0, comma);
}

}  // namespace

bool is_database_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

bool holds_password(std::string_view url) {
  if (!is_database_url(url)) return false;
  url.remove_prefix(url.find("://") + 3);
  const auto at = url.rfind('@');
  return (at != std::string_view::npos && url.substr(0, at).find(':') != std::string_view::npos) ||
         url.find("password=") != std::string_view::npos;
}

std::string& Address::operator[](const std::string& word) {
  const auto found =
      std::ranges::find(parameters, word, &std::pair<std::string, std::string>::first);
  return found != parameters.end() ? found->second : parameters.emplace_back(word, "").second;
}

void Address::rotate() {
  for (auto& [word, value] : parameters)
    if (word == "host" || word == "hostaddr" || word == "port") value = rotated(value);
}

Result<Address> read_address(const std::string& url) {
  constexpr const char* kWanted =
      "expected postgresql://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE]";
  if (!is_database_url(url)) return fail(ErrorKind::usage, "no database: {}", kWanted);
  BERTH_ASSIGN(const Libpq* const pq, libpq());
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      pq->PQconninfoParse(url.c_str(), &message), pq->PQconninfoFree);
  if (message != nullptr) pq->PQfreemem(message);  // it repeats parts of the URL
  if (!options) return fail(ErrorKind::usage, "not a URL of PostgreSQL: {}", kWanted);
  Address address;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    address.parameters.emplace_back(option->keyword, option->val);
  }
  if (address["host"].find('@') != std::string::npos)
    return fail(ErrorKind::usage, "the URL has two @: one within a password is written %40");
  std::erase_if(address.parameters, [](const auto& each) { return each.second.empty(); });
  address.place = place_of(address);
  for (const auto& [word, value] : kDefaults)
    if (auto& given = address[word]; given.empty()) given = value;
  return address;
}

}  // namespace berth::store
