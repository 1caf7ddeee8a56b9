// The charts of a search: history, Pareto front, parallel coordinates, learning curves and parameter importance.
import { useMemo, useState } from "preact/hooks";
import { get, type Goal, type Run, type Summary } from "./api";
import { cut_of_goal, type Edge, History, type Line, Lines, Outliers, Parallel, Scatter, useEdge } from "./charts";
import { useLive } from "./live";
import { Pick, Section, Trouble } from "./parts";
import { link } from "./route";
import { type Scale, scale_of, with_counts } from "./scale";
import type { Column, Trials } from "./trials";

const kFewestTrials = 10; // berth importance needs this many
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
const direction = (goal: Goal): string => (goal.direction === "max" ? "higher is better" : "lower is better");
const varies = (column: Column): boolean => {
  const first = column.numbers.find((value) => !Number.isNaN(value));
  return column.numbers.some((value) => !Number.isNaN(value) && value !== first);
};

/// The scores of the trials that are done; other trials have no score yet. Where the best report is the
/// score, the server names it METRIC.best.
export function scores_of(trials: Trials, metric: string): Column | undefined {
  const named = (name: string): Column | undefined => trials.columns.find((each) => each.kind === "metric" && each.name === name);
  const column = named(`${metric}.best`) ?? named(metric);
  return column && { ...column, name: metric, numbers: column.numbers.map((value, row) => (trials.states[row] === "done" ? value : NaN)) };
}

/// The scale of learning curves. Curves whose last value is an outlier are left out, except at the edge.
function scale_of_curves(curves: number[][], goal: Goal): { scale: Scale; fitted: Scale } {
  const cut = cut_of_goal(goal);
  const ends = scale_of(Float64Array.from(curves, (values) => values[values.length - 1]!), cut);
  const usual = curves.filter((values) => values[values.length - 1]! >= ends.low && values[values.length - 1]! <= ends.high);
  const scale = scale_of(Float64Array.from(curves.flat()));
  if (usual.length === curves.length) return { scale, fitted: scale };
  const inner = scale_of(Float64Array.from(usual.flat()));
  const worst = Float64Array.from(curves, (values) => (cut === "low" ? Math.min(...values) : Math.max(...values)));
  const fitted = with_counts(inner, worst);
  return { scale, fitted };
}

function LearningCurves({ run, goal, key_, edge }: { run: string; goal: Goal; key_: string; edge: Edge }) {
  const { value, error } = useLive((signal) => get("/v1/runs/{run}/curves", { run }, signal), `curves ${key_}`, true);
  const drawn = useMemo(() => {
    const curves = (value?.curves ?? []).filter((each) => each.values.length > 1);
    const lines = curves.map(
      (each, index): Line => ({
        name: each.task,
        points: each.values.map((score, at) => [at + 1, score]),
        colour: (ink) => (each.stopped_early ? ink.bad : ink.accent),
        strength: index === 0 && !each.stopped_early ? 1 : 0.45,
        cut: each.stopped_early,
      }),
    );
    return { lines: lines.reverse(), ...scale_of_curves(curves.map((each) => each.values), goal), most: Math.max(2, ...curves.map((each) => each.values.length)), cut: curves.filter((each) => each.stopped_early).length };
  }, [value]);
  if (drawn.lines.length === 0) return <Trouble error={error} />;
  const words = `${drawn.lines.length} trials${drawn.cut > 0 ? `, ${drawn.cut} of them stopped early (red)` : ""}`;
  return (
    <Section title="Learning curves" aside={words}>
      <Lines lines={drawn.lines} scale={edge.on ? drawn.fitted : drawn.scale} across="report" up={goal.metric} to={drawn.most} label={`${goal.metric} by report: ${words}`} />
      <Outliers axes={[{ name: goal.metric, fitted: drawn.fitted, upright: true }]} what="curves" edge={edge} />
    </Section>
  );
}

function Front({ summary, trials, edge }: { summary: Summary; trials: Trials; edge: Edge }) {
  const [first, second] = summary.goals;
  const across = useMemo(() => scores_of(trials, first!.metric), [trials]);
  const up = useMemo(() => scores_of(trials, second!.metric), [trials]);
  const front = useMemo(() => new Set(summary.front), [summary]);
  if (!across || !up) return null;
  return (
    <Section title="Pareto front" aside={`${front.size} trials that no other trial beats in all metrics`}>
      <Scatter trials={trials} across={across} up={up} goals={summary.goals} edge={edge} front={front} />
      <p class="note">
        {first!.metric}: {direction(first!)}; {second!.metric}: {direction(second!)}.{" "}
        {summary.front.slice(0, 40).map((id) => (
          <>
            <a key={id} href={link("runs", ...id.split("/", 1), id.slice(id.indexOf("/") + 1))}>
              {id.slice(id.indexOf("/") + 1)}
            </a>{" "}
          </>
        ))}
      </p>
    </Section>
  );
}

const kMethods: Record<string, string> = { fanova: "fANOVA on a random forest" };

function Importance({ summary, metric, trials }: { summary: Summary; metric: string; trials: number }) {
  const { value, error } = useLive(
    async (signal) => (trials < kFewestTrials ? null : await get("/v1/runs/{run}/importance", { run: summary.run.id, metric }, signal)),
    `importance ${summary.run.id} ${metric} ${summary.run.counts.done}`,
    true,
  );
  if (value === null) return <Trouble error={error} />;
  return (
    <Section title={`Parameter importance for ${metric}`} aside={value.because === "" ? `${kMethods[value.measure] ?? value.measure}, ${value.trials} trials; predicts ${percent(value.predicted)} of the variance` : undefined}>
      {value.because !== "" && <p class="note">Not available: {value.because}.</p>}
      <table class="bars">
        <tbody>
          {value.parameters.map((each) => (
            <tr key={each.name}>
              <th scope="row">{each.name}</th>
              <td>
                {percent(each.share)} ± {percent(each.deviation)}
              </td>
              <td class="wide">
                <meter min={0} max={1} value={each.share} aria-label={`share of ${each.name}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

/// Chooses another run to compare this one with.
function CompareWith({ run }: { run: Run }) {
  const { value } = useLive((signal) => get("/v1/runs", {}, signal), "runs", true);
  const others = (value?.runs ?? []).filter((each) => each.kind === run.kind && each.id !== run.id).reverse();
  if (others.length === 0) return null;
  return <Pick label="compare with" value="" of={["", ...others.slice(0, 500).map((each) => each.id)]} chosen={(id) => id !== "" && (window.location.hash = link("compare", run.id, id))} />;
}

export function Search({ summary, trials, goal }: { summary: Summary; trials: Trials; goal: Goal }) {
  const score = useMemo(() => scores_of(trials, goal.metric), [trials]);
  const params = useMemo(
    () =>
      trials.columns
        .filter((column) => column.kind === "param" && (column.texts ? column.choices.length > 1 : varies(column)))
        .map((column) => {
          const scale = summary.space[column.name]?.scale;
          return scale ? { ...column, scale } : column;
        }),
    [trials],
  );
  const [across, set_across] = useState("");
  const [up, set_up] = useState(goal.metric);
  const edge = useEdge();
  if (!score || score.numbers.every(Number.isNaN)) return <p class="note">No trial has reported {goal.metric} yet.</p>;
  const metrics = trials.columns.filter((column) => column.kind === "metric");
  const any = [...params, ...metrics];
  const vertical = up === goal.metric ? score : any.find((each) => each.name === up);
  const column = any.find((each) => each.name === across) ?? params[0];
  return (
    <>
      <Section title={`${goal.metric} by trial`} aside={<CompareWith run={summary.run} />}>
        <p class="note">{direction(goal)}; dots: trials; line: best so far</p>
        <History trials={trials} score={score} goal={goal} edge={edge} />
      </Section>
      {summary.goals.length > 1 && <Front summary={summary} trials={trials} edge={edge} />}
      {params.length > 0 && (
        <Section title="Parallel coordinates">
          <Parallel trials={trials} score={score} goal={goal} edge={edge} columns={params} />
        </Section>
      )}
      {column && vertical && (
        <Section
          title={`${vertical.name} by ${column.name}`}
          aside={
            <>
              <Pick label="y axis" value={vertical.name} of={any.map((each) => each.name)} chosen={set_up} /> <Pick label="x axis" value={column.name} of={any.map((each) => each.name)} chosen={set_across} />
            </>
          }
        >
          <Scatter trials={trials} across={column} up={vertical} goals={summary.goals} edge={edge} />
        </Section>
      )}
      <LearningCurves run={summary.run.id} goal={goal} edge={edge} key_={`${summary.run.id} ${summary.run.counts.done} ${summary.run.counts.failed}`} />
      {params.length > 0 && summary.goals.map((each) => <Importance key={each.metric} summary={summary} metric={each.metric} trials={score.numbers.filter((value) => !Number.isNaN(value)).length} />)}
    </>
  );
}
