// What a search has found: its history, what leads to the best, how its trials learn, and what decides.
import { useMemo, useState } from "preact/hooks";
import { get, type Goal, type Run, type Summary } from "./api";
import { History, type Line, Lines, Parallel, Scatter, worth } from "./charts";
import { useLive } from "./live";
import { Pick, Section, Trouble } from "./parts";
import { link } from "./route";
import { scale_of } from "./scale";
import type { Column, Trials } from "./trials";

const kLeftOutOfCurves = 0.01; // what was stopped early is at the worse end, and to be seen
const kLeastTrials = 10; // of which berth importance says anything
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
const direction = (goal: Goal): string => (goal.direction === "max" ? "higher is better" : "lower is better");
const varies = (column: Column): boolean => {
  const first = column.numbers.find((value) => !Number.isNaN(value));
  return column.numbers.some((value) => !Number.isNaN(value) && value !== first);
};

/// The scores of the trials that are done: of others a metric is not what they came to. Where the best
/// report counts, it has a name of its own.
export function scores_of(trials: Trials, metric: string): Column | undefined {
  const named = (name: string): Column | undefined => trials.columns.find((each) => each.kind === "metric" && each.name === name);
  const column = named(`${metric}.best`) ?? named(metric);
  return column && { ...column, name: metric, numbers: column.numbers.map((value, row) => (trials.states[row] === "done" ? value : NaN)) };
}

function LearningCurves({ run, goal, key_ }: { run: string; goal: Goal; key_: string }) {
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
    const all = Float64Array.from(curves.flatMap((each) => each.values));
    const column: Column = { name: goal.metric, kind: "metric", numbers: all, texts: null, choices: [] };
    return { lines: lines.reverse(), scale: worth(column, goal, kLeftOutOfCurves), most: Math.max(2, ...curves.map((each) => each.values.length)), cut: curves.filter((each) => each.stopped_early).length };
  }, [value]);
  if (drawn.lines.length === 0) return <Trouble error={error} />;
  const words = `${drawn.lines.length - drawn.cut} that went on to their end${drawn.cut > 0 ? `, ${drawn.cut} that were stopped early, red, where they end` : ""}`;
  return (
    <Section title="Learning curves" aside={words}>
      <Lines lines={drawn.lines} scale={drawn.scale} from="report" to={drawn.most} label={`${goal.metric} by report: ${words}`} />
    </Section>
  );
}

function Front({ summary, trials }: { summary: Summary; trials: Trials }) {
  const [first, second] = summary.goals;
  const across = useMemo(() => scores_of(trials, first!.metric), [trials]);
  const up = useMemo(() => scores_of(trials, second!.metric), [trials]);
  const scale = useMemo(() => up && worth(up, second!, 0), [up]);
  const front = useMemo(() => new Set(summary.front), [summary]);
  if (!across || !up || !scale) return null;
  return (
    <Section title={`${second!.metric} and ${first!.metric}`} aside={`the Pareto front: no trial is better in both metrics than one of these ${front.size}`}>
      <Scatter trials={trials} across={across} up={up} scale={scale} front={front} />
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

function Decides({ summary, metric, trials }: { summary: Summary; metric: string; trials: number }) {
  const { value, error } = useLive(
    async (signal) => (trials < kLeastTrials ? null : await get("/v1/runs/{run}/importance", { run: summary.run.id, metric }, signal)),
    `importance ${summary.run.id} ${metric} ${summary.run.counts.done}`,
    true,
  );
  if (value === null) return <Trouble error={error} />;
  return (
    <Section title={`Parameter importance for ${metric}`} aside={value.because === "" ? `${kMethods[value.measure] ?? value.measure}, ${value.trials} trials; it predicts ${percent(value.predicted)}` : undefined}>
      {value.because !== "" && <p class="note">Not known: {value.because}.</p>}
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

/// Another run that one with the same goal may be compared with.
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
  const metrics = trials.columns.filter((column) => column.kind === "metric");
  const any = [...params, ...metrics];
  const vertical = up === goal.metric ? score : any.find((each) => each.name === up);
  const scale = useMemo(() => vertical && (vertical === score ? worth(vertical, goal) : scale_of(vertical.numbers, vertical)), [vertical]);
  if (!score || score.numbers.every(Number.isNaN)) return <p class="note">No trial has reported {goal.metric} yet.</p>;
  const column = any.find((each) => each.name === across) ?? params[0];
  return (
    <>
      <Section title={`${goal.metric}, ${direction(goal)}`} aside={<CompareWith run={summary.run} />}>
        <History trials={trials} score={score} goal={goal} />
      </Section>
      {summary.goals.length > 1 && <Front summary={summary} trials={trials} />}
      {params.length > 0 && (
        <Section title="Parallel coordinates">
          <Parallel trials={trials} score={score} goal={goal} columns={params} />
        </Section>
      )}
      {column && vertical && scale && (
        <Section
          title={`${vertical.name} by ${column.name}`}
          aside={
            <>
              <Pick label="upwards" value={vertical.name} of={any.map((each) => each.name)} chosen={set_up} /> <Pick label="across" value={column.name} of={any.map((each) => each.name)} chosen={set_across} />
            </>
          }
        >
          <Scatter trials={trials} across={column} up={vertical} scale={scale} />
        </Section>
      )}
      <LearningCurves run={summary.run.id} goal={goal} key_={`${summary.run.id} ${summary.run.counts.done} ${summary.run.counts.failed}`} />
      {params.length > 0 && summary.goals.map((each) => <Decides key={each.metric} summary={summary} metric={each.metric} trials={score.numbers.filter((value) => !Number.isNaN(value)).length} />)}
    </>
  );
}
