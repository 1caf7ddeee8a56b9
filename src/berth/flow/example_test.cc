// The example, from its file to its results, by the least runner that there can be: both faces as a
// runner uses them. A second run finds every task in the cache; a changed input runs what depends
// on it, and the records tell why.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "berth/base/text.h"
#include "berth/flow/flow.h"
#include "berth/testing/posix.h"
#include "paths.h"

namespace berth::flow {
namespace {

namespace fs = std::filesystem;

struct Recorded {
  std::string record;
  std::vector<fileset::Fileset> outputs;
};

class FlowExample : public os::PosixTest {
 protected:
  FlowExample() : store_(*fileset::ObjectStore::open(*env_, path("store"))) {
    fs::create_directories(path("home/data"));
  }

  World world() {
    return {
        [this](const std::string& each) { return env_->status(place(each)).has_value(); },
        [this](const std::string& pattern) { return fileset::glob(*env_, path("home"), pattern); },
        [this](const std::string& name) { return env_->variable(name); }};
  }
  std::string place(const std::string& each) const {
    return each.starts_with('/') ? each : path("home/" + each);
  }

  /// Runs the flow; returns the names of the tasks that were not in the cache.
  Words run(const std::string& text) {
    Words executed;
    auto graph = Graph::build(read_flow(text, "f.yaml").value(), world()).value();
    for (;;) {
      const auto ready = graph.take_ready().value();
      for (const auto task : ready.run) {
        const auto spec = graph.spec(task).value();
        std::vector<Digest> inputs;
        std::vector<fileset::Fileset> contents;
        std::vector<fileset::Hold> holds;
        for (const auto& input : spec.inputs) {
          contents.push_back(input.content);
          if (!input.world.empty()) {
            auto captured = store_.capture(place(input.world), fileset::Expect::stored).value();
            contents.back() = captured.fileset;
            holds.push_back(std::move(captured.hold));
          }
          inputs.push_back(fileset::digest(contents.back()));
        }
        const std::string text_of_it = record(spec, inputs);
        auto found = cache_.find(sha256(text_of_it));
        if (found == cache_.end()) {
          executed.push_back(spec.name);
          found = cache_.emplace(sha256(text_of_it), Recorded{text_of_it, execute(spec, contents)})
                      .first;
        }
        records_[spec.name] = text_of_it;
        for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
          const auto to = path("home/" + spec.outputs[i].path);
          fs::create_directories(fs::path(to).parent_path());
          EXPECT_TRUE(store_.publish(found->second.outputs[i], to, fileset::Publish::copies));
        }
        EXPECT_TRUE(graph.finish(task, found->second.outputs));
      }
      if (ready.run.empty()) break;
    }
    EXPECT_TRUE(graph.done());
    return executed;
  }

  std::vector<fileset::Fileset> execute(const TaskSpec& spec,
                                        const std::vector<fileset::Fileset>& contents) {
    const std::string task = path("task");
    EXPECT_TRUE(fileset::remove_all(*env_, task));
    fs::create_directory(task);
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const auto to = task + "/" + spec.inputs[i].place;
      fs::create_directories(fs::path(to).parent_path());
      EXPECT_TRUE(store_.publish(contents[i], to, fileset::Publish::links));
    }
    for (const auto& output : spec.outputs) {
      const auto to = fs::path(task + "/" + output.path);
      fs::create_directories(output.directory ? to : to.parent_path());
    }
    auto start = command(spec.command);
    start.directory = task;
    const auto finished = os::PosixTest::run(start);
    EXPECT_EQ(finished.status.code, 0) << spec.name << ": " << finished.err;
    std::vector<fileset::Fileset> outputs;
    for (const auto& output : spec.outputs) {
      auto captured = store_.capture(task + "/" + output.path, fileset::Expect::fresh).value();
      outputs.push_back(captured.fileset);
      holds_.push_back(std::move(captured.hold));
    }
    return outputs;
  }

  fileset::ObjectStore store_;
  std::map<Digest, Recorded> cache_;
  std::map<std::string, std::string> records_;
  std::vector<fileset::Hold> holds_;
};

TEST_F(FlowExample, LicencesTwiceAndWithAChangedInput) {
  std::string text =
      env_->read_file(tests::source_path("examples/flow/licences.yaml"), 1 << 20).value();
  const std::string from = "/usr/share/common-licenses/*";
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), "data/*");
  const auto write = [&](const std::string& name, std::string_view words) {
    std::ofstream(path("home/data/" + name)) << words;
  };
  write("A", "the free software is the free work of the free");
  write("B", "free as in the freedom of software");
  write("C", "work work work the software free");
  EXPECT_EQ(run(text), (Words{"words/A", "words/B", "words/C", "vocabulary", "common", "top"}));
  EXPECT_EQ(env_->read_file(path("home/in-every-licence.txt"), 4096), "5 free\n3 software\n");
  EXPECT_EQ(env_->read_file(path("home/top-20.txt"), 4096),
            "free 5 3\nwork 4 2\nsoftware 3 3\nfreedom 1 1\n");
  EXPECT_EQ(run(text), Words{}) << "the second time, nothing";
  const auto before = records_;
  write("B", "free as in the freedom of softwares");
  EXPECT_EQ(run(text), (Words{"words/B", "vocabulary", "common", "top"}));
  Words why;
  const auto differences = changes(before.at("vocabulary"), records_.at("vocabulary")).value();
  for (const auto& change : differences) why.push_back(to_string(change));
  EXPECT_EQ(why, Words{"input counts/B.txt changed"});
  std::ofstream(path("home/keep-top")) << "";
  EXPECT_EQ(run(text), Words{});
  text.replace(text.find("least: 4"), 8, "least: 9");
  EXPECT_EQ(run(text).size(), 5U) << "the counts, and what is made of them; not the top";
}

TEST_F(FlowExample, TheRealLicences) {
  if (!fs::exists("/usr/share/common-licenses/GPL-3")) GTEST_SKIP() << "no Debian";
  const auto text =
      env_->read_file(tests::source_path("examples/flow/licences.yaml"), 1 << 20).value();
  EXPECT_GE(run(text).size(), 13U);
  EXPECT_EQ(run(text), Words{});
}

}  // namespace
}  // namespace berth::flow
