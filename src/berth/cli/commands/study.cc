// berth study: a search whose trials a program carries out, in any language: requests come as lines
// of JSON on standard input, and each is answered by one line on standard output
// (docs/reference/python.md).
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "berth/api/calls/calls.h"
#include "berth/base/document.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/studies/study.h"
#include "berth/render/runs/study.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestRequest = 16U << 20;  // bytes of a line

/// A call of the HTTP interface: {"call": "POST", "path": "/v1/runs", "body": TEXT}.
Result<std::string> answer_call(std::span<const api::Route> routes, const Field& request) {
  BERTH_TRY(request.expect_keys({"call", "path", "body"}));
  BERTH_ASSIGN(const auto method, request.get("call"));
  BERTH_ASSIGN(const std::string method_text, method.text());
  BERTH_ASSIGN(const auto path, request.get("path"));
  BERTH_ASSIGN(const std::string path_text, path.text());
  std::string body;
  if (const auto field = request.find("body")) {
    BERTH_ASSIGN(body, field->text());
  }
  BERTH_ASSIGN(const auto reply, api::call(routes, method_text, path_text, body));
  JsonWriter json;
  json.object();
  if (reply.type != std::string_view("application/json"))
    return json.add("text", reply.body).end().take() + "\n";
  std::string line = reply.body;
  std::ranges::replace(line, '\n', ' ');  // only between tokens: a string has none
  return json.key("answer").raw(trim(line)).end().take() + "\n";
}

/// The answer to one line: to a call, or to a request of the study.
std::string answer_to(engine::StudySession& session, std::span<const api::Route> routes,
                      std::string_view line) {
  if (line.contains("\"call\""))
    if (const auto request = Field::parse(line, "request"); request && request->find("call")) {
      const auto answer = answer_call(routes, *request);
      return answer ? *answer : render::to_json(answer.error());
    }
  return render::to_json(session.answer(line));
}

struct StudyOptions {
  void add_to(Options& options) {
    options.always_json();
    options.footer(
        "Each line of standard input is a request, each line of standard output its answer\n"
        "(see docs/reference/python.md).\n"
        "\n"
        "Example:\n"
        "  echo '{\"open\":\"digits-3\"}' | berth study");
  }
};

/// Answers the lines of standard input until its end or a stop signal.
Result<int> study(os::Env& env, const StudyOptions&) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const os::Fd in, env.open_read("/dev/stdin"));
  os::install_stop_signals();
  engine::StudySession session(context);
  const auto routes = api::all_calls();
  // Its children may keep the pipe open after the parent process has died.
  const pid_t parent = ::getppid();
  std::string typed;
  std::array<char, 1U << 16> buffer;
  for (bool ended = false; !ended && env.stop_signals() == 0 && ::getppid() == parent;) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = in.number()}};
    BERTH_TRY(env.wait(watches, session.renew_at()));
    if (const auto due = session.renew_at(); due && env.now() >= *due && ::getppid() == parent)
      (void)session.renew();  // tried again; the next request for a lost claim reports the loss
    if (!watches.front().ready) continue;
    BERTH_ASSIGN(const auto got, env.read_some(in, buffer));
    if (!got) continue;
    ended = *got == 0;
    typed.append(buffer.data(), *got);
    if (typed.size() > kLongestRequest)
      return fail(ErrorKind::invalid, "request: longer than {} bytes", kLongestRequest);
    std::size_t begin = 0;
    for (std::size_t end; (end = typed.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (const auto line = trim(std::string_view(typed).substr(begin, end - begin)); !line.empty())
        print(answer_to(session, routes, line));
    typed.erase(0, begin);
  }
  BERTH_TRY(session.end());
  return env.stop_signals() > 0 ? exit_code(ErrorKind::interrupted) : 0;
}

}  // namespace

Command study_command() {
  return command("study", "Serve a search to a program that runs the trials itself", study);
}

}  // namespace berth::cli
