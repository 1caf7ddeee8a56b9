// What the page asks the server, in the shapes of the commands' --json.

export type State = "waiting" | "running" | "done" | "failed" | "stopped" | "skipped" | "interrupted";
export type Counts = Record<"waiting" | "running" | "done" | "cached" | "skipped" | "failed" | "stopped", number>;

export interface Run {
  id: string;
  name: string;
  kind: string;
  state: State;
  created: string;
  started: string | null;
  ended: string | null;
  directory: string;
  error: string;
  labels: Record<string, string>;
  counts: Counts;
}

export interface Goal {
  metric: string;
  direction: "max" | "min";
}

export interface Summary {
  run: Run;
  goals: Goal[];
  constraints: string[];
  front: string[];
  space: Record<string, { scale?: "linear" | "log"; choices?: string[] }>;
  invocation: { program: string; arguments: string[] };
  resource_minutes: Record<string, number>;
  failures: { id: string; cause: string; last_lines: string[] }[];
}

export interface Attempt {
  number: number;
  started: string | null;
  ended: string | null;
  cause: string;
  detail: string;
  cpu_ms: number | null;
  peak_mem: number | null;
  host: string;
}

export interface Why {
  id: string;
  state: State;
  why: string;
  because: string[];
  command: string;
  directory: string;
  last_lines: string[];
  attempts_made: Attempt[];
}

interface Part {
  gpu: number;
  gpu_mem: number;
  gpu_slots: number;
}

export interface Device {
  index: number;
  uuid: string;
  model: string;
  numa: number;
  in_service: boolean;
  because: string;
  total: Part | null;
  free: Part | null;
  foreign: { pid: number; program: string; memory: number }[];
}

export interface Holder {
  label: string;
  user: string;
  pid: number;
  priority: number;
  since: string;
  resources: Record<string, number>;
  cores: number[];
  devices: { uuid: string; index: number; gpu_mem: number; gpu_slots: number; whole: boolean }[];
}

/// One that waits, and when its turn is expected to come.
export interface Waiting extends Holder {
  expected_start: string | null;
  at_most: boolean;
  expected_by: string;
}

export interface Machine {
  total: Record<string, number>;
  free: Record<string, number>;
  held: Record<string, number>;
  enforced: string;
  cpu_from: string;
  mem_from: string;
  devices: Device[];
  holders: Holder[];
  waiting: Waiting[];
  notes: string[];
}

export interface Topology {
  topology: { name: string; devices: { index: number; uuid: string; model: string; numa: number }[]; links: string[][] };
  islands: number[][];
}

export interface Cluster {
  name: string;
  kind: string;
  error?: string;
  hosts: { host: string; total?: Record<string, number>; free?: Record<string, number>; holders?: string; state?: string; error?: string }[];
}

export interface Curves {
  metric: string;
  direction: "max" | "min";
  curves: { task: string; stopped_early: boolean; values: number[] }[];
}

export interface Comparison {
  metric: string;
  direction: "max" | "min";
  runs: (Run & { scored: number; best: { id: string; params: Record<string, unknown> } | null; best_score: number | null; median_score: number | null; median_trial_seconds: number | null; seconds: number | null })[];
  shared: { params: Record<string, unknown>; scores: Record<string, number> }[];
}

export interface Step {
  name: string;
  after: string[];
  files: string[];
  writes: string[];
  known: boolean;
  counts: Counts;
  seconds: { sum: number; median: number; longest: number } | null;
}

export interface Allocation {
  accelerator: string;
  numReplicas: number;
  cost: number;
  itlAverage: number;
  ttftAverage: number;
  load?: { arrivalRate: number };
  role?: string;
  spot?: boolean;
  itlPercentiles?: Record<string, number>;
  ttftPercentiles?: Record<string, number>;
  parts?: Allocation[];
}

export interface ServerPlan {
  class: string;
  model: string;
  utilisation: number;
  slo: { itl?: number; ttft?: number; tps?: number; itlPercentiles: Record<string, number>; ttftPercentiles: Record<string, number> };
  current: { accelerator: string; numReplicas: number; cost: number };
  change: string;
}

export interface FleetPlan {
  allocations: Record<string, Allocation>;
  reasons: Record<string, { status: string; binds: string; text: string }>;
  servers: Record<string, ServerPlan>;
  proof: { unserved_by_priority: Record<string, number>; unserved_bound_by_priority: Record<string, number>; value: number; bound: number; gap: number; stopped: boolean };
  cost: number;
  watts: number;
  totals: { type: string; count: number; limit: number | null; cost: number; shadowPrice: number }[];
}

export interface Day {
  windows: { start: number; length: number }[];
  plans: Record<
    string,
    {
      cost: number;
      starts: number;
      stops: number;
      changes: number;
      unserved_hours: number;
      windows: { cost: number; allocations: Record<string, { accelerator: string; numReplicas: number; serves: boolean }> }[];
    }
  >;
  bound: number;
  gap: number;
}

export interface Importance {
  metric: string;
  measure: string;
  because: string;
  trials: number;
  predicted: number;
  together: number;
  parameters: { name: string; share: number; deviation: number }[];
}

/// What the server said of a request that failed.
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const part = encodeURIComponent;
export const of_run = (run: string, what = ""): string => `/v1/runs/${part(run)}${what}`;
export const of_task = (task: string, what: string): string => `/v1/tasks/${part(task)}${what}`;

async function answer(path: string, method: "GET" | "POST", signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, { method, credentials: "same-origin", signal: signal ?? null });
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as { error?: string };
  throw new Refused(response.status, said.error ?? `the server answered ${response.status}`);
}

export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
  (await (await answer(path, "GET", signal)).json()) as T;
export const text = async (path: string, signal?: AbortSignal): Promise<string> =>
  (await answer(path, "GET", signal)).text();
export const post = async (path: string): Promise<void> => {
  await answer(path, "POST");
};
