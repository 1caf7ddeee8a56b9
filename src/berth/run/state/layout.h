// The names of what lies in the state directory and in the directories of its runs; all of it is
// the user's alone. Files of one part of Berth only, such as a run's logs, are named there.
#pragma once

#include <fmt/format.h>

#include <string>

#include "berth/base/ids.h"

namespace berth::run {

// In the state directory.

/// The SQLite store.
inline std::string database_file(const std::string& state) {
  return state + "/berth.db";
}
/// Names the database that the runs are in instead, once there is one.
inline std::string database_marker(const std::string& state) {
  return state + "/database";
}
/// Each run has a directory of its name here.
inline std::string runs_directory(const std::string& state) {
  return state + "/runs";
}
/// Images of containers as files, for the engines that want such.
inline std::string images_directory(const std::string& state) {
  return state + "/images";
}
/// The object store of files that flows keep and that go to other machines.
inline std::string cache_directory(const std::string& state) {
  return state + "/cache";
}

// In the directory of a run.

/// The run's runner holds a lock on this file.
inline std::string lock_file(const std::string& run) {
  return run + "/lock";
}
/// What a runner in the background prints.
inline std::string runner_log(const std::string& run) {
  return run + "/runner.log";
}
/// The environment of the run's submission (recorded_environment.h).
inline std::string environment_file(const std::string& run) {
  return run + "/environment";
}
/// What the run's tasks printed; an attempt that prints much has a file beside it (log_file.h).
inline std::string output_log(const std::string& run) {
  return run + "/output.log";
}
/// What was asked of the clusters, for berth trace.
inline std::string trace_file(const std::string& run) {
  return run + "/trace.json";
}
/// Of a run on other machines: why nothing of it runs, as its runner found; "" while something
/// does.
inline std::string waits_file(const std::string& run) {
  return run + "/waits";
}
/// A line for each host that says how many files of trials were deleted there.
inline std::string deleted_files_file(const std::string& run) {
  return run + "/deleted-files";
}
/// The lease directories of the agents that work for the run on this machine.
inline std::string agents_directory(const std::string& run) {
  return run + "/agents";
}
/// Where an attempt of a flow's task runs.
inline std::string task_directory(const std::string& run, TaskNumber number, Token token) {
  return fmt::format("{}/tasks/{}-{}", run, number.value, token.value);
}
/// The devices as the run's first runner found them, for the process that watches their health.
inline std::string devices_file(const std::string& run) {
  return run + "/devices.json";
}
/// The answers for trials of a passive run, a file each.
inline std::string answers_directory(const std::string& run) {
  return run + "/answers";
}
/// What the processes of a study saw of each other's leases (lease_watch.h).
inline std::string leases_file(const std::string& run) {
  return run + "/leases";
}
/// Points that somebody added to the run's search, a file each.
inline std::string enqueued_directory(const std::string& run) {
  return run + "/enqueued";
}
/// The names of the clusters that the run is on, a line each, the main one first.
inline std::string cluster_names_file(const std::string& run) {
  return run + "/clusters";
}
/// Clusters that only this run knows, as in the file of clusters.
inline std::string own_clusters_file(const std::string& run) {
  return run + "/clusters.yaml";
}
/// Is there once somebody has agreed that a large folder is sent to other machines.
inline std::string confirmed_file(const std::string& run) {
  return run + "/send_large";
}
/// Exists when the next runner of the run may replace outputs that are protected or were edited.
inline std::string overwrite_file(const std::string& run) {
  return run + "/overwrite";
}
/// Lists the protected outputs that this run put at their places, so that a task may be repeated
/// whose end a killed runner did not record.
inline std::string protected_file(const std::string& run) {
  return run + "/protected";
}
/// Where each worker on another machine is, for the next runner: a directory each.
inline std::string remote_workers_directory(const std::string& run) {
  return run + "/outposts";
}

}  // namespace berth::run
