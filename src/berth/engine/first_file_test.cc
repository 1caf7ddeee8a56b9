#include "berth/engine/first_file.h"

#include <gtest/gtest.h>

#include "berth/experiment/program.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/missing_limits.h"
#include "berth/flow/flow.h"

namespace berth::engine {
namespace {

constexpr std::string_view kScript = R"py(
p.add_argument("--lr", type=float, default=0.05)
p.add_argument('-b', '--batch-size', default = 32, type = int, help="1, 2")
p.add_argument("--net", choices=["deep", "wide"], default="deep")
p.add_argument("--drop", type=float, default=0.5, help="part (of 1)")
p.add_argument("--out", default="x.csv")
p.add_argument("positional")
p.add_argument("--lr")
p.add_argument("--computed", choices=[n for n in NETS])
p.add_argument("--index", type=int, default=4)
p.add_argument("--epochs", type=int, default=10)
p.add_argument("--dropout-rate", type=float, default=0.0)
p.add_argument("--momentum", type=float, default=0.9)
p.add_argument("--temperature", type=float, default=20.0)
@click.option("--depth", default=1, type=int)
print(f"::berth epoch={e} val_loss={l:.3f} accuracy={a}")
)py";

std::string values(const std::string& option) {
  for (const auto& each : options_of_script(kScript))
    if (each.option == option) return each.name + ": " + each.values;
  return "none";
}

TEST(FirstFile, OptionsOfAScript) {
  EXPECT_EQ(values("--lr"), "lr: {min: 0.005, max: 0.5, scale: log}");
  EXPECT_EQ(values("--batch-size"), "batch_size: [16, 32, 64]");
  EXPECT_EQ(values("--net"), R"(net: ["deep", "wide"])");
  EXPECT_EQ(values("--drop"), "drop: {min: 0, max: 0.5}");
  EXPECT_EQ(values("--out"), "out: ");
  EXPECT_EQ(values("--computed"), "computed: ");
  EXPECT_EQ(values("--index"), "none") << "a name that Berth has itself";
  EXPECT_EQ(values("--depth"), "depth: [1, 2, 3]");
  EXPECT_EQ(options_of_script(kScript).size(), 11U);
  for (const char* cut : {"add_argument(", "add_argument(\"--", "add_argument(\"--a\", choices=["})
    EXPECT_TRUE(options_of_script(cut).empty()) << cut;
}

TEST(FirstFile, ARangeFitsTheMeaningOfItsOption) {
  EXPECT_EQ(values("--epochs"), "epochs: ");
  EXPECT_EQ(values("--dropout-rate"), "dropout_rate: {min: 0, max: 0.5}");
  EXPECT_EQ(values("--momentum"), "momentum: {min: 0.8, max: 0.99}");
  EXPECT_EQ(values("--temperature"), "temperature: {min: 2, max: 200, scale: log}");
}

TEST(FirstFile, MetricOfAScript) {
  EXPECT_EQ(metric_of_script(kScript), "val_loss");
  EXPECT_EQ(metric_of_script("echo ::berth step=1\n::berth loss=2"), "step");
  EXPECT_EQ(metric_of_script("print('::berth')"), "");
  EXPECT_EQ(metric_of_script("::berth a==b {x=}"), "a");
}

TEST(FirstFile, ExperimentsCanBeRead) {
  const Script script{"train.py", "python3 train.py", options_of_script(kScript),
                      metric_of_script(kScript)};
  const auto text = first_experiment("mine", script);
  const auto program = experiment::read_program(text, "sweep.yaml");
  ASSERT_TRUE(program) << program.error().message << text;
  EXPECT_EQ(program->run.text,
            "python3 train.py --lr {lr} --batch-size {batch_size} --net {net} --drop {drop} "
            "--dropout-rate {dropout_rate} --momentum {momentum} --temperature {temperature} "
            "--depth {depth}");
  EXPECT_EQ(program->goal->metric, "val_loss");
  EXPECT_FALSE(program->goal->maximize);
  EXPECT_TRUE(program->notes.empty());
  EXPECT_NE(text.find("# Left as they are: --out, --computed, --epochs."), text.npos);

  EXPECT_TRUE(experiment::read_program(first_experiment("x", std::nullopt), "s.yaml"));
  const auto bare = experiment::read_program(first_experiment("x", Script{"a", "./a"}), "s.yaml");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_FALSE(bare->goal);
}

TEST(FirstFile, FleetsCanBeRead) {
  const std::array documents{fleet::Document{"fleet.json", first_fleet()}};
  const auto reading = fleet::read_documents(documents);
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_TRUE(reading->notes.empty());
  EXPECT_TRUE(fleet::dangling_names(reading->system).empty());
  ASSERT_EQ(reading->system.servers.size(), 1U);
  EXPECT_GT(reading->system.servers.begin()->second.max_queue, 0);
  EXPECT_TRUE(fleet::notes_on_missing_limits(reading->system).empty());
}

}  // namespace
}  // namespace berth::engine
