// The lines of each message as they have been since the first revision of the protocol: an agent
// that was started by an older Berth reads what is written here, and the other way round.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "berth/agent/files/push.h"
#include "berth/agent/protocol/pool_protocol.h"
#include "berth/agent/protocol/protocol.h"
#include "berth/agent/startup.h"
#include "berth/base/json.h"
#include "berth/base/rng.h"
#include "paths.h"

namespace berth::agent {
namespace {

using std::chrono::seconds;

machine::Block golden_block() {
  machine::Block block;
  block.resources.set(Known::cpu, 1500);
  block.resources.set("licence", 2000);
  block.cores = {{0, 0, 1000}, {7, 1, 500}};
  block.devices = {{.uuid = "GPU-a b", .index = 3, .memory = 1 << 30}};
  return block;
}

exec::Launch least_launch() {
  exec::Launch launch{
      .task = {1}, .token = {2}, .request = {}, .argv = {"x"}, .environment = {}, .directory = "/"};
  launch.request.resources.set(Known::gpu, 1);
  return launch;
}

exec::Launch full_launch() {
  return {.task = {3},
          .token = {1LL << 40},
          .request = {golden_block().resources,
                      "a-1/3",
                      {.slot_sizes = {13, 31},
                       .memory_min = 30'000'000'000,
                       .policy = placement::PolicyKind::best_effort,
                       .objective = placement::Objective::ring,
                       .required = {"0", "GPU-\"ü"}}},
          .argv = {"x", "", "\"\\\n\t\x01\x7f\xff\xc3\xa9"},
          .environment = {{"A", "\x80"}, {"B", "=="}},
          .directory = "/a b",
          .timeout = std::chrono::hours(9),
          .grace = seconds(1),
          .enforce = true,
          .gpu_mem_over = exec::GpuMemOver::kill,
          .input = "/a b/stdin",
          .behind = {7},
          .waits_most = seconds(2)};
}

std::vector<Call> golden_calls() {
  exec::Launch sized = least_launch();
  sized.request.selection.slot_sizes = {13, 31};
  sized.gpu_mem_over = exec::GpuMemOver::warn;
  return {Hello{1, 7, {{"PATH", "/bin"}, {"E", ""}}, true},
          least_launch(),
          sized,
          full_launch(),
          exec::Cancel{{9}},
          exec::Abandon{},
          Acknowledge{12},
          WantOutput{false},
          Keepalive{},
          Finish{},
          Retain{std::chrono::minutes(10)}};
}

std::vector<Answer> golden_answers() {
  std::vector<Answer> answers = {
      Welcome{1, "3", golden_block(), {77}, seconds(30), true, {{{1}, {2}}, {{3}, {4}}}, 18},
      Welcome{1, "", {}, {}, seconds(1), false, {}, 1},
      Refusal{{ErrorKind::stale, "\"late\" \xff"}},
      Alive{},
      Acknowledge{12},
      Numbered{1, exec::Started{{1}, {2}, golden_block(), "mem, \"disk\""}},
      Numbered{2, exec::Output{{1}, {2}, exec::Stream::out, std::string("\0a\n\xfe", 4)}},
      Numbered{3, exec::Output{{1}, {2}, exec::Stream::err, ""}},
      Numbered{4, exec::Metric{{1}, {2}, "loss", -0.1}},
      Numbered{5, exec::Metric{{1}, {2}, "step", 3}},
      Numbered{5, exec::Metric{{1}, {2}, "most", 1.7976931348623157e308}},
      Numbered{6, exec::Notice{{1}, {2}, "a\tb"}},
      Numbered{7, exec::Ended{.task = {1},
                              .token = {2},
                              .cause = exec::Cause::exit_code,
                              .exit_code = -3,
                              .signal = 9,
                              .detail = "it fell",
                              .cpu = Duration(12'345),
                              .peak_mem = 1 << 20}}};
  for (int cause = 0; cause <= static_cast<int>(exec::Cause::given_back); ++cause)
    answers.emplace_back(Numbered{8, exec::Ended{.task = {1},
                                                 .token = {2},
                                                 .cause = static_cast<exec::Cause>(cause),
                                                 .exit_code = {},
                                                 .detail = {}}});
  return answers;
}

std::vector<PoolCall> golden_pool_calls() {
  machine::AllocRequest ask{golden_block().resources, "digits-3 \xff", -5};
  machine::AllocRequest selecting = ask;
  selecting.selection.memory_min = 7;
  return {AskOffer{}, AskLease{"5fA", ask, seconds(60), true, true},
          AskLease{"0", selecting, seconds(1)}};
}

std::vector<PoolAnswer> golden_pool_answers() {
  MachineOffer offer{.host = "box",
                     .version = "0.1.0",
                     .system = "Linux 6.1.0 x86_64",
                     .free = golden_block(),
                     .total = golden_block(),
                     .devices = {"NVIDIA H100 80GB HBM3", ""},
                     .holders = {{"digits-3", golden_block().resources, true}, {"\xff", {}, false}},
                     .notes = {"no \"smi\""}};
  return {offer, MachineOffer{}, Leased{"/home/a", golden_block()},
          Error{ErrorKind::busy, "0 free"}};
}

PushRequest golden_push() {
  return {.command = {"ssh", "a b", "\"é\\\n\xff"}, .nonce = sha256("nonce")};
}

constexpr std::uint64_t kMostAny = 1ULL << 60;

constexpr auto kDirectory = "src/berth/agent/testdata/";

std::string golden(const std::string& name) {
  std::ifstream in(tests::source_path(kDirectory + name));
  return (std::stringstream() << in.rdbuf()).str();
}

/// BERTH_GOLDEN=1 writes the file anew: for a message that is new, never for one that was there.
void expect_golden(const std::string& name, const std::string& text) {
  if (std::getenv("BERTH_GOLDEN") != nullptr)
    std::ofstream(tests::source_path(kDirectory + name)) << text;
  EXPECT_EQ(text, golden(name));
}

template <class Message>
std::vector<std::string> lines_of(const std::vector<Message>& messages) {
  std::vector<std::string> lines;
  for (const auto& message : messages) lines.push_back(encode(message));
  return lines;
}

TEST(ProtocolGolden, EachMessageIsWrittenAsItAlwaysWas) {
  std::string text;
  for (const auto& lines : {lines_of(golden_calls()), lines_of(golden_answers()),
                            lines_of(golden_pool_calls()), lines_of(golden_pool_answers())})
    for (const auto& line : lines) text += line + "\n";
  expect_golden("messages.txt", text + to_json(golden_push()) + "\n");
}

/// What `decode` makes of a line that another made of it.
template <class Message>
std::string again(const Result<Message>& read) {
  return read ? encode(*read) : "refused: " + read.error().message;
}

template <class Message, class Decode>
void expect_read(const std::vector<Message>& messages, Decode decode) {
  for (const auto& line : lines_of(messages)) {
    EXPECT_EQ(again(decode(line)), line);
    const auto brace = line.find('{', 1);
    const std::string more = line.substr(0, brace + 1) + R"("yet":{"unknown":[1]})" +
                             (line[brace + 1] == '}' ? "" : ",") + line.substr(brace + 1);
    EXPECT_EQ(again(decode(more)), line);
  }
}

TEST(ProtocolGolden, EachMessageIsReadAndUnknownFieldsArePassedOver) {
  expect_read(golden_calls(), decode_call);
  expect_read(golden_answers(), decode_answer);
  expect_read(golden_pool_calls(), decode_pool_call);
  expect_read(golden_pool_answers(), decode_pool_answer);
  PushRequest push = golden_push();
  push.command.back() = "\"é\\\n?";  // what is no UTF-8 was never sent
  EXPECT_EQ(parse_push(to_json(golden_push())).value(), push);
}

/// Each field of each message, gone or with a value that is not as wanted: what is then refused.
template <class Message, class Decode>
std::string refused(const std::vector<Message>& messages, Decode decode) {
  const std::vector<std::string> values = {
      "null", "true",  "-1",     "0",  "1.5", "18446744073709551615", "9223372036854775807",
      "\"\"", "\"x\"", "\"ok\"", "[]", "[1]", "[\"a=b\",\"€\"]",      "{}"};
  std::string text;
  for (const auto& line : lines_of(messages)) {
    const Json message = *parse_json(line);
    const std::string within = message.contains("params")   ? "params"
                               : message.contains("result") ? "result"
                                                            : "error";
    for (const auto& [name, value] : message[within].items()) {
      text += message.value("method", message.value("id", Json()).dump()) + " " + name + ":";
      Json changed = message;
      changed[within].erase(name);
      if (!decode(dump(changed))) text += " gone";
      for (const auto& other : values) {
        changed = message;
        changed[within][name] = Json::parse(other);
        if (!decode(dump(changed))) text += " " + other;
      }
      text += "\n";
    }
  }
  return text;
}

TEST(ProtocolGolden, WhatWasRefusedIsRefused) {
  expect_golden("refused.txt", refused(golden_calls(), decode_call) +
                                   refused(golden_answers(), decode_answer) +
                                   refused(golden_pool_calls(), decode_pool_call) +
                                   refused(golden_pool_answers(), decode_pool_answer));
}

TEST(ProtocolGolden, ACauseThatOnlyTheRunnerFindsIsTakenFromNoAgent) {
  for (const auto cause : {exec::Cause::not_as_declared, exec::Cause::stopped_early}) {
    const std::string line = encode(
        1, exec::Ended{.task = {1}, .token = {2}, .cause = cause, .exit_code = {}, .detail = {}});
    EXPECT_FALSE(decode_answer(line)) << line;
  }
}

/// All decoders, each of which may refuse.
void read_as_everything(const std::string& line) {
  (void)decode_call(line);
  (void)decode_answer(line);
  (void)decode_pool_call(line);
  (void)decode_pool_answer(line);
  (void)parse_push(line);
  (void)parse_agent_file(line);
}

/// Some value that another party might have sent.
std::string any_json(Rng& rng, int depth) {
  const std::vector<std::string> values = {
      "null", "true",   "0",      "-7",          "1e400",   "18446744073709551615",
      "2.5",  "\"\"",   "\"ok\"", "\"\\u0100\"", "\"a=b\"", "{}",
      "[]",   "[[1,2]]"};
  if (depth == 0 || rng.below(3) > 0) return values[rng.below(values.size())];
  const bool is_object = rng.below(2) == 0;
  std::string text;
  for (std::uint64_t i = 0; i < rng.below(4); ++i)
    text += fmt::format("{}{}{}", text.empty() ? "" : ",",
                        is_object ? fmt::format("\"{}\":", i) : "", any_json(rng, depth - 1));
  return is_object ? "{" + text + "}" : "[" + text + "]";
}

TEST(ProtocolGolden, WhateverComesIsReadOrRefusedAndNothingThrows) {
  std::stringstream lines(golden("messages.txt"));
  Rng rng(7);
  for (std::string line; std::getline(lines, line);) {
    for (int round = 0; round < 200; ++round) {
      std::string changed = line;
      for (std::uint64_t i = 0; i <= rng.below(3); ++i)
        changed[rng.below(changed.size())] = static_cast<char>(rng.below(256));
      read_as_everything(changed);
    }
    Json message = *parse_json(line);
    for (const auto* part : {"", "params", "result", "error"}) {
      if (*part != 0 && !message.contains(part)) continue;
      const Json object = *part == 0 ? message : message[part];
      for (const auto& [name, value] : object.items())
        for (int round = 0; round < 20; ++round) {
          Json changed = message;
          const auto other = parse_json(any_json(rng, 3)).value_or(nullptr);
          (*part == 0 ? changed : changed[part])[name] = other;
          read_as_everything(dump(changed));
        }
    }
  }
}

std::string any_text(Rng& rng) {
  std::string text;
  for (std::uint64_t i = rng.below(20); i > 0; --i) text += static_cast<char>(rng.below(256));
  return text;
}

exec::Launch any_launch(Rng& rng) {
  exec::Launch launch = rng.below(2) == 0 ? least_launch() : full_launch();
  launch.token = {1 + static_cast<std::int64_t>(rng.below(kMostAny))};
  launch.request.holder = any_text(rng);
  launch.argv.resize(1 + rng.below(4), any_text(rng));
  launch.environment.emplace_back("N" + std::to_string(rng.below(9)), any_text(rng));
  launch.directory = any_text(rng);
  launch.timeout = Duration(static_cast<std::int64_t>(rng.below(kMostAny)));
  launch.enforce = rng.below(2) == 0;
  launch.gpu_mem_over = static_cast<exec::GpuMemOver>(rng.below(3));
  launch.behind = {static_cast<std::int64_t>(rng.below(3))};
  return launch;
}

TEST(ProtocolGolden, AnyMessageComesAsItWasSent) {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    const auto number = static_cast<std::int64_t>(1 + rng.below(kMostAny));
    exec::Ended ended{.task = {number},
                      .token = {1},
                      .cause = static_cast<exec::Cause>(rng.below(11)),
                      .exit_code = {},
                      .signal = static_cast<int>(rng.below(3)),
                      .detail = any_text(rng),
                      .cpu = Duration(number),
                      .peak_mem = number};
    if (rng.below(2) == 0) ended.exit_code = static_cast<int>(rng.below(512)) - 256;
    expect_read<Call>({any_launch(rng), Hello{number, number, {{"A", any_text(rng)}}, true}},
                      decode_call);
    expect_read<Answer>(
        {Numbered{number, ended},
         Numbered{number, exec::Output{{1}, {2}, exec::Stream::err, any_text(rng)}},
         Numbered{number, exec::Metric{{1}, {2}, any_text(rng), rng.uniform() * 1e9}},
         Refusal{{static_cast<ErrorKind>(rng.below(13)), any_text(rng)}}},
        decode_answer);
  }
}

TEST(ProtocolGolden, TheAgentsFileIsWrittenAsItAlwaysWas) {
  const std::string text =
      R"({"pid":7,"started_at":9,"boot":"b-1","version":1,"block":"cpu=1500,licence=2000 )"
      R"(0:0:1000,7:1:500 3:-1:1073741824:0:0:1:0:GPU-a%20b","alloc":77})";
  const AgentFile file{{7, 9}, "b-1", 1, golden_block(), {77}};
  EXPECT_EQ(to_json(file), text);
  EXPECT_EQ(parse_agent_file(text + "\n")->block, golden_block());
  EXPECT_FALSE(parse_agent_file("[]"));
  EXPECT_EQ(parse_agent_file(text)->host, "");
  EXPECT_EQ(parse_agent_file(to_json({{7, 9}, "b-1", 1, golden_block(), {77}, "node-1"}))->host,
            "node-1");
}

TEST(ProtocolGolden, WhatIsReadyIsReadByTheOneWhoWaits) {
  EXPECT_EQ(ready_line({4711, 99}), "ready 4711 99\n");
  EXPECT_EQ(parse_ready(" ready 4711 99\n").value(), (os::ProcessIdentity{4711, 99}));
  for (const auto* wrong : {"", "ready", "ready 1", "ready 1 2 3", "steady 1 2", "ready x 2"})
    EXPECT_FALSE(parse_ready(wrong)) << wrong;
}

}  // namespace
}  // namespace berth::agent
