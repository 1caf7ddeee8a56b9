#include "berth/api/calls/work.h"

#include <malloc.h>

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"

namespace berth::api {
namespace {

constexpr std::size_t kMostNames = 16, kLongestName = 512;
constexpr std::size_t kMostFreeMemory = 16U << 20;  // bytes that the allocator may keep
constexpr std::string_view kRepeatable = "run set";

/// usage: a name without a value, or given more than once.
Status check_query(const Work& work) {
  const auto repeatable = words(kRepeatable);
  for (const auto& [name, value] : work.query) {
    if (value.empty()) return fail(ErrorKind::usage, "{}: expected a value", name);
    if (std::ranges::find(repeatable, name) == repeatable.end() && work.values(name).size() > 1)
      return fail(ErrorKind::usage, "{}: expected one value", name);
  }
  return {};
}

Result<std::string> answer_to(Work& work, const Call& call, bool needs_store, const Home& home,
                              const std::function<WorkCall::Answer>& answer) {
  BERTH_TRY(check_names(*work.request, work.request->parts));
  BERTH_ASSIGN(work.query, read_query(work.request->query, call.query));
  BERTH_TRY(check_query(work));
  if (needs_store) {
    BERTH_ASSIGN(work.context, home.state_directory.empty()
                                   ? engine::open_context(*work.env)
                                   : engine::open_context(*work.env, home.state_directory));
    work.context.program = home.program;
    for (auto& name : work.names) BERTH_TRY(engine::replace_last_run(work.context, name));
  }
  return answer(work);
}

/// Ends the request. The allocator would keep the memory of 100,000 tasks.
void release(const Work* work) {
  delete work;
  if (::mallinfo2().fordblks >= kMostFreeMemory) ::malloc_trim(0);
}

Reply reply_to(const Request& request, const Call& call, bool needs_store, const Home& home,
               const std::function<WorkCall::Answer>& answer) {
  const std::shared_ptr<Work> work(new Work{.request = &request, .names = request.parts}, release);
  auto text = answer_to(*work, call, needs_store, home, answer);
  if (!text) return failed(text.error());
  Reply reply{.status = call.status, .body = *std::move(text), .ends_line = false};
  if (call.answer.contains('/')) reply.type = call.answer.data();  // of a literal
  if (work->more) reply.more = [work] { return work->more(); };
  return reply;
}

}  // namespace

engine::Note Work::note() {
  return [this](const std::string& text) { notes.push_back(text); };
}

std::string Work::value(std::string_view key) const {
  const auto at = std::ranges::find(query, key, &std::pair<std::string, std::string>::first);
  return at == query.end() ? "" : at->second;
}

std::vector<std::string> Work::values(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : query)
    if (name == key) values.push_back(value);
  return values;
}

Route route_of(const Call& call, const std::function<WorkCall::Answer>& answer, const Home& home,
               bool needs_store) {
  return {call, [=](const Request& request) {
            return reply_to(request, call, needs_store, home, answer);
          }};
}

std::vector<Route> routes_of(std::span<const WorkCall> calls, const Home& home) {
  std::vector<Route> routes;
  for (const auto& [call, answer, needs_store] : calls)
    routes.push_back(route_of(call, answer, home, needs_store));
  return routes;
}

std::string with_notes(const Work& work, const std::string& json) {
  std::string text = JsonWriter().object().key("notes").list(work.notes).end().take();
  text.back() = ',';
  return text + json.substr(1);
}

Result<Reply> call(std::span<const Route> routes, std::string_view method, std::string_view path,
                   std::string_view body) {
  const std::size_t question = path.find('?');
  Request request{.method = std::string(method),
                  .path = std::string(path.substr(0, question)),
                  .body = std::string(body)};
  if (question != path.npos) request.query = path.substr(question + 1);
  Reply reply = answer(routes, request);
  if (reply.error) return std::unexpected(*std::move(reply.error));
  while (reply.more) {
    BERTH_ASSIGN(const auto part, reply.more());
    if (!part) break;
    reply.body += *part;
  }
  return reply;
}

Status check_names(const Request& request, std::span<const std::string> names) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= kLongestName && !name.starts_with('-') &&
           std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  };
  if (names.size() <= kMostNames && std::ranges::all_of(names, is_name)) return {};
  return fail(ErrorKind::usage, "{}: expected names of runs and tasks", clip(request.path));
}

}  // namespace berth::api
