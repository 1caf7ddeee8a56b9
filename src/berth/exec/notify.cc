#include "berth/exec/notify.h"

#include <algorithm>

#include "berth/base/digest.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/exec/fields.h"
#include "berth/exec/formats.h"

namespace berth::exec {
namespace {

constexpr ValueFormat kEvent = f::one_of(Notify::kEventNames.all());
constexpr ValueFormat kEvents[] = {kEvent, f::list_of(kEvent, 1)};
constexpr KeyFormat kNotifyKeys[] = {
    {"run", kCommandFormat, "a command, run on this machine in the file's folder",
     "one of run, webhook, mail"},
    {"webhook", f::text(), "a URL to which JSON is posted", ""},
    {"mail", f::text(), "an email address; sent with sendmail", ""},
    {"secret_file", f::text(), "for a webhook: the file with the secret that signs it",
     "not signed"},
    {"on", f::either(kEvents), "when", "end and failure"},
    {"stalled_after", f::duration(), "for stalled: the time without a task that began or ended",
     "1h"},
};

/// No blank, no control character, and not what sendmail would take for an option.
bool is_address(std::string_view text) {
  return text.find('@') != std::string_view::npos && text.front() != '-' &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c != ',' && c < 127; });
}

Status check_webhook(const std::string& url) {
  if (!is_url(url) || url.starts_with("s3:"))
    return fail(ErrorKind::invalid, "expected an http or https URL, got '{}'", clip(shown(url)));
  BERTH_TRY(parse_url(url));
  return {};
}

Status read_events(const Field& map, std::vector<Notify::Event>& events) {
  const auto on = map.find("on");
  if (!on) return {};
  std::vector<Field> items{*on};
  if (on->is_list()) {
    BERTH_ASSIGN(items, on->items());
  }
  if (items.empty()) return on->error("expected at least one");
  events.clear();
  for (const auto& item : items) {
    BERTH_ASSIGN(const auto event, item.choice(Notify::kEventNames));
    if (std::ranges::find(events, event) == events.end()) events.push_back(event);
  }
  return {};
}

Result<Notify> read_one(const Field& field) {
  BERTH_TRY(field.expect_keys(kNotifyMap));
  Notify notify;
  int ways = 0;
  if (const auto run = field.find("run")) {
    BERTH_ASSIGN(notify.run, read_command(*run));
    ++ways;
  }
  if (const auto webhook = field.find("webhook")) {
    BERTH_ASSIGN(notify.webhook, webhook->text());
    if (const auto status = check_webhook(notify.webhook); !status)
      return webhook->error(status.error().message);
    ++ways;
  }
  if (const auto mail = field.find("mail")) {
    BERTH_ASSIGN(notify.mail, mail->text());
    if (!is_address(notify.mail)) return mail->error("expected an address such as me@example.com");
    ++ways;
  }
  if (ways != 1) return field.error("expected one of run, webhook and mail");
  if (const auto secret = field.find("secret_file")) {
    if (notify.webhook.empty()) return secret->error("only a webhook is signed");
    BERTH_ASSIGN(notify.secret_file, process_text(*secret));
  }
  if (const auto after = field.find("stalled_after")) {
    BERTH_ASSIGN(notify.stalled_after, time_limit_of(*after));
  }
  BERTH_TRY(read_events(field, notify.on));
  return notify;
}

}  // namespace

constinit const MapFormat kNotifyMap{"notify", "Who is notified of events of a run.", kNotifyKeys};

Result<std::vector<Notify>> read_notify(const Field& map) {
  const auto field = map.find("notify");
  std::vector<Notify> list;
  if (!field) return list;
  if (!field->is_list()) {
    BERTH_ASSIGN(auto one, read_one(*field));
    list.push_back(std::move(one));
    return list;
  }
  BERTH_ASSIGN(const auto items, field->items());
  if (items.size() > kMostNotify)
    return field->error(fmt::format("expected at most {}, got {}", kMostNotify, items.size()));
  for (const auto& item : items) {
    BERTH_ASSIGN(auto one, read_one(item));
    list.push_back(std::move(one));
  }
  return list;
}

Result<Notify> notify_of_option(std::string_view text) {
  Notify notify;
  constexpr std::string_view kMail = "mail:";
  if (text.starts_with(kMail)) {
    notify.mail = text.substr(kMail.size());
    if (!is_address(notify.mail))
      return fail(ErrorKind::usage, "--notify: expected mail:ADDRESS, got '{}'", clip(text));
  } else if (is_url(text) || is_foreign_url(text)) {
    notify.webhook = text;
    if (const auto status = check_webhook(notify.webhook); !status)
      return fail(ErrorKind::usage, "--notify: {}", status.error().message);
  } else if (trim(text).empty()) {
    return fail(ErrorKind::usage, "--notify: expected a URL, mail:ADDRESS or a command");
  } else {
    notify.run.text = text;
  }
  return notify;
}

std::string to_json(const std::vector<Notify>& list) {
  JsonWriter json;
  json.object().key("notify").array();
  for (const auto& notify : list) {
    json.object();
    if (!notify.run.words.empty())
      json.key("run").list(notify.run.words);
    else if (!notify.run.text.empty())
      json.add("run", notify.run.text);
    if (!notify.webhook.empty()) json.add("webhook", notify.webhook);
    if (!notify.mail.empty()) json.add("mail", notify.mail);
    if (!notify.secret_file.empty()) json.add("secret_file", notify.secret_file);
    json.key("on").array();
    for (const auto event : notify.on) json.value(Notify::kEventNames.name(event));
    json.end().add("stalled_after", format_duration(notify.stalled_after)).end();
  }
  return json.end().end().take();
}

Result<std::vector<Notify>> notify_from(std::string_view json) {
  BERTH_ASSIGN(const Field root, Field::parse(json, "the values that the run was submitted with"));
  return read_notify(root);
}

std::string signature(std::string_view secret, std::string_view body) {
  constexpr std::size_t kBlock = 64;  // bytes, of SHA-256
  std::string key(secret);
  if (key.size() > kBlock) {
    const Digest digest = sha256(key);
    key.assign(digest.bytes.begin(), digest.bytes.end());
  }
  key.resize(kBlock, '\0');
  std::string inner = key, outer = key;
  for (std::size_t i = 0; i < kBlock; ++i) {
    inner[i] = static_cast<char>(key[i] ^ 0x36);
    outer[i] = static_cast<char>(key[i] ^ 0x5c);
  }
  const Digest digest = sha256(inner.append(body));
  outer.append(digest.bytes.begin(), digest.bytes.end());
  return "sha256=" + to_hex(sha256(outer));
}

}  // namespace berth::exec
