// A flow: its graph of steps, the tasks of a step, the critical path, and earlier runs.
import { useMemo, useState } from "preact/hooks";
import { get, type Run, type Step, type Summary } from "./api";
import { layered } from "./layers";
import { useLive } from "./live";
import { Badge, counts_text, Progress, Section, Trouble } from "./parts";
import { link } from "./route";
import type { Trials } from "./trials";
import { duration } from "./words";

const kBox = { width: 176, height: 60, across: 44, down: 16 };
const kMostInstances = 200;
const kMostEarlier = 4;

const label_of = (id: string): string => id.slice(id.indexOf("/") + 1);
const step_of = (id: string): string => label_of(id).split("/", 1)[0]!;
const colour_of = (step: Step): string =>
  step.counts.failed > 0 ? "failed" : step.counts.running > 0 ? "running" : step.counts.waiting + step.counts.stopped > 0 || !step.known ? "waiting" : step.counts.done > 0 ? "done" : "cached";

/// The tasks that decided when the flow ended: the last to end, before it the last to end of the steps that it waits for.
function critical_path(steps: Step[], trials: Trials): number[] {
  const rows_of = new Map<string, number[]>();
  for (let row = 0; row < trials.count; row += 1) {
    if (Number.isNaN(trials.ended[row]!)) continue;
    const step = step_of(trials.ids[row]!);
    const rows = rows_of.get(step);
    if (rows) rows.push(row);
    else rows_of.set(step, [row]);
  }
  const after = new Map(steps.map((step) => [step.name, step.after]));
  const last = (rows: number[], by: number): number | undefined =>
    rows.reduce<number | undefined>((found, row) => (trials.ended[row]! <= by && (found === undefined || trials.ended[row]! > trials.ended[found]!) ? row : found), undefined);
  const path: number[] = [];
  for (let row = last([...rows_of.values()].flat(), Infinity); row !== undefined; ) {
    path.unshift(row);
    const before = (after.get(step_of(trials.ids[row]!)) ?? []).flatMap((name) => rows_of.get(name) ?? []);
    row = last(before, trials.started[row]!);
  }
  return path;
}

function Picture({ steps, critical, chosen, choose }: { steps: Step[]; critical: Set<string>; chosen: string; choose: (name: string) => void }) {
  const drawn = useMemo(() => layered(steps), [steps.map((step) => `${step.name}<${step.after.join(",")}`).join(";")]);
  const x = (layer: number): number => 4 + layer * (kBox.width + kBox.across);
  const y = (place: number): number => 4 + place * (kBox.height + kBox.down);
  const by_name = new Map(steps.map((step) => [step.name, step]));
  const path = (places: { layer: number; place: number }[]): string =>
    places
      .slice(1)
      .map((to, index) => {
        const from = places[index]!;
        const [x1, y1, x2, y2] = [x(from.layer) + kBox.width, y(from.place) + kBox.height / 2, x(to.layer), y(to.place) + kBox.height / 2];
        const middle = (x1 + x2) / 2;
        return `${index === 0 ? "M" : "L"}${x1 - (index === 0 ? 0 : kBox.width)} ${y1} L${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
      })
      .join(" ");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="graph">
      <svg class="graph" width={x(drawn.layers) - kBox.across + 8} height={y(drawn.tallest) + 4} role="group" aria-label={`graph of ${steps.length} steps`}>
        {drawn.edges.map((edge) => (
          <path key={`${edge.from} ${edge.to}`} d={path(edge.through)} class={critical.has(edge.from) && critical.has(edge.to) ? "critical" : ""} />
        ))}
        {drawn.nodes
          .filter((node) => !node.passed)
          .map((node) => {
            const step = by_name.get(node.name)!;
            const words = step.known ? counts_text(step.counts) : "not known yet";
            return (
              <a key={node.name} href="#" role="button" aria-pressed={chosen === node.name} onClick={(event) => (event.preventDefault(), choose(node.name))}>
                <g transform={`translate(${x(node.layer)} ${y(node.place)})`} class={`step ${colour_of(step)} ${critical.has(node.name) ? "critical" : ""} ${chosen === node.name ? "chosen" : ""}`}>
                  <title>{`${node.name}: ${words}`}</title>
                  <rect width={kBox.width} height={kBox.height} rx="6" />
                  <text x="12" y="22" class="name">
                    {clipped(node.name, 18)}
                  </text>
                  <text x="12" y="40">{clipped(words, 25)}</text>
                  {step.seconds && (
                    <text x="12" y="54">
                      {duration(1000 * step.seconds.median)} each
                    </text>
                  )}
                </g>
              </a>
            );
          })}
      </svg>
    </div>
  );
}

const clipped = (text: string, most: number): string => (text.length > most ? text.slice(0, most - 1) + "…" : text);

/// Why the tasks of a step ran, or did not have to: of one of each kind.
function Reasons({ ids }: { ids: string[] }) {
  const { value, error } = useLive((signal) => Promise.all(ids.map((id) => get("/v1/tasks/{task}/why", { task: id }, signal))), `reasons ${ids.join(" ")}`, true);
  return (
    <>
      <Trouble error={error} />
      <ul>
        {(value ?? []).map((each) => (
          <li key={each.id}>
            <a href={link("runs", each.id.split("/", 1)[0]!, label_of(each.id))}>{label_of(each.id)}</a>: {[each.why, ...each.because].join("; ")}
          </li>
        ))}
      </ul>
    </>
  );
}

function StepPanel({ step, run, trials }: { step: Step; run: string; trials: Trials }) {
  const rows = useMemo(() => Array.from({ length: trials.count }, (_, row) => row).filter((row) => step_of(trials.ids[row]!) === step.name), [trials, step.name]);
  const [wanted, set_wanted] = useState("");
  const shown = rows.filter((row) => `${trials.ids[row]} ${trials.states[row]}`.toLowerCase().includes(wanted.toLowerCase()));
  const kinds = ["failed", "waiting", "done", "cached", "skipped"].map((state) => rows.find((row) => trials.states[row] === state)).filter((row) => row !== undefined);
  return (
    <div class="panel" role="region" aria-label={`step ${step.name}`}>
      <h3>{step.name}</h3>
      <Progress counts={step.counts} />
      <p>
        {step.known ? counts_text(step.counts) : "The number of tasks is not known yet"}
        {step.seconds && `; task time: median ${duration(1000 * step.seconds.median)}, longest ${duration(1000 * step.seconds.longest)}, total ${duration(1000 * step.seconds.sum)}`}
        {step.after.length > 0 && `; after ${step.after.join(", ")}`}
        {step.files.length > 0 && `; reads ${step.files.join(", ")}`}
        {step.writes.length > 0 && `; writes ${step.writes.join(", ")}`}
      </p>
      {kinds.length > 0 && <Reasons ids={kinds.map((row) => trials.ids[row]!)} />}
      {rows.length > 1 && <input type="search" placeholder="filter: failed" aria-label={`filter the tasks of ${step.name}`} value={wanted} onInput={(event) => set_wanted(event.currentTarget.value)} />}
      <ul class="instances">
        {shown.slice(0, kMostInstances).map((row) => (
          <li key={trials.ids[row]}>
            <a href={link("runs", run, label_of(trials.ids[row]!))}>{label_of(trials.ids[row]!).slice(step.name.length + 1) || step.name}</a> <Badge state={trials.states[row] as never} />{" "}
            <small>{duration(trials.ended[row]! - trials.started[row]!)}</small>
          </li>
        ))}
      </ul>
      {shown.length > kMostInstances && <p class="note">and {(shown.length - kMostInstances).toLocaleString("en")} more</p>}
    </div>
  );
}

function Critical({ path, trials, run }: { path: number[]; trials: Trials; run: string }) {
  const begun = trials.started[path[0]!]!;
  const whole = Math.max(1, trials.ended[path[path.length - 1]!]! - begun);
  return (
    <Section title="Critical path" aside={`${duration(whole)}, of which ${duration(path.reduce((sum, row) => sum + trials.ended[row]! - trials.started[row]!, 0))} in these tasks`}>
      <table class="bars">
        <tbody>
          {path.map((row, index) => {
            const waited = index === 0 ? 0 : trials.started[row]! - trials.ended[path[index - 1]!]!;
            const took = trials.ended[row]! - trials.started[row]!;
            return (
              <tr key={trials.ids[row]}>
                <th scope="row">
                  <a href={link("runs", run, label_of(trials.ids[row]!))}>{label_of(trials.ids[row]!)}</a>
                </th>
                <td>
                  {duration(took)}
                  {waited >= 1 && <small> after a wait of {duration(waited)}</small>}
                </td>
                <td class="wide">
                  <svg class="span" width="100%" height="12" aria-hidden="true">
                    <rect x={`${(100 * (trials.started[row]! - begun)) / whole}%`} width={`${Math.max(0.3, (100 * took) / whole)}%`} height="12" />
                  </svg>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Section>
  );
}

function Earlier({ run, steps }: { run: Run; steps: Step[] }) {
  const { value, error } = useLive(
    async (signal) => {
      const { runs } = await get("/v1/runs", {}, signal);
      const same = runs.filter((each) => each.kind === "flow" && each.name === run.name && each.created < run.created).slice(-kMostEarlier);
      return await Promise.all(same.map(async (each) => ({ id: each.id, steps: (await get("/v1/runs/{run}/graph", { run: each.id }, signal)).steps })));
    },
    `earlier ${run.id}`,
    true,
  );
  if (value === null || value.length === 0) return <Trouble error={error} />;
  const cell = (step: Step | undefined) =>
    !step?.seconds ? (
      <small>{step && step.counts.cached > 0 ? "cached" : ""}</small>
    ) : (
      <>
        {duration(1000 * step.seconds.sum)} <small>{step.counts.done > 1 ? `${step.counts.done} × ${duration(1000 * step.seconds.median)}` : ""}</small>
      </>
    );
  return (
    <Section title="Compared with earlier runs" aside="total task time of each step">
      <div class="scroll" tabIndex={0} role="region" aria-label="compared with earlier runs">
        <table>
          <thead>
            <tr>
              <th scope="col">step</th>
              {value.map((each) => (
                <th scope="col" key={each.id}>
                  <a href={link("runs", each.id)}>{each.id}</a>
                </th>
              ))}
              <th scope="col">{run.id}</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((step) => (
              <tr key={step.name}>
                <th scope="row">{step.name}</th>
                {value.map((each) => (
                  <td key={each.id}>{cell(each.steps.find((other) => other.name === step.name))}</td>
                ))}
                <td>{cell(step)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

export function Flow({ summary, trials }: { summary: Summary; trials: Trials }) {
  const run = summary.run;
  const { value, error } = useLive((signal) => get("/v1/runs/{run}/graph", { run: run.id }, signal), `graph ${run.id}`);
  const [chosen, choose] = useState("");
  const path = useMemo(() => (value ? critical_path(value.steps, trials) : []), [value, trials]);
  if (value === null) return <Trouble error={error} />;
  const critical = new Set(path.map((row) => step_of(trials.ids[row]!)));
  const step = value.steps.find((each) => each.name === chosen);
  return (
    <>
      <Section title="Steps" aside={path.length > 0 ? "bold: critical path" : undefined}>
        <Picture steps={value.steps} critical={critical} chosen={chosen} choose={(name) => choose(name === chosen ? "" : name)} />
        {step && <StepPanel key={step.name} step={step} run={run.id} trials={trials} />}
      </Section>
      {path.length > 0 && <Critical path={path} trials={trials} run={run.id} />}
      <Earlier run={run} steps={value.steps} />
    </>
  );
}
