// Several runs compared: the best so far of each, their results and the trials that they share.
import { useMemo, useState } from "preact/hooks";
import { type Comparison, get } from "./api";
import { cut_of_goal, type Line, Lines, Outliers, useEdge } from "./charts";
import { useLive } from "./live";
import { Badge, Pick, Section, Trouble } from "./parts";
import { link } from "./route";
import { scale_of, with_counts } from "./scale";
import { scores_of } from "./search";
import { best_so_far, read_trials, short } from "./trials";
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

const kSamples = 50; // of each line, for the scale: a value weighs as long as it was the best

function sampled(points: [number, number][], to: number): number[] {
  if (points.length === 0) return [];
  return Array.from({ length: kSamples }, (_, index) => points.filter(([at]) => at <= ((index + 1) * to) / kSamples).pop()?.[1] ?? points[0]![1]);
}

function Growth({ found, all }: { found: Comparison; all: Grown[] }) {
  const [by, set_by] = useState("trials");
  const edge = useEdge();
  const drawn = useMemo(() => {
    const lines = all.map((each, index): Line => {
      const steps = by === "trials" ? each.steps : [...each.steps].sort((a, b) => a.after_s - b.after_s);
      const points = steps.map((step): [number, number] => [by === "trials" ? step.at : step.after_s, step.score]);
      const last = points[points.length - 1];
      if (last) points.push([by === "trials" ? each.trials : each.seconds, last[1]]);
      return { name: each.run, points, colour: () => colour_of(index), strength: 1, cut: false };
    });
    const most = Math.max(1, ...all.map((each) => (by === "trials" ? each.trials : each.seconds)));
    const values = Float64Array.from(lines.flatMap((line) => line.points.map((point) => point[1])));
    const usual = scale_of(Float64Array.from(lines.flatMap((line) => sampled(line.points, most))), cut_of_goal(found));
    const scale = scale_of(values);
    const fitted = usual.below + usual.above > 0 ? with_counts(usual, values) : scale;
    return { lines, scale, fitted, most };
  }, [all, by]);
  return (
    <Section title={`Best ${found.metric} so far`} aside={<Pick label="x axis" value={by} of={["trials", "seconds"]} chosen={set_by} />}>
      <Lines lines={drawn.lines} scale={edge.on ? drawn.fitted : drawn.scale} across={by} up={found.metric} to={drawn.most} label={`best ${found.metric} so far of ${all.map((each) => each.run).join(", ")}`} stairs />
      <Outliers axes={[{ name: found.metric, fitted: drawn.fitted, upright: true }]} what="steps" edge={edge} />
    </Section>
  );
}

function Rows({ found, names }: { found: Comparison; names: string[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="runs">
      <table>
        <thead>
          <tr>
            {["run", "state", "done", "failed", `best ${found.metric}`, "best parameters", `median ${found.metric}`, "time per trial", "duration", ""].map((head, index) => (
              <th scope="col" key={index}>
                {head || <span class="unseen">remove</span>}
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
              <td>{names.length > 2 && <a href={link("compare", ...names.filter((name) => name !== run.id))} aria-label={`remove ${run.id}`}>✕</a>}</td>
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
      {others.length > 0 && <Pick label="add a run" value="" of={["", ...others.slice(0, 500).map((each) => each.id)]} chosen={(id) => id !== "" && (window.location.hash = link("compare", ...names, id))} />}
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
