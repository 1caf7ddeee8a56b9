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

export interface Device {
  index: number;
  name?: string;
  uuid?: string;
  memory?: number;
  held?: boolean;
  holders?: string[];
  state?: string;
}

export interface Machine {
  total: Record<string, number>;
  free: Record<string, number>;
  held: Record<string, number>;
  enforced: string;
  cpu_from: string;
  mem_from: string;
  devices: Device[];
  holders: { run?: string; task?: string; resources?: Record<string, number>; host?: string }[];
  waiting: { run?: string; why?: string }[];
  notes: string[];
}

export interface Importance {
  metric: string;
  measure: string;
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
