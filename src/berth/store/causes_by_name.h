// The last statements of the step from schema 7 to 8, which SQLite and PostgreSQL share.
#pragma once

/// Texts that people read become names of exec/cause.h; a text that stands for none of them is kept
/// in front of the detail. "no output" is what `not_as_declared` was called at first.
#define BERTH_CAUSES_BY_NAME                                                                   \
  "UPDATE attempt SET cause = CASE cause WHEN 'cannot start now' THEN 'short_of_means'"        \
  " WHEN 'over its share of GPU memory' THEN 'gpu_memory'"                                     \
  " WHEN 'no output' THEN 'not_as_declared' ELSE replace(cause, ' ', '_') END"                 \
  " WHERE cause IN ('out of memory', 'time limit', 'cannot start', 'cannot start now',"        \
  " 'worker lost', 'over its share of GPU memory', 'given back', 'not as declared',"           \
  " 'no output', 'stopped early', 'runner lost');"                                             \
  "UPDATE attempt SET cause = '', detail = cause || CASE detail WHEN '' THEN '' ELSE ': ' END" \
  " || detail WHERE cause NOT IN ('', 'ok', 'exit_code', 'signal', 'out_of_memory',"           \
  " 'time_limit', 'stopped', 'cannot_start', 'short_of_means', 'worker_lost', 'gpu_memory',"   \
  " 'given_back', 'not_as_declared', 'stopped_early', 'superseded', 'runner_lost')"
