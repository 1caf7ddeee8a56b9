// What several pages have.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Counts, Run, RunState, TaskState } from "./api";

export function Badge({ state }: { state: RunState | TaskState }) {
  return <span class={`badge ${state}`}>{state}</span>;
}

const kParts: (keyof Counts)[] = ["done", "cached", "skipped", "running", "failed", "stopped", "waiting"];

export function Progress({ counts }: { counts: Counts }) {
  const total = kParts.reduce((sum, part) => sum + counts[part], 0);
  const text = kParts
    .filter((part) => counts[part] > 0)
    .map((part) => `${counts[part]} ${part}`)
    .join(", ");
  return (
    <div class="progress" role="img" aria-label={text} title={text}>
      {total > 0 &&
        kParts.map((part) => counts[part] > 0 && <span key={part} class={part} style={{ flexGrow: counts[part] }} />)}
    </div>
  );
}

export const counts_text = (counts: Counts): string =>
  kParts
    .filter((part) => counts[part] > 0)
    .map((part) => `${counts[part].toLocaleString("en")} ${part}`)
    .join(", ") || "nothing yet";

/// The run will change by itself: it is queued or running.
export const is_under_way = (run: Run): boolean => run.state === "queued" || run.state === "running";

export function Trouble({ error }: { error: string | null }) {
  return error === null ? null : (
    <p class="trouble" role="alert">
      {error}
    </p>
  );
}

export function Section({ title, children, aside }: { title: string; children: ComponentChildren; aside?: ComponentChildren }) {
  return (
    <section>
      <h2>
        {title}
        {aside !== undefined && <span class="aside">{aside}</span>}
      </h2>
      {children}
    </section>
  );
}

/// The time, once a second. Whoever asks is drawn as often: not what has charts of many trials.
export function useNow(): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => set(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}

export function Pick({ label, value, of, chosen }: { label: string; value: string; of: string[]; chosen: (one: string) => void }) {
  return (
    <label class="pick">
      {label}{" "}
      <select value={value} onChange={(event) => chosen(event.currentTarget.value)}>
        {of.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}
