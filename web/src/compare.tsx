// Several runs side by side: how the best of each grew, and what they came to.
import { useMemo, useState } from "preact/hooks";
import { type Comparison, get } from "./api";
import { type Line, Lines, worth } from "./charts";
import { useLive } from "./live";
import { Badge, Pick, Section, Trouble } from "./parts";
import { link } from "./route";
import { scores_of } from "./search";
import { best_so_far, type Column, read_trials, short } from "./trials";
import { duration } from "./words";

const colour_of = (index: number): string => `hsl(${(215 + 137 * index) % 360} 65% 50%)`;

interface Grown {
  run: string;
  steps: { at: number; after_s: number; score: number }[];
  trials: number;
  seconds: number;
}

async function grown(run: string, metric: string, maximise: boolean, signal: AbortSignal): Promise<Grown> {
  const trials = read_trials(await get("/v1/runs/{run}/trials.csv", { run }, signal));
  const score = scores_of(trials, metric);
  const begun = trials.started.reduce((least, each) => (each < least ? each : least), Infinity);
  const ended = trials.ended.reduce((most, each) => (each > most ? each : most), begun);
  const steps = score ? best_so_far(score, maximise).map((each) => ({ at: each.row + 1, after_s: (trials.ended[each.row]! - begun) / 1000, score: each.score })) : [];
  return { run, steps, trials: trials.count, seconds: (ended - begun) / 1000 };
}

function Growth({ found, all }: { found: Comparison; all: Grown[] }) {
  const [by, set_by] = useState("trials");
  const drawn = useMemo(() => {
    const scores = Float64Array.from(all.flatMap((each) => each.steps.map((step) => step.score)));
    const column: Column = { name: found.metric, kind: "metric", numbers: scores, texts: null, choices: [] };
    const lines = all.map((each, index): Line => {
      const steps = by === "trials" ? each.steps : [...each.steps].sort((a, b) => a.after_s - b.after_s);
      const points = steps.map((step): [number, number] => [by === "trials" ? step.at : step.after_s, step.score]);
      const last = points[points.length - 1];
      if (last) points.push([by === "trials" ? each.trials : each.seconds, last[1]]);
      return { name: each.run, points, colour: () => colour_of(index), strength: 1, cut: false };
    });
    return { lines, scale: worth(column, found), most: Math.max(1, ...all.map((each) => (by === "trials" ? each.trials : each.seconds))) };
  }, [all, by]);
  return (
    <Section title={`best ${found.metric} so far`} aside={<Pick label="by" value={by} of={["trials", "seconds"]} chosen={set_by} />}>
      <Lines lines={drawn.lines} scale={drawn.scale} from={by} to={drawn.most} label={`how the best ${found.metric} of ${all.map((each) => each.run).join(", ")} grew`} stairs />
    </Section>
  );
}

function Rows({ found, names }: { found: Comparison; names: string[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="runs">
      <table>
        <thead>
          <tr>
            {["run", "state", "done", "failed", `best ${found.metric}`, "best trial", "median", "time per trial", "duration", ""].map((head, index) => (
              <th scope="col" key={index}>
                {head || <span class="unseen">leave out</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {found.runs.map((run, index) => (
            <tr key={run.id}>
              <th scope="row">
                <svg width="12" height="12" aria-hidden="true">
                  <rect width="12" height="12" fill={colour_of(index)} />
                </svg>{" "}
                <a href={link("runs", run.id)}>{run.id}</a>
              </th>
              <td>
                <Badge state={run.state} />
              </td>
              <td>{run.counts.done}</td>
              <td>{run.counts.failed}</td>
              <td>{run.best_score === null ? "" : short(run.best_score)}</td>
              <td>{run.best && Object.entries(run.best.params).map(([name, value]) => `${name} ${String(value)}`).join(", ")}</td>
              <td>{run.median_score === null ? "" : short(run.median_score)}</td>
              <td>{run.median_trial_seconds === null ? "" : duration(1000 * run.median_trial_seconds)}</td>
              <td>{run.seconds === null ? "" : duration(1000 * run.seconds)}</td>
              <td>{names.length > 2 && <a href={link("compare", ...names.filter((name) => name !== run.id))} aria-label={`without ${run.id}`}>✕</a>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ComparePage({ names }: { names: string[] }) {
  const key = names.join(" ");
  const compared = useLive((signal) => get("/v1/compare", { run: names }, signal), key);
  const found = compared.value;
  const all = useLive(async (signal) => (found ? await Promise.all(names.map((name) => grown(name, found.metric, found.direction === "max", signal))) : null), `${key} ${found?.metric}`, found === null);
  const runs = useLive((signal) => get("/v1/runs", {}, signal), "runs", true);
  const others = (runs.value?.runs ?? []).filter((each) => each.kind === "experiment" && !names.includes(each.id)).reverse();
  return (
    <>
      <h1>Compare runs</h1>
      <Trouble error={compared.error ?? all.error} />
      {others.length > 0 && <Pick label="add" value="" of={["", ...others.slice(0, 500).map((each) => each.id)]} chosen={(id) => id !== "" && (window.location.hash = link("compare", ...names, id))} />}
      {found && all.value && <Growth found={found} all={all.value} />}
      {found && <Rows found={found} names={names} />}
      {found && found.shared.length > 0 && (
        <Section title="Trials in common">
          <div class="scroll" tabIndex={0} role="region" aria-label="trials in common">
            <table>
              <thead>
                <tr>
                  <th scope="col">parameters</th>
                  {names.map((name) => (
                    <th scope="col" key={name}>
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {found.shared.slice(0, 50).map((each, row) => (
                  <tr key={row}>
                    <td>{Object.entries(each.params).map(([name, value]) => `${name} ${String(value)}`).join(", ")}</td>
                    {names.map((name) => (
                      <td key={name}>{each.scores[name] === undefined ? "" : short(each.scores[name])}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Section>
      )}
    </>
  );
}
