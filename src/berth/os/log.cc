#include "berth/os/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "berth/base/json_writer.h"
#include "berth/base/units.h"
#include "berth/base/url.h"

namespace berth::os {
namespace {

std::shared_ptr<spdlog::logger> g_log;  // set once, before there are threads

}  // namespace

Status open_log(Env& env) {
  const auto file = env.variable("BERTH_LOG");
  if (!file || file->empty()) return {};
  try {
    if (*file == "-")
      g_log = std::make_shared<spdlog::logger>("berth",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>());
    else
      g_log = std::make_shared<spdlog::logger>(
          "berth", std::make_shared<spdlog::sinks::basic_file_sink_mt>(*file));
    g_log->set_pattern("%v");
    g_log->flush_on(spdlog::level::info);
    g_log->set_error_handler([](const std::string&) {});
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorKind::denied, "BERTH_LOG={}: {}", *file, error.what());
  }
  return {};
}

bool logging() {
  return g_log != nullptr;
}

void log_event(Env& env, std::string_view event, const std::vector<LogField>& fields) {
  if (!logging()) return;
  JsonWriter json;
  json.object().add("at", format_utc(env.wall())).add("pid", env.self().pid).add("event", event);
  for (const auto& [name, value] : fields) json.key(name).raw(without_secrets(value));
  g_log->info("{}", json.end().take());
}

}  // namespace berth::os
