// A flow's program and its results come back from the store as they were.
#include <gtest/gtest.h>

#include "berth/run/flows/flow_run.h"

namespace berth::run {
namespace {

TEST(FlowProgram, ComesBackAsItWas) {
  FlowProgram program;
  program.text = "steps: {a: {run: ls}}";
  program.file = "odd \xff%41.yaml";
  program.name = "a";
  program.cache = CacheMode::read;
  program.timeout = std::chrono::seconds(3);
  program.gpu_mem_over = exec::GpuMemOver::kill;
  program.answers.exists = {{"x", true}, {"100%", false}};
  program.answers.glob = {{"*", {"\xff\n", "b"}}, {"none*", {}}};
  program.answers.variable = {{"A", "\xc3"}, {"B", std::nullopt}};
  const auto back = flow_program(to_json_text(program));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->text, program.text);
  EXPECT_EQ(back->file, program.file);
  EXPECT_EQ(back->cache, program.cache);
  EXPECT_EQ(back->timeout, program.timeout);
  EXPECT_EQ(back->retries, program.retries);
  EXPECT_EQ(back->gpu_mem_over, program.gpu_mem_over);
  EXPECT_EQ(read_flow(*back)->steps[0].gpu_mem_over, exec::GpuMemOver::kill);
  EXPECT_EQ(back->answers.exists, program.answers.exists);
  EXPECT_EQ(back->answers.glob, program.answers.glob);
  EXPECT_EQ(back->answers.variable, program.answers.variable);
  for (const auto* text : {"", "{}", "[]", R"({"flow":1})"})
    EXPECT_EQ(flow_program(text).error().kind, ErrorKind::corrupt) << text;
}

TEST(FlowProgram, OneOfBeforeTheStrictShellGoesOnWithItsOwn) {
  FlowProgram program;
  program.text = "steps: {a: {run: x | y}}";
  const auto shell_of = [](std::string_view json) {
    return read_flow(flow_program(json).value()).value().steps[0].run.shell;
  };
  std::string json = to_json_text(program);
  EXPECT_EQ(shell_of(json), exec::words_of_shell({}));
  const std::string stored = R"("shell":["bash","--norc","-euo","pipefail","-c"],)";
  ASSERT_NE(json.find(stored), std::string::npos) << json;
  json.erase(json.find(stored), stored.size());
  EXPECT_EQ(shell_of(json), (flow::Words{"/bin/sh", "-c"}));
}

TEST(FlowProgram, OutputsComeBackAsTheyWere) {
  fileset::Fileset one, other;
  one.entries.push_back({".", fileset::Entry::Kind::file, sha256("x"), 1, {}});
  other.entries.push_back({"a\xff", fileset::Entry::Kind::file, sha256("y"), 1, {}});
  other.entries.push_back({"b", fileset::Entry::Kind::link, {}, 0, "a\xff"});
  const std::vector<fileset::Fileset> outputs{one, other};
  const std::string text = to_text(outputs);
  EXPECT_EQ(parse_outputs(text), outputs);
  EXPECT_EQ(parse_outputs(""), std::vector<fileset::Fileset>{});
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    const auto torn = parse_outputs(text.substr(0, cut));
    EXPECT_TRUE(!torn || *torn == std::vector{one}) << cut;
  }
}

}  // namespace
}  // namespace berth::run
