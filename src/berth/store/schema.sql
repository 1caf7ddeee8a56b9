-- What Berth remembers of its runs, in SQLite. The program carries this text and runs it on an
-- empty file; older files are brought to the same shape by the steps in sqlite_database.cc.
-- PRAGMA user_version, set by the program, is the version of this schema.
--
-- Conventions. Times are nanoseconds since 1970-01-01 UTC (…_ns). States are the words that
-- `berth show` prints, but for 'waiting' of a run, which it shows as queued. A task is numbered from 1 within its run. The log-like tables reference
-- the run alone: what adds to them has just found the task, and `berth rm` deletes by range
-- instead of task by task. Columns …_sum are checksums (row_sum.h) of the columns that their
-- comments name and of the row's numbers; NULL: not known.

PRAGMA application_id = 0x42727468;  -- 'Brth': tells our files from other programs' databases

-- The last number given to each name. Outlives the runs, so that digits-3 is never issued twice.
CREATE TABLE name_counter (
  name   TEXT PRIMARY KEY,
  issued INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A run, but for its specification: this row is written in every transaction and stays short.
-- The counts by state add up to its tasks: kept here, so that listing runs reads no task.
CREATE TABLE run (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reissued either
  name              TEXT    NOT NULL UNIQUE,            -- digits-3
  kind              TEXT    NOT NULL,
  directory         TEXT    NOT NULL,
  priority          INTEGER NOT NULL,
  state             TEXT    NOT NULL DEFAULT 'waiting'
                    CHECK (state IN ('waiting', 'running', 'done', 'failed', 'stopped')),
  created_ns        INTEGER NOT NULL,
  started_ns        INTEGER,
  ended_ns          INTEGER,
  error             TEXT    NOT NULL DEFAULT '',
  result            TEXT    NOT NULL DEFAULT '',  -- JSON; '': not ended
  phase             TEXT    NOT NULL DEFAULT 'init'
                    CHECK (phase IN ('init', 'eval', 'retry', 'done')),
  alloc             TEXT    NOT NULL DEFAULT '',  -- JSON; '': none
  tries             INTEGER NOT NULL DEFAULT 0,
  last_try_ns       INTEGER,
  epoch             INTEGER NOT NULL DEFAULT 0,  -- how often a runner took the run over
  runner_pid        INTEGER NOT NULL DEFAULT 0,
  runner_started_at INTEGER NOT NULL DEFAULT 0,  -- in the kernel's ticks: identity, not a date
  runner_host       TEXT    NOT NULL DEFAULT '', -- where the last runner is, or was; '': here
  last_token        INTEGER NOT NULL DEFAULT 0,  -- the next attempt's token must be greater
  metrics_seen      INTEGER NOT NULL DEFAULT 0,  -- the last metric's sequence number
  waiting           INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  running           INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),
  done              INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
  cached            INTEGER NOT NULL DEFAULT 0 CHECK (cached >= 0),
  skipped           INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
  failed            INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
  stopped           INTEGER NOT NULL DEFAULT 0 CHECK (stopped >= 0),
  name_sum          INTEGER,  -- name, kind, directory
  result_sum        INTEGER   -- error, result
) STRICT;

-- What was asked for: large, written once.
CREATE TABLE run_spec (
  run_id    INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
  spec_json TEXT NOT NULL,
  row_sum   INTEGER  -- all
) STRICT;

-- One command of a run. How it went is told by its attempts; only what decides whether a change
-- is accepted stands here.
CREATE TABLE task (
  run_id      INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  number      INTEGER NOT NULL,
  label       TEXT    NOT NULL,
  state       TEXT    NOT NULL DEFAULT 'waiting'
              CHECK (state IN ('waiting', 'running', 'done', 'cached', 'skipped', 'failed',
                               'stopped')),
  token       INTEGER NOT NULL DEFAULT 0,  -- of the latest attempt; 0: none yet
  params_json TEXT    NOT NULL,            -- {"lr":"0.1",…}, in the order of the file
  forgiven    INTEGER NOT NULL DEFAULT 0,  -- attempts up to this token take none of the retries
  digest      TEXT    NOT NULL DEFAULT '', -- of what its outputs depend on; '': not known, not cached
  depends     TEXT    NOT NULL DEFAULT '', -- the text that it is the digest of
  label_sum   INTEGER,                     -- label
  params_sum  INTEGER,                     -- params_json
  key_sum     INTEGER,                     -- digest, depends
  PRIMARY KEY (run_id, number),
  UNIQUE (run_id, label)
) STRICT, WITHOUT ROWID;

-- One execution of a task. Tokens grow within the run, so their order is the order of attempts.
-- At most the latest attempt of a task is open, and only while the task is running.
CREATE TABLE attempt (
  run_id     INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  task       INTEGER NOT NULL,
  token      INTEGER NOT NULL,
  started_ns INTEGER NOT NULL,
  ended_ns   INTEGER,             -- NULL: open
  exit_code  INTEGER,             -- NULL: it did not exit by itself
  cause      TEXT    NOT NULL DEFAULT '', -- a name of exec/cause.h; '': open
  detail     TEXT    NOT NULL DEFAULT '',
  resources  TEXT    NOT NULL,    -- JSON
  host       TEXT    NOT NULL,
  cpu_ms     INTEGER NOT NULL DEFAULT 0,
  peak_mem   INTEGER NOT NULL DEFAULT 0,  -- bytes
  log_begin  INTEGER NOT NULL DEFAULT 0,  -- offsets into the run's log file
  log_end    INTEGER NOT NULL DEFAULT 0,
  devices    TEXT    NOT NULL DEFAULT '',  -- JSON: the UUIDs; '': none
  signal     INTEGER NOT NULL DEFAULT 0,   -- that killed it; 0: none
  lease_ns   INTEGER,                      -- its holder increases it while it lives; NULL: has no lease
  begin_sum  INTEGER,                      -- resources, host
  end_sum    INTEGER,                      -- ended_ns, cause, exit_code, signal, detail
  PRIMARY KEY (run_id, task, token)
) STRICT, WITHOUT ROWID;

-- Every metric that an attempt reported.
CREATE TABLE metric (
  run_id   INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  task     INTEGER NOT NULL,
  sequence INTEGER NOT NULL,  -- order within the run
  token    INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  value    REAL,              -- NULL: not a number (SQLite has no NaN)
  at_ns    INTEGER NOT NULL,
  row_sum  INTEGER,           -- all
  PRIMARY KEY (run_id, task, sequence)
) STRICT, WITHOUT ROWID;

-- The last value of each, so that listing tasks does not read the whole of metric.
CREATE TABLE metric_last (
  run_id         INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  task           INTEGER NOT NULL,
  name           TEXT    NOT NULL,
  value          REAL,
  first_sequence INTEGER NOT NULL,  -- when the name came first: the order of display
  row_sum        INTEGER,           -- name, value
  PRIMARY KEY (run_id, task, name)
) STRICT, WITHOUT ROWID;

-- What tasks wrote, by the digest of all that went into them: the cache of all runs. Outlives them.
CREATE TABLE result (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows each time that one is kept
  digest   TEXT    NOT NULL UNIQUE,
  outputs  TEXT    NOT NULL,  -- what they are is the caller's to say
  origin   TEXT    NOT NULL,  -- the task that wrote it: count-2/split
  used_ns  INTEGER NOT NULL,  -- when it was kept last
  row_sum  INTEGER            -- digest, outputs, origin
) STRICT;
