#include "berth/agent/protocol/protocol.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::agent {
namespace {

/// All bytes, zero and those that are no UTF-8 among them.
std::string any_bytes() {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  return bytes + "é\"\\";
}

machine::Block block() {
  machine::Block block;
  block.resources.set(Known::cpu, 1500);
  block.resources.set("licence", 2000);
  block.cores = {{0, 0, 1000}, {7, 1, 500}};
  block.devices = {{.uuid = "GPU-a b", .index = 3, .memory = 1 << 30}};
  return block;
}

/// What is encoded again from what was decoded is the same line, and it is one line of ASCII or
/// UTF-8.
void round_trip(const Call& call) {
  const std::string line = encode(call);
  const auto again = decode_call(line);
  ASSERT_TRUE(again) << again.error().message << "\n" << line;
  EXPECT_EQ(encode(*again), line);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}
void round_trip(const Answer& answer) {
  const std::string line = encode(answer);
  const auto again = decode_answer(line);
  ASSERT_TRUE(again) << again.error().message << "\n" << line;
  EXPECT_EQ(encode(*again), line);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

exec::Launch launch() {
  return {.task = {3},
          .token = {1LL << 40},
          .request = {block().resources,
                      "a-1/3" + any_bytes(),
                      {.slot_sizes = {13, 31},
                       .memory_min = 30'000'000'000,
                       .policy = placement::PolicyKind::best_effort,
                       .objective = placement::Objective::ring,
                       .required = {"0", "GPU-ü\""}}},
          .argv = {"x", "", any_bytes()},
          .environment = {{"A", any_bytes()}, {"B", "=="}},
          .directory = "/" + any_bytes(),
          .timeout = std::chrono::hours(9),
          .grace = std::chrono::seconds(1),
          .gpu_mem_over = exec::GpuMemOver::kill,
          .behind = {7},
          .waits_most = std::chrono::seconds(2)};
}

TEST(AgentProtocol, WhatIsSaidIsHeard) {
  round_trip(
      Call(Hello{kProtocolVersion, 7, {{"PATH", "/bin"}, {"X", any_bytes()}, {"E", ""}}, true}));
  round_trip(Call(launch()));
  round_trip(Call(exec::Cancel{{9}}));
  round_trip(Call(exec::Abandon{}));
  round_trip(Call(Acknowledge{12}));
  round_trip(Call(WantOutput{false}));
  round_trip(Call(Keepalive{}));
  round_trip(Call(Finish{}));
  round_trip(Call(Retain{std::chrono::minutes(10)}));
  round_trip(Answer(Welcome{
      1, "3", block(), {77}, std::chrono::seconds(30), true, {{{1}, {2}}, {{3}, {4}}}, 18}));
  round_trip(Answer(Refusal{{ErrorKind::stale, any_bytes()}}));
  round_trip(Answer(Alive{}));
  round_trip(Answer(Acknowledge{12}));
  round_trip(Answer(Numbered{1, exec::Started{{1}, {2}, block(), "mem, \"disk\""}}));
  round_trip(Answer(Numbered{2, exec::Output{{1}, {2}, exec::Stream::err, any_bytes()}}));
  round_trip(Answer(Numbered{3, exec::Metric{{1}, {2}, "loss", -0.1}}));
  round_trip(Answer(Numbered{3, exec::Notice{{1}, {2}, any_bytes()}}));
  round_trip(Answer(Numbered{3, exec::Metric{{1}, {2}, "loss", 1.7976931348623157e308}}));
  round_trip(Answer(Numbered{3, exec::Metric{{1}, {2}, "loss", 5e-324}}));
  for (int cause = 0; cause <= static_cast<int>(exec::Cause::given_back); ++cause)
    round_trip(Answer(Numbered{4, exec::Ended{.task = {1},
                                              .token = {2},
                                              .cause = static_cast<exec::Cause>(cause),
                                              .exit_code = {},
                                              .signal = 9,
                                              .detail = any_bytes()}}));
}

TEST(AgentProtocol, EveryFieldOfALaunchIsHeard) {
  const exec::Launch sent = launch();
  const auto call = decode_call(encode(Call(sent)));
  ASSERT_TRUE(call);
  const auto& received = std::get<exec::Launch>(*call);
  EXPECT_EQ(received.task, sent.task);
  EXPECT_EQ(received.token, sent.token);
  EXPECT_EQ(received.request.resources, sent.request.resources);
  EXPECT_EQ(received.request.holder, sent.request.holder);
  EXPECT_EQ(received.request.selection, sent.request.selection);
  EXPECT_EQ(received.argv, sent.argv);
  EXPECT_EQ(received.environment, sent.environment);
  EXPECT_EQ(received.directory, sent.directory);
  EXPECT_EQ(received.gpu_mem_over, exec::GpuMemOver::kill);
  EXPECT_EQ(received.timeout, sent.timeout);
  EXPECT_EQ(received.grace, sent.grace);
  EXPECT_EQ(received.behind, sent.behind);
  EXPECT_EQ(received.waits_most, sent.waits_most);
}

/// As Berth said it before it knew more of a selection than the sizes of slots.
constexpr std::string_view kOldLaunch =
    R"({"jsonrpc":"2.0","method":"launch","params":{"task":3,"token":9,"resources":"gpu=1,cpu=500  ",)"
    R"("holder":"a-1/3","slot_sizes":[13,31],"argv":["x"],"set":["A=1"],"directory":"/",)"
    R"("timeout_ns":0,"grace_ns":1000000000}})";

TEST(AgentProtocol, ARunnerOfAnOlderBerthIsUnderstood) {
  const auto call = decode_call(kOldLaunch);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(std::get<exec::Launch>(*call).request.selection,
            (machine::DeviceSelection{.slot_sizes = {13, 31}}));
}

TEST(AgentProtocol, WhatAnOlderAgentKnowsOfASelectionIsSaidInItsWords) {
  exec::Launch sent = launch();
  EXPECT_EQ(revision_for(sent), 1);
  sent.request.selection = {};
  EXPECT_EQ(revision_for(sent), 0);
  EXPECT_EQ(encode(Call(sent)).find("slot_sizes"), std::string::npos);
  sent.request.selection.slot_sizes = {13, 31};
  EXPECT_EQ(revision_for(sent), 0);
  EXPECT_NE(encode(Call(sent)).find(R"("slot_sizes":[13,31],)"), std::string::npos);
}

TEST(AgentProtocol, AContainerIsForAgentsThatKnowOne) {
  exec::Launch sent = launch();
  EXPECT_EQ(encode(Call(sent)).find("image"), std::string::npos);
  sent.container = {.image = "debian:12", .network = true};
  EXPECT_EQ(revision_for(sent), 3);
  const auto received = decode_call(encode(Call(sent)));
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(std::get<exec::Launch>(*received).container.image, "debian:12");
  EXPECT_TRUE(std::get<exec::Launch>(*received).container.network);
}

TEST(AgentProtocol, AnInputIsForAgentsThatKnowOne) {
  exec::Launch sent = launch();
  sent.input = "/run/stdin";
  EXPECT_EQ(revision_for(sent), 5);
  const auto received = decode_call(encode(Call(sent)));
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(std::get<exec::Launch>(*received).input, "/run/stdin");
}

TEST(AgentProtocol, ASandboxIsForAgentsThatKnowOne) {
  exec::Launch sent = launch();
  sent.container = {.sandbox = true, .shown = {"/data", "~/venv"}};
  EXPECT_EQ(revision_for(sent), 4);
  const auto received = decode_call(encode(Call(sent)));
  ASSERT_TRUE(received) << received.error().message;
  const auto& container = std::get<exec::Launch>(*received).container;
  EXPECT_TRUE(container.sandbox);
  EXPECT_FALSE(container.network);
  EXPECT_EQ(container.shown, sent.container.shown);
}

TEST(AgentProtocol, AMetricThatIsNotFiniteOrReportedAfterACancelArrivesAsSuch) {
  const auto received = [](const exec::Metric& sent) {
    return std::get<exec::Metric>(std::get<Numbered>(*decode_answer(encode(18, sent))).message);
  };
  EXPECT_FALSE(received({{1}, {2}, "loss", 0.5}).asked_to_end);
  EXPECT_EQ(received({{1}, {2}, "loss", 0.5, true}).value, 0.5);
  EXPECT_TRUE(received({{1}, {2}, "loss", 0.5, true}).asked_to_end);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    EXPECT_FALSE(std::isfinite(received({{1}, {2}, "loss", value}).value));
}

TEST(AgentProtocol, EveryFieldOfAnEndIsHeard) {
  const exec::Ended sent{.task = {1},
                         .token = {2},
                         .cause = exec::Cause::exit_code,
                         .exit_code = 3,
                         .signal = 0,
                         .detail = "a sentence",
                         .cpu = Duration(12'345),
                         .peak_mem = 1 << 20,
                         .asked_to_end = true};
  const auto answer = decode_answer(encode(18, sent));
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Numbered>(*answer).number, 18);
  const auto& received = std::get<exec::Ended>(std::get<Numbered>(*answer).message);
  EXPECT_EQ(received.token, sent.token);
  EXPECT_EQ(received.cause, sent.cause);
  EXPECT_EQ(received.exit_code, sent.exit_code);
  EXPECT_EQ(received.detail, sent.detail);
  EXPECT_EQ(received.cpu, sent.cpu);
  EXPECT_EQ(received.peak_mem, sent.peak_mem);
  EXPECT_TRUE(received.asked_to_end);
}

TEST(AgentProtocol, ARefusalKeepsItsKind) {
  for (const auto kind : {ErrorKind::usage, ErrorKind::stale, ErrorKind::interrupted}) {
    const auto answer = decode_answer(encode(Answer(Refusal{{kind, "because"}})));
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<Refusal>(*answer).error, (Error{kind, "because"}));
  }
}

TEST(AgentProtocol, NonsenseIsRefused) {
  const std::string good = R"({"jsonrpc":"2.0","method":"cancel","params":{"token":5}})";
  ASSERT_TRUE(decode_call(good));
  for (
      const auto* line :
      {"",
       "x",
       "[]",
       "{}",
       "null",
       R"({"method":"cancel","params":{"token":5}})",
       R"({"jsonrpc":"1.0","method":"cancel","params":{"token":5}})",
       R"({"jsonrpc":"2.0","method":"cancel"})",
       R"({"jsonrpc":"2.0","method":"cancel","params":[5]})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{}})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{"token":0}})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{"token":-1}})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{"token":"5"}})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{"token":5.5}})",
       R"({"jsonrpc":"2.0","method":"cancel","params":{"token":18446744073709551615}})",
       R"({"jsonrpc":"2.0","method":"sing","params":{}})",
       R"({"jsonrpc":"2.0","method":"want_output","params":{"wanted":1}})",
       R"({"jsonrpc":"2.0","method":"hello","params":{"version":1,"epoch":1,"environment":["A"]}})",
       "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"token\":5}} x",
       R"({"jsonrpc":"2.0","method":"hello","params":{"version":1,"epoch":1,"environment":["A=€"]}})"})
    EXPECT_FALSE(decode_call(line)) << line;
  std::string no_command = encode(Call(launch()));
  no_command.replace(no_command.find("\"argv\":["),
                     no_command.find("],\"set\"") - no_command.find("\"argv\":["), "\"argv\":[");
  EXPECT_FALSE(decode_call(no_command)) << no_command;
  EXPECT_FALSE(decode_answer(R"({"jsonrpc":"2.0","id":"sing","result":{}})"));
  EXPECT_FALSE(decode_answer(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  EXPECT_FALSE(decode_answer(R"({"jsonrpc":"2.0","method":"ended","params":{"number":1,"task":1,)"
                             R"("token":1,"cause":"boredom","cpu_ns":0,"peak_mem":0}})"));
}

TEST(AgentProtocol, CutOrChangedAnywhereItIsReadOrRefused) {
  const std::string call = encode(Call(launch()));
  const std::string answer = encode(
      Answer(Welcome{1, "3", block(), {77}, std::chrono::seconds(30), true, {{{1}, {2}}}, 18}));
  for (std::size_t most = 0; most < call.size(); ++most)
    EXPECT_FALSE(decode_call(std::string_view(call).substr(0, most)));
  Rng rng(5);
  for (int round = 0; round < 5000; ++round)
    for (std::string line : {call, answer}) {
      for (std::uint64_t i = 0; i <= rng.below(3); ++i)
        line[rng.below(line.size())] = static_cast<char>(rng.below(256));
      (void)decode_call(line);
      (void)decode_answer(line);
    }
}

}  // namespace
}  // namespace berth::agent
