#include "berth/remote/ec2/ec2_settings.h"

#include <algorithm>
#include <array>

#include "berth/base/digest.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::size_t kMostCredentials = 1 << 20;

/// Letters, digits and a few more, none of which means anything in a URL or to ssh.
bool plain(std::string_view text, std::string_view more = "-_.") {
  return !text.empty() && text.size() <= 255 && text[0] != '-' &&
         std::ranges::all_of(text, [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  more.contains(c);
         });
}

Status read_plain(const Field& field, std::string_view key, std::string& to,
                  std::string_view more = "-_.") {
  const auto given = field.find(key);
  if (!given) return {};
  BERTH_ASSIGN(to, given->text());
  if (!plain(to, more)) return given->error("expected letters, digits and " + std::string(more));
  return {};
}

Status read_names(const Field& field, std::string_view key, std::vector<std::string>& to) {
  const auto given = field.find(key);
  if (!given) return {};
  BERTH_ASSIGN(const auto items, given->items());
  for (const Field& item : items) {
    BERTH_ASSIGN(to.emplace_back(), item.text());
    if (!plain(to.back())) return item.error("expected letters, digits and -_.");
  }
  return {};
}

Status read_count(const Field& field, std::string_view key, std::int64_t least, std::int64_t most,
                  std::int64_t& to) {
  const auto given = field.find(key);
  if (!given) return {};
  BERTH_ASSIGN(to, given->integer());
  if (to < least || to > most) return given->error(fmt::format("expected {} to {}", least, most));
  return {};
}

Status read_time(const Field& field, std::string_view key, Duration least, Duration& to) {
  const auto given = field.find(key);
  if (!given) return {};
  BERTH_ASSIGN(to, given->duration());
  if (to < least) return given->error("expected at least " + format_duration(least));
  return {};
}

Status read_bytes(const Field& field, std::string_view key, std::int64_t& to) {
  const auto given = field.find(key);
  if (!given) return {};
  BERTH_ASSIGN(const std::string text, given->text());
  const auto bytes = parse_bytes(text);
  if (!bytes) return given->error(bytes.error());
  to = *bytes;
  return {};
}

/// A name of the table, or {type: …, price: …} with what is to be otherwise, or is not in it.
Result<Ec2Type> read_type(const Field& field) {
  Ec2Type type;
  const bool bare = field.is_scalar();
  if (!bare)
    BERTH_TRY(field.expect_keys({"type", "cpu", "mem", "gpu", "gpu_model", "gpu_mem", "price"}));
  BERTH_ASSIGN(const Field name, bare ? Result<Field>(field) : field.get("type"));
  BERTH_ASSIGN(type.name, name.text());
  const auto known = std::ranges::find(known_ec2_types(), type.name, &Ec2Type::name);
  const bool found = known != known_ec2_types().end();
  if (found) type = *known;
  if (!plain(type.name)) return name.error("expected an instance type, such as g5.xlarge");
  if (bare && !found)
    return field.error(
        "Berth does not know this type: describe it as {type: …, cpu: …, mem: …, price: …}");
  if (bare) return type;
  BERTH_TRY(read_count(field, "cpu", 1, 4096, type.cpu));
  BERTH_TRY(read_count(field, "gpu", 0, 64, type.gpus));
  BERTH_TRY(read_bytes(field, "mem", type.mem));
  BERTH_TRY(read_bytes(field, "gpu_mem", type.gpu_mem));
  if (const auto model = field.find("gpu_model")) {
    BERTH_ASSIGN(type.gpu_model, model->text());
  }
  if (const auto price = field.find("price")) {
    BERTH_ASSIGN(const double cents, price->number());
    if (!(cents >= 0 && cents <= 1e6)) return price->error("expected cents an hour");
    type.price = round_amount(cents * 1000);
  }
  if (type.cpu == 0 || type.mem == 0) return field.error("expected cpu and mem too");
  return type;
}

Status read_types(const Field& field, Ec2Settings& settings) {
  const auto types = field.find("types");
  if (!types) {
    if (settings.instances.empty())
      settings.types.assign(known_ec2_types().begin(), known_ec2_types().end());
    return {};
  }
  BERTH_ASSIGN(const auto items, types->items());
  if (items.empty()) return types->error("expected at least one type");
  for (const Field& item : items) {
    BERTH_ASSIGN(settings.types.emplace_back(), read_type(item));
  }
  return {};
}

Status read_bounds(const Field& field, Ec2Settings& settings) {
  std::int64_t most = settings.instances.empty() ? 1 : std::ssize(settings.instances);
  BERTH_TRY(read_count(field, "most", 1, 1000, most));
  settings.most = static_cast<std::size_t>(most);
  BERTH_TRY(read_count(field, "port", 1, 65535, settings.port));
  if (field.find("budget")) {
    std::int64_t cents = 0;
    BERTH_TRY(read_count(field, "budget", 1, 1LL << 40, cents));
    settings.budget = cents;
    const auto free = std::ranges::find(settings.types, 0, &Ec2Type::price);
    if (free != settings.types.end() || settings.types.empty())
      return field.get("budget")->error("a budget needs the price of each type under `types`");
  }
  BERTH_TRY(read_time(field, "idle", Duration{}, settings.idle));
  BERTH_TRY(read_time(field, "guard", std::chrono::seconds(10), settings.lease));
  BERTH_TRY(read_time(field, "patience", std::chrono::seconds(1), settings.timeout));
  if (const auto at_end = field.find("at_end")) {
    BERTH_ASSIGN(settings.at_end, at_end->choice(Ec2Settings::kAtEndNames));
    if (!settings.instances.empty() && settings.at_end == Ec2Settings::AtEnd::terminate)
      return at_end->error("instances named by you are stopped or kept, never terminated");
    if (settings.instances.empty() && settings.at_end == Ec2Settings::AtEnd::keep)
      return at_end->error("only instances named by you can be kept running");
  }
  return {};
}

Status read_place(os::Env& env, const Field& field, Ec2Settings& settings) {
  settings.region =
      env.variable("AWS_REGION").value_or(env.variable("AWS_DEFAULT_REGION").value_or(""));
  BERTH_TRY(read_plain(field, "region", settings.region, "-"));
  if (!plain(settings.region, "-"))
    return field.error("expected a region, such as eu-west-1, here or in AWS_REGION");
  settings.endpoint = env.variable("AWS_ENDPOINT_URL_EC2")
                          .value_or("https://ec2." + settings.region + ".amazonaws.com");
  BERTH_TRY(read_plain(field, "endpoint", settings.endpoint, "-._:/[]"));
  const auto starts = [&](const char* with) { return settings.endpoint.starts_with(with); };
  if (!starts("https://") && !starts("http://127.0.0.1:") && !starts("http://localhost:"))
    return field.error("the endpoint is neither https nor on this machine: " +
                       clip(settings.endpoint));
  if (settings.endpoint.find('/', 8) == std::string::npos) settings.endpoint += '/';
  return {};
}

}  // namespace

Result<Ec2Settings> read_ec2_settings(os::Env& env, std::string name, const Field& field) {
  BERTH_TRY(field.expect_keys(
      {// what every kind of cluster has
       "kind", "env", "prescript", "postscript", "lease", "outlive", "reconnect", "shared_folders",
       // and this one
       "region", "endpoint", "profile", "instances", "image", "types", "spot", "key_name", "subnet",
       "security_groups", "instance_profile", "user", "key_file", "port", "most", "budget",
       "at_end", "idle", "guard", "patience"}));
  Ec2Settings settings;
  settings.name = std::move(name);
  BERTH_TRY(read_place(env, field, settings));
  BERTH_TRY(read_plain(field, "profile", settings.profile, "-_. @+"));
  BERTH_TRY(read_names(field, "instances", settings.instances));
  for (const std::string& id : settings.instances)
    if (!id.starts_with("i-"))
      return field.get("instances")->error("expected i-…, got " + clip(id));
  BERTH_TRY(read_plain(field, "image", settings.image, "-"));
  if (settings.image.empty() == settings.instances.empty())
    return field.error("expected either an image (ami-…) to run, or instances (i-…) to start");
  BERTH_TRY(read_types(field, settings));
  BERTH_TRY(read_plain(field, "key_name", settings.key_name, "-_. @"));
  BERTH_TRY(read_plain(field, "subnet", settings.subnet));
  BERTH_TRY(read_plain(field, "instance_profile", settings.instance_profile, "-_.+=,@"));
  BERTH_TRY(read_names(field, "security_groups", settings.security_groups));
  BERTH_TRY(read_plain(field, "user", settings.user));
  if (const auto key = field.find("key_file")) {
    BERTH_ASSIGN(settings.key_file, key->text());
  }
  if (const auto spot = field.find("spot")) {
    constexpr std::array<std::string_view, 2> kChoices{"false", "true"};
    BERTH_ASSIGN(const std::size_t chosen, spot->choice(kChoices));
    settings.spot = chosen == 1;
  }
  BERTH_TRY(read_bounds(field, settings));
  return settings;
}

std::string ec2_home(os::Env& env, const std::string& state_directory) {
  return to_hex(sha256(env.host_name() + ":" + state_directory)).substr(0, 16);
}

Result<Credentials> read_credentials(std::string_view text, std::string_view profile) {
  Credentials found;
  bool within = false;
  for (const auto raw : split(text, '\n')) {
    const auto line = trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      within = line.back() == ']' && trim(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    const auto equals = line.find('=');
    if (!within || equals == line.npos) continue;
    const std::string key = lower(trim(line.substr(0, equals)));
    const std::string value(trim(line.substr(equals + 1)));
    if (key == "aws_access_key_id") found.key_id = value;
    if (key == "aws_secret_access_key") found.secret = value;
    if (key == "aws_session_token") found.session_token = value;
  }
  if (found.key_id.empty() || found.secret.empty())
    return fail(ErrorKind::not_found, "no aws_access_key_id and aws_secret_access_key under [{}]",
                clip(profile));
  return found;
}

Result<Credentials> find_credentials(os::Env& env, const std::string& profile) {
  const auto given = [&](const char* name) { return env.variable(name).value_or(""); };
  Credentials found{given("AWS_ACCESS_KEY_ID"), given("AWS_SECRET_ACCESS_KEY"),
                    given("AWS_SESSION_TOKEN")};
  if (profile.empty() && !found.key_id.empty() && !found.secret.empty()) return found;
  std::string file = given("AWS_SHARED_CREDENTIALS_FILE");
  if (file.empty()) file = given("HOME") + "/.aws/credentials";
  const auto text = env.read_file(file, kMostCredentials);
  if (!text)
    return fail(
        ErrorKind::denied,
        "no credentials for AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write {}",
        file);
  std::string wanted = profile.empty() ? given("AWS_PROFILE") : profile;
  if (wanted.empty()) wanted = "default";
  found = {};
  auto read = read_credentials(*text, wanted);
  if (!read) return fail(ErrorKind::denied, "{}: {}", file, read.error().message);
  return read;
}

}  // namespace berth::remote
