// A command, an experiment and a flow, which Berth carries out durably: berth/run.h. It needs the
// `berth` program, in PATH or in BERTH_BIN.
#include <berth/run.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "expect.h"

class Printer final : public berth::RunObserver {
 public:
  void on_progress(const berth::Run& run) override { states.push_back(run.state); }
  void on_task_end(const berth::Task& task) override { ended.push_back(task.label); }
  void on_output(const std::string& task, bool is_error, std::string_view bytes) override {
    if (!is_error) printed += task + ": " + std::string(bytes);
  }

  std::vector<std::string> states, ended;
  std::string printed;
};

void write(const char* file, std::string_view text) {
  std::ofstream(file) << text;
}

/// What failed is tried again, by a process of its own or by this one.
void try_again(berth::Runs& runs) {
  const auto once = value(runs.submit({.argv = {"sh", "-c", "test -e there"}, .name = "once"}));
  EXPECT(value(runs.wait(once)).state == "failed");
  write("there", "");
  value(runs.retry(once));
  EXPECT(value(runs.wait(once)).state == "done");
  EXPECT(runs.retry(once, berth::Again::file).error().kind == berth::ErrorKind::invalid);
  EXPECT(value(runs.reopen(once)).empty());
  EXPECT(value(runs.reopen(once, true)).at(0) == "1");
  EXPECT(value(runs.drive(once)).state == "done" && value(runs.tasks(once)).at(0).attempts == 3);
}

/// What has no function of its own is a call of the HTTP interface.
void calls(berth::Runs& runs) {
  write("tune.yaml",
        "name: tune\nrun: echo ::berth loss={x}\nparams: {x: [2, 1]}\n"
        "goal: {metric: loss, direction: min}\n");
  const auto name = value(runs.submit_file("tune.yaml"));
  EXPECT(value(runs.wait(name)).state == "done");
  EXPECT(value(runs.call("GET", "/v1/runs/" + name + "/best")).contains("\"x\":1"));
  EXPECT(value(runs.call("GET", "/v1/tasks/" + name + "%2F1/why")).contains("done"));
  EXPECT(
      value(runs.call("POST", "/v1/run-plan", R"({"path": "tune.yaml"})")).contains("\"tasks\":2"));
  EXPECT(value(runs.call("GET", "/v1/machine")).contains("\"cpu\""));
  EXPECT(runs.call("GET", "/v1/runs/no-1/best").error().kind == berth::ErrorKind::not_found);
}

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// `on_end` and `notify` of a flow that this process drives work as with `berth run`.
void notifies(berth::Runs& runs) {
  write("ends.yaml",
        "name: ends\n"
        "notify: {run: 'echo $BERTH_EVENT >> notified', on: end}\n"
        "on_end: echo $BERTH_RUN_STATE; echo $BERTH_RUN_STATE > ended\n"
        "steps: {one: {run: 'true'}}\n");
  struct Notes final : berth::RunObserver {
    void on_note(const std::string& note) override { text += note; }
    std::string text;
  } notes;
  const auto name = value(runs.record_file("ends.yaml", {.labels = {{"team", "vision"}}}));
  EXPECT(value(runs.drive(name, {.observer = &notes})).state == "done");
  EXPECT(text_of("ended") == "done\n" && notes.text.find("done") != std::string::npos);
  for (int i = 0; i < 2000 && text_of("notified").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT(text_of("notified") == "end\n");
  value(runs.remove(name));
}

/// A command, and what it printed.
void prints(berth::Runs& runs) {
  berth::Command hello{.argv = {"sh", "-c", "echo \"hello $NAME\"; exit 3"}};
  hello.resources.set("cpu", 500);
  hello.environment = {{"NAME", "world"}};
  const auto said = value(runs.submit(hello));
  EXPECT(value(runs.wait(said)).state == "failed");
  EXPECT(value(runs.tasks(said)).at(0).exit_code == 3);
  EXPECT(value(runs.output(said, "1")) == "hello world\n");
  EXPECT(berth::Runs::open({.state_directory = {}, .program = "/no/berth"})
             ->submit(hello)
             .error()
             .kind == berth::ErrorKind::not_found);
}

int main() {
  auto runs = value(berth::Runs::open());
  prints(runs);

  // An experiment, followed until it ends.
  write("sweep.yaml",
        "name: square\n"
        "run: echo \"::berth loss=$(({x} * {x}))\"\n"
        "params: {x: [3, -1, 2]}\n"
        "goal: {metric: loss, direction: min}\n");
  const auto sweep = value(runs.submit_file("sweep.yaml", {.parallel = 2}));
  EXPECT(sweep == "square-1");
  Printer printer;
  const auto done = value(runs.follow(sweep, printer));
  EXPECT(done.state == "done" && done.counts.done == 3 && done.ended);
  EXPECT(printer.ended.size() == 3 && printer.states.back() == "done");
  EXPECT(printer.printed.find("loss=1") != std::string::npos);
  for (const auto& task : value(runs.tasks(sweep)))
    EXPECT(task.metrics.at(0).second ==
           std::stod(task.params.at(0).second) * std::stod(task.params.at(0).second));

  // A flow.
  write("flow.yaml",
        "name: count\n"
        "params: {more: two}\n"
        "steps:\n"
        "  words:\n"
        "    run: echo one {more} > {out.w}\n"
        "    out: {w: words.txt}\n"
        "  sum:\n"
        "    run: wc -w < {in.w} > {out.n}\n"
        "    in: {w: words.w}\n"
        "    out: {n: sum.txt}\n");
  const auto flow =
      value(runs.wait(value(runs.submit_file("flow.yaml", {.set = {{"more", "2 3"}}}))));
  EXPECT(flow.state == "done" && flow.kind == "flow" && flow.counts.done == 2);
  std::string sum;
  std::ifstream("sum.txt") >> sum;
  EXPECT(sum == "3");

  // A run is stopped, gone on with, and removed.
  const auto sleep = value(runs.submit({.argv = {"sleep", "60"}, .name = "nap"}));
  EXPECT(value(runs.wait(sleep, std::chrono::milliseconds(1))).goes_on());
  value(runs.stop(sleep));
  EXPECT(value(runs.find(sleep)).state == "stopped");
  value(runs.resume(sleep));
  EXPECT(value(runs.find(sleep)).goes_on());
  EXPECT(!runs.remove(sleep));
  value(runs.stop(sleep));
  value(runs.remove(sleep));
  EXPECT(value(runs.list()).size() == 3);

  try_again(runs);
  calls(runs);
  notifies(runs);

  const auto wrong = runs.submit_file("no-such.yaml");
  EXPECT(!wrong && wrong.error().kind == berth::ErrorKind::not_found);
  EXPECT(runs.find("nap-7").error().kind == berth::ErrorKind::not_found);
}
