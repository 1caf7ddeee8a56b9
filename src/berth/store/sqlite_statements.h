// The SQL of sqlite_store.cc: every statement of the store but the schema's, and how the columns
// of a run are read.
#pragma once

#include <string>

#include "berth/store/sqlite_database.h"

namespace berth::store {

/// "SELECT" the columns that read_run() reads, followed by `rest`.
inline std::string select_run(const char* rest) {
  return std::string(
             "SELECT id, name, kind, directory, priority, state, created_ns, started_ns, ended_ns,"
             " error, epoch, runner_pid, runner_started_at, result, phase, alloc, tries,"
             " last_try_ns,"
             " waiting, running, done, cached, skipped, failed, stopped ") +
         rest;
}

/// The columns of a run; `more` are those that the query has after them.
template <class... More>
void read_run(Query& query, RunRecord& run, More&... more) {
  Counts& n = run.counts;
  query.read(run.id, run.name, run.kind, run.directory, run.priority, run.state, run.created,
             run.started, run.ended, run.error, run.epoch, run.runner_pid, run.runner_started_at,
             run.result, run.phase, run.alloc, run.tries, run.last_try, n.waiting, n.running,
             n.done, n.cached, n.skipped, n.failed, n.stopped, more...);
}

/// Prepared once, when the store is opened.
struct PreparedStatements : Transaction::Statements {
  using Transaction::Statements::Statements;

  SQLite::Statement next_number{
      db,
      "INSERT INTO name_counter (name, issued) VALUES (?1, 1)"
      " ON CONFLICT (name) DO UPDATE SET issued = issued + 1 RETURNING issued"};
  SQLite::Statement add_run{db,
                            "INSERT INTO run (name, kind, directory, priority, created_ns, waiting)"
                            " VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id"};
  SQLite::Statement add_spec{db, "INSERT INTO run_spec (run_id, spec_json) VALUES (?1, ?2)"};
  SQLite::Statement add_task{
      db, "INSERT INTO task (run_id, number, label, params_json) VALUES (?1, ?2, ?3, ?4)"};
  SQLite::Statement remove_run{db, "DELETE FROM run WHERE id = ?1"};

  SQLite::Statement next_epoch{
      db,
      "UPDATE run SET epoch = epoch + 1, runner_pid = ?2, runner_started_at = ?3,"
      " last_token = max(last_token, (epoch + 1) << 32),"
      " waiting = waiting + run.running + stopped - still.running, running = still.running, "
      "stopped = 0"
      " FROM (SELECT count(*) AS running FROM task WHERE run_id = ?1 AND state = 'running') AS "
      "still"
      " WHERE id = ?1"};
  SQLite::Statement end_lost_attempts{
      db,
      "UPDATE attempt SET ended_ns = ?2, cause = 'runner lost' FROM task"
      " WHERE task.run_id = ?1 AND task.state = 'running' AND attempt.run_id = ?1"
      " AND attempt.task = task.number AND attempt.token = task.token"
      " AND task.token NOT IN (SELECT value FROM json_each(?3))"};
  SQLite::Statement wake_tasks{
      db,
      "UPDATE task SET state = 'waiting' WHERE run_id = ?1 AND (state = 'stopped' OR"
      " (state = 'running' AND token NOT IN (SELECT value FROM json_each(?2))))"};

  SQLite::Statement run_marks{db, "SELECT last_token, metrics_seen FROM run WHERE id = ?1"};
  SQLite::Statement mark_run{
      db,
      "UPDATE run SET last_token = ?2, metrics_seen = ?3, waiting = waiting + ?4,"
      " running = running + ?5, done = done + ?6, cached = cached + ?7,"
      " skipped = skipped + ?8, failed = failed + ?9, stopped = stopped + ?10 WHERE id = ?1"};
  SQLite::Statement move_run{
      db,
      "UPDATE run SET state = ?2, error = ?3, result = ?5,"
      " started_ns = CASE WHEN ?2 = 'running' THEN coalesce(started_ns, ?4) ELSE started_ns END,"
      " ended_ns = CASE WHEN ?2 IN ('waiting', 'running') THEN NULL ELSE ?4 END WHERE id = ?1"};
  SQLite::Statement step_run{
      db, "UPDATE run SET phase = ?2, alloc = ?3, tries = ?4, last_try_ns = ?5 WHERE id = ?1"};
  SQLite::Statement specify_run{db, "UPDATE run_spec SET spec_json = ?2 WHERE run_id = ?1"};
  SQLite::Statement task_marks{db,
                               "SELECT state, token FROM task WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement start_task{
      db, "UPDATE task SET state = 'running', token = ?3 WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement start_attempt{
      db,
      "INSERT INTO attempt (run_id, task, token, started_ns, resources, host, devices)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"};
  SQLite::Statement place_attempt{
      db,
      "UPDATE attempt SET devices = ?4, started_ns = coalesce(?5, started_ns)"
      " WHERE run_id = ?1 AND task = ?2 AND token = ?3 AND ended_ns IS NULL"};
  SQLite::Statement pass_task{
      db, "UPDATE task SET state = ?4, token = ?3 WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement whole_attempt{
      db,
      "INSERT INTO attempt (run_id, task, token, started_ns, resources, host, devices, ended_ns,"
      " exit_code, cause, detail, cpu_ms, peak_mem, log_begin, log_end)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"};
  SQLite::Statement end_task{
      db,
      "UPDATE task SET state = ?4"
      " WHERE run_id = ?1 AND number = ?2 AND token = ?3 AND state = 'running'"};
  SQLite::Statement end_attempt{
      db,
      "UPDATE attempt SET ended_ns = ?4, exit_code = ?5, cause = ?6, detail = ?7, cpu_ms = ?8,"
      " peak_mem = ?9, log_begin = ?10, log_end = ?11"
      " WHERE run_id = ?1 AND task = ?2 AND token = ?3"};
  SQLite::Statement move_task{db, "UPDATE task SET state = ?3 WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement last_number{db, "SELECT coalesce(max(number), 0) FROM task WHERE run_id = ?1"};
  SQLite::Statement key_task{
      db, "UPDATE task SET digest = ?3, depends = ?4 WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement reopen_task{db,
                                "UPDATE task SET state = 'waiting', forgiven = token"
                                " WHERE run_id = ?1 AND number = ?2"};
  SQLite::Statement keep_result{
      db,
      "INSERT OR REPLACE INTO result (digest, outputs, origin, used_ns) VALUES (?1, ?2, ?3, ?4)"};
  SQLite::Statement result_by_digest{
      db, "SELECT digest, outputs, origin, used_ns, sequence FROM result WHERE digest = ?1"};
  SQLite::Statement list_results{db,
                                 "SELECT digest, outputs, origin, used_ns, sequence FROM result"
                                 " WHERE sequence > ?1 ORDER BY sequence"};
  SQLite::Statement forget_results{
      db,
      "DELETE FROM result WHERE used_ns < ?1 AND digest NOT IN"
      " (SELECT task.digest FROM task JOIN run ON run.id = task.run_id WHERE run.state <> 'done')"};
  SQLite::Statement add_metric{
      db,
      "INSERT INTO metric (run_id, task, token, sequence, name, value, at_ns)"
      " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 FROM task"
      " WHERE run_id = ?1 AND number = ?2 AND token = ?3 AND state = 'running'"};
  SQLite::Statement keep_last_metric{
      db,
      "INSERT INTO metric_last (run_id, task, name, value, first_sequence)"
      " VALUES (?1, ?2, ?3, ?4, ?5)"
      " ON CONFLICT (run_id, task, name) DO UPDATE SET value = excluded.value"};

  SQLite::Statement list_runs{db, select_run("FROM run ORDER BY id")};
  SQLite::Statement run_by_id{db, select_run(", spec_json FROM run JOIN run_spec ON run_id = id"
                                             " WHERE id = ?1")};
  SQLite::Statement run_by_name{db, select_run(", spec_json FROM run JOIN run_spec ON run_id = id"
                                               " WHERE name = ?1")};
  SQLite::Statement list_tasks{db,
                               "SELECT number, label, state, token, params_json, forgiven, digest,"
                               " depends FROM task"
                               " WHERE run_id = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number"};
  SQLite::Statement task_by_label{db, "SELECT number FROM task WHERE run_id = ?1 AND label = ?2"};
  SQLite::Statement fold_attempts{
      db,
      "SELECT task, started_ns, ended_ns, exit_code, cause, resources, host, devices FROM"
      " attempt"
      " WHERE run_id = ?1 AND task BETWEEN ?2 AND ?3 ORDER BY task, token"};
  SQLite::Statement last_metrics{
      db,
      "SELECT task, name, value FROM metric_last"
      " WHERE run_id = ?1 AND task BETWEEN ?2 AND ?3 ORDER BY task, first_sequence"};
  SQLite::Statement list_attempts{
      db,
      "SELECT token, started_ns, ended_ns, exit_code, cause, detail, resources, host, cpu_ms,"
      " peak_mem, log_begin, log_end, devices FROM attempt WHERE run_id = ?1 AND task = ?2 ORDER "
      "BY token"};
  SQLite::Statement add_up_usage{
      db,
      "SELECT resources, sum(ended_ns - started_ns) FROM attempt"
      " WHERE run_id = ?1 AND ended_ns IS NOT NULL GROUP BY resources ORDER BY resources"};
  SQLite::Statement list_metrics{db,
                                 "SELECT token, name, value, at_ns, sequence FROM metric"
                                 " WHERE run_id = ?1 AND task = ?2 ORDER BY sequence"};
};

}  // namespace berth::store
