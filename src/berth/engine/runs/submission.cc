#include "berth/engine/runs/submission.h"

#include "berth/base/text.h"
#include "berth/engine/runs/auptimizer_document.h"
#include "berth/machine/enclosing_task.h"
#include "berth/run/drive/images.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/drive/runner.h"
#include "berth/run/flows/flow_plan.h"
#include "berth/run/trials/search_input.h"

namespace berth::engine {
namespace {

template <class Value>
void set_given(const std::optional<Value>& given, Value& value) {
  if (given) value = *given;
}

void apply_devices(const DeviceOverrides& devices, machine::DeviceSelection& selection) {
  if (!devices.slot_sizes.empty()) selection.slot_sizes = devices.slot_sizes;
  set_given(devices.memory_min, selection.memory_min);
  set_given(devices.policy, selection.policy);
  set_given(devices.objective, selection.objective);
  if (!devices.required.empty()) selection.required = devices.required;
}

/// Sets in the program what the request says.
Status apply(const RunRequest& request, experiment::Program& program) {
  if (!request.name.empty()) {
    if (!experiment::valid_name(request.name))
      return fail(ErrorKind::invalid,
                  "{}name: expected letters, digits, '_', '.' and '-', at most 64, got '{}'",
                  request.option_prefix, clip(request.name));
    program.name = request.name;
  }
  for (const auto& [name, value] : request.labels)
    BERTH_TRY(exec::set_label(name, value, program.labels));
  program.notify.insert(program.notify.end(), request.notify.begin(), request.notify.end());
  if (program.notify.size() > exec::kMostNotify)
    return fail(ErrorKind::invalid, "{}notify: expected at most {}, with those of the file",
                request.option_prefix, exec::kMostNotify);
  bool no_devices = false;
  for (const auto& [resource, amount] : request.resources) {
    program.resources.set(resource, amount);
    no_devices = no_devices || (resource == berth::name(Known::gpu) && amount == 0);
  }
  apply_devices(request.devices, program.selection);
  BERTH_TRY(machine::imply_devices(program.selection, no_devices, program.resources));
  set_given(request.timeout, program.timeout);
  set_given(request.gpu_mem_over, program.gpu_mem_over);
  set_given(request.retain, program.retain);
  set_given(request.allow_failures, program.allow_failures);
  set_given(request.enforce, program.enforce);
  if (request.retries > 0) program.retries = request.retries;
  if (request.priority != 0) program.priority = request.priority;
  if (request.parallel > 0) program.parallel = request.parallel;
  return {};
}

/// The tasks of a flow declare their resources and inputs themselves.
Status check_fits_flow(const RunRequest& request) {
  if (!request.resources.empty() || request.devices != DeviceOverrides{} || request.enforce)
    return fail(ErrorKind::invalid,
                "{}: declare the resources of a flow's task at its step, with `resources`",
                request.file);
  if (!request.input.empty())
    return fail(ErrorKind::invalid,
                "{}stdin: {} is a flow, whose tasks read files: declare them at the step as `in`:",
                request.option_prefix, request.file);
  return {};
}

Status read_flow(os::Env& env, const RunRequest& request, std::string text,
                 Submission& submission) {
  run::FlowProgram program;
  program.options = request.flow;
  program.text = std::move(text);
  program.file = request.file;
  BERTH_TRY(run::take_parts(env, submission.directory, program));
  BERTH_TRY(check_fits_flow(request));
  BERTH_TRY(run::keep_reading(program));
  const flow::Flow& flow = program.reading->flow;
  experiment::Program given;
  given.labels = flow.labels;
  given.notify = flow.notify;
  BERTH_TRY(apply(request, given));
  submission.clusters.names = flow.clusters;
  program.labels = std::move(given.labels);
  program.notify = std::move(given.notify);
  program.name = given.name.empty() ? flow.name : given.name;
  program.parallel = given.parallel;
  program.outlive = true;
  program.retain = given.retain;
  program.priority = given.priority;
  program.timeout = request.timeout;
  if (request.retries > 0) program.retries = request.retries;
  program.allow_failures = request.allow_failures;
  program.gpu_mem_over = request.gpu_mem_over;
  program.image = request.image;
  program.overwrite = request.overwrite;
  set_given(request.cache, program.cache);
  submission.program = std::move(program);
  return {};
}

/// Experiments and commands have no cached tasks, containers or targets.
Status check_fits_trials(const RunRequest& request) {
  const std::string what = request.file.empty() ? "a command" : request.file;
  if (!request.image.empty())
    return fail(ErrorKind::invalid,
                "{}image: only the tasks of a flow run in containers, and {} is not a flow",
                request.option_prefix, what);
  if (request.cache)
    return fail(ErrorKind::invalid,
                "{}cache: only the tasks of a flow are cached, and {} is not a flow",
                request.option_prefix, what);
  if (request.overwrite || request.flow != flow::FlowOptions{})
    return fail(ErrorKind::invalid,
                "targets, {0}set, {0}params, {0}force, {0}until, {0}only and {0}overwrite are for "
                "flows, and {1} is not a flow",
                request.option_prefix, what);
  return {};
}

Result<experiment::Program> read_auptimizer(os::Env& env, const RunRequest& request,
                                            std::string_view text, Submission& submission) {
  const std::string& file = request.file;
  BERTH_ASSIGN(auto read, read_auptimizer_document(env, text, file, submission.directory,
                                                   !request.clusters.empty()));
  for (const auto& note : read.notes) submission.notes.push_back(fmt::format("{}: {}", file, note));
  if (!read.settings.empty() && read.cluster_names.empty() && request.clusters.empty())
    return fail(ErrorKind::invalid,
                "{}: resource: which machines? Name them as {}_mapping in .aup/env.ini, or run it "
                "with {}cluster NAME",
                file, read.resource, request.option_prefix);
  submission.clusters.own = read.clusters;
  submission.clusters.names = read.cluster_names;
  return std::move(read.program);
}

Status read_trials(os::Env& env, const RunRequest& request, std::string_view text,
                   Submission& submission) {
  BERTH_TRY(check_fits_trials(request));
  experiment::Program program;
  std::string input = request.input;
  if (!input.empty() && input != "-") {
    auto path = env.real_path(input);
    if (!path)
      return std::unexpected(within(request.option_prefix + "stdin", std::move(path).error()));
    input = *std::move(path);
  }
  if (request.file.empty()) {
    program = run::program_of_command(request.command);
    program.environment = request.environment;
  } else if (experiment::is_auptimizer(text)) {
    BERTH_ASSIGN(program, read_auptimizer(env, request, text, submission));
  } else {
    BERTH_ASSIGN(program, experiment::read_program(text, request.file));
    submission.clusters.names = program.clusters;
  }
  BERTH_TRY(apply(request, program));
  if (!input.empty()) {
    if (program.passive)
      return fail(ErrorKind::invalid, "{}stdin: passive trials have no process that could read it",
                  request.option_prefix);
    program.input = std::move(input);
    program.input_line = 0;
  }
  program.outlive = true;
  BERTH_TRY(run::read_sequence(env, submission.directory, program));
  submission.program = std::move(program);
  return {};
}

Status check_flow(run::Context& context, Submission& submission, const Note& note) {
  auto& flow = std::get<run::FlowProgram>(submission.program);
  if (!submission.warm_start.empty())
    return fail(ErrorKind::invalid, "{}warm-start: only for experiments, and this is a flow",
                submission.option_prefix);
  const bool here = submission.runs_here();
  BERTH_ASSIGN(const auto notes, run::check_flow(context, flow, submission.directory, here));
  for (const auto& each : notes) note(each);
  BERTH_ASSIGN(submission.missing_images,
               run::find_images(context, flow, submission.directory, here));
  return {};
}

Status check_trials(run::Context& context, Submission& submission, const Note& note) {
  auto& program = std::get<experiment::Program>(submission.program);
  if (!submission.warm_start.empty())
    BERTH_TRY(run::begin_with(context, submission.warm_start, program));
  for (const auto& each : program.notes) note(each);
  if (!submission.clusters.names.empty() && program.passive)
    return fail(ErrorKind::invalid, "{}cluster: passive trials run where they are asked for",
                submission.option_prefix);
  if (!submission.runs_here())
    return run::check_input_of(*context.env, program, submission.directory, submission.file);
  BERTH_TRY(run::divide_gpus(context, program));
  BERTH_TRY(run::divide_cores(context, program));
  return run::check_program(context, program, submission.directory, submission.file);
}

/// Remote machines download images themselves.
Status download_images(run::Context& context, Submission& submission, const Note& note) {
  if (submission.missing_images.empty()) return {};
  auto& flow = std::get<run::FlowProgram>(submission.program);
  if (submission.runs_here())
    return run::pull_images(context, flow, submission.missing_images, note);
  for (const auto& image : submission.missing_images)
    note(
        fmt::format("image {} is not on this machine: the digests of its tasks contain its name, "
                    "and each machine uses the image of that name that it has",
                    image));
  return {};
}

}  // namespace

Result<Submission> read_submission(os::Env& env, const RunRequest& request) {
  Submission submission{.program = {}, .directory = {}, .file = request.file};
  submission.runs_elsewhere = request.runs_elsewhere;
  submission.warm_start = request.warm_start;
  submission.option_prefix = request.option_prefix;
  std::string text, folder = request.directory.empty() ? "." : request.directory;
  if (request.text) {
    text = *request.text;
  } else if (!request.file.empty()) {
    BERTH_ASSIGN(text, env.read_file(request.file, flow::kMostFlowBytes));
    // A pipe has no directory: its tasks start in the working directory.
    if (const auto path = env.real_path(request.file))
      folder = path->substr(0, path->find_last_of('/') + 1);
  }
  BERTH_ASSIGN(submission.directory, env.real_path(folder));
  if (!request.file.empty() && run::is_flow(text))
    BERTH_TRY(read_flow(env, request, std::move(text), submission));
  else
    BERTH_TRY(read_trials(env, request, text, submission));
  submission.clusters_are_from_file = request.clusters.empty();
  if (!submission.clusters_are_from_file) submission.clusters = {request.clusters, ""};
  submission.clusters.confirmed = request.send_large;
  return submission;
}

Status check(run::Context& context, Submission& submission, const Note& note) {
  for (const auto& each : submission.notes) note(each);
  if (auto status = run::check_clusters(*context.env, submission.clusters); !status)
    return submission.clusters_are_from_file
               ? std::unexpected(within(submission.file + ": cluster", std::move(status).error()))
               : status;
  return submission.flow() != nullptr ? check_flow(context, submission, note)
                                      : check_trials(context, submission, note);
}

Result<store::RunRecord> submit(run::Context& context, Submission& submission, const Note& note) {
  auto* flow = std::get_if<run::FlowProgram>(&submission.program);
  if (flow != nullptr) BERTH_TRY(run::check_protected(context, *flow, submission.directory));
  BERTH_TRY(download_images(context, submission, note));
  BERTH_ASSIGN(const auto record,
               flow != nullptr ? run::submit(context, *flow, submission.directory)
                               : run::submit(context, *submission.trials(), submission.directory));
  BERTH_TRY(run::keep_clusters(context, record, submission.clusters));
  const auto enclosing = machine::enclosing_task_note(*context.env);
  if (!enclosing.empty() && submission.runs_here())
    note(fmt::format("{}: {}", record.name, enclosing));
  return record;
}

}  // namespace berth::engine
