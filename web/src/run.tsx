// A run: its progress, its charts, its tasks, and why a task waits or failed.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, get, type Goal, post, type Posts, type Summary } from "./api";
import { Flow } from "./flow";
import { useLive } from "./live";
import { Badge, counts_text, is_under_way, Progress, Section, Trouble, useNow } from "./parts";
import { link } from "./route";
import { scores_of, Search } from "./search";
import { useControls } from "./session";
import { Timeline } from "./timeline";
import { cell_text, type Cells, type Column, ended_after, read_cells, sorted, type Trials, trials_of } from "./trials";
import { amount, duration } from "./words";

/// A browser heeds autofocus but once in the life of a page.
const focused = (element: HTMLElement | null): void => element?.focus();

interface Action {
  name: string;
  path: keyof Posts & `/v1/runs/{run}/${string}`;
  question: string;
}

function actions_of(summary: Summary): Action[] {
  const { run } = summary;
  const list: Action[] = [];
  if (is_under_way(run))
    list.push({ name: "Stop", path: "/v1/runs/{run}/stop", question: `Stop ${run.id}? It can be resumed.` });
  if (run.state === "stopped" || run.state === "interrupted")
    list.push({ name: "Resume", path: "/v1/runs/{run}/resume", question: `Resume ${run.id}?` });
  if (run.counts.failed > 0 && !is_under_way(run))
    list.push({ name: "Retry failed tasks", path: "/v1/runs/{run}/retry", question: `Retry the ${run.counts.failed} failed tasks of ${run.id}?` });
  return list;
}

function Actions({ summary, done }: { summary: Summary; done: () => void }) {
  const may = useControls();
  const [asked, ask] = useState<Action | null>(null);
  const [busy, set_busy] = useState(false);
  const [error, set_error] = useState<string | null>(null);
  const act = async (action: Action): Promise<void> => {
    set_busy(true);
    try {
      await post(action.path, { run: summary.run.id });
      set_error(null);
    } catch (failure) {
      set_error(failure instanceof Error ? failure.message : String(failure));
    }
    set_busy(false);
    ask(null);
    done();
  };
  if (!may) return null;
  return (
    <div class="actions">
      {asked === null ? (
        actions_of(summary).map((action) => (
          <button key={action.name} onClick={() => ask(action)}>
            {action.name}
          </button>
        ))
      ) : (
        <span role="alertdialog" aria-label={asked.question}>
          {asked.question}{" "}
          <button class="sure" disabled={busy} onClick={() => void act(asked)} ref={focused}>
            {asked.name}
          </button>{" "}
          <button disabled={busy} onClick={() => ask(null)}>
            Cancel
          </button>
        </span>
      )}
      <Trouble error={error} />
    </div>
  );
}

const kPage = 100;

function Table({ run, trials, goal }: { run: string; trials: Trials; goal: Goal | undefined }) {
  const [by, set_by] = useState<{ name: string; descending: boolean } | null>(null);
  const [wanted, set_wanted] = useState("");
  const [pages, set_pages] = useState(1);
  const score = useMemo(() => goal && scores_of(trials, goal.metric), [trials]);
  const took = useMemo(() => Float64Array.from(trials.started, (from, row) => trials.ended[row]! - from), [trials]);
  const order = useMemo(() => {
    const numbers = by === null ? score?.numbers : by.name === "took" ? took : trials.columns.find((each) => each.name === by.name)?.numbers;
    if (!numbers) return Uint32Array.from({ length: trials.count }, (_, row) => (by?.descending ? trials.count - 1 - row : row));
    return sorted(trials, numbers, by === null ? goal?.direction === "max" : by.descending);
  }, [trials, by, score]);
  const rows = useMemo(() => {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return order;
    return order.filter((row) => {
      const line = [trials.ids[row], trials.states[row], trials.causes[row], trials.hosts[row], ...trials.columns.map((column) => `${column.name}=${cell_text(column, row)}`)].join(" ").toLowerCase();
      return words.every((word) => line.includes(word));
    });
  }, [order, wanted]);
  const head = (name: string, number = false, title = name) => (
    <th scope="col" key={name} class={number ? "number" : ""} aria-sort={by?.name === name ? (by.descending ? "descending" : "ascending") : undefined}>
      <button class="head" onClick={() => set_by({ name, descending: by?.name === name ? !by.descending : false })}>
        {title}
        {by?.name === name ? (by.descending ? " ↓" : " ↑") : ""}
      </button>
    </th>
  );
  const leads = (column: Column): number => Number(column.kind === "metric" && column.name === goal?.metric);
  const ordered = [...trials.columns].sort((a, b) => leads(b) - leads(a) || (a.kind === b.kind ? 0 : a.kind === "param" ? -1 : 1));
  return (
    <>
      <p class="tools">
        <input type="search" placeholder="filter: failed lr=0.1" aria-label="filter tasks" value={wanted} onInput={(event) => set_wanted(event.currentTarget.value)} />
        <span class="note">
          {rows.length.toLocaleString("en")} of {trials.count.toLocaleString("en")} tasks
        </span>
        <a href={address("/v1/runs/{run}/trials.csv", { run })} download={`${run}.csv`}>
          CSV
        </a>
      </p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {head("task")}
              <th scope="col">state</th>
              {ordered.map((column) => head(column.name, column.texts === null))}
              {head("took", true, "duration")}
              <th scope="col">host</th>
            </tr>
          </thead>
          <tbody>
            {[...rows.slice(0, pages * kPage)].map((row) => (
              <tr key={trials.ids[row]}>
                <th scope="row">
                  <a href={link("runs", run, label_of(trials.ids[row]!))}>{label_of(trials.ids[row]!)}</a>
                </th>
                <td>
                  <Badge state={trials.states[row] as never} />
                </td>
                {ordered.map((column) => (
                  <td key={column.name} class={column.texts ? "" : "number"}>
                    {cell_text(column, row)}
                  </td>
                ))}
                <td class="number">{duration(took[row]!)}</td>
                <td>{trials.hosts[row]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > pages * kPage && <button onClick={() => set_pages(pages * 2)}>Show more</button>}
    </>
  );
}

const label_of = (id: string): string => id.slice(id.indexOf("/") + 1);

function TaskPanel({ run, task }: { run: string; task: string }) {
  const id = `${run}/${task}`;
  const why = useLive((signal) => get("/v1/tasks/{task}/why", { task: id }, signal), `why ${id}`);
  const log = useLive((signal) => get("/v1/tasks/{task}/log", { task: id, tail: String(kMostLog) }, signal), `log ${id}`);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), []);
  const value = why.value;
  return (
    <aside class="panel" ref={panel} aria-label={`task ${id}`}>
      <p>
        <a href={link("runs", run)}>← all tasks</a>
      </p>
      <h2>
        {id} {value && <Badge state={value.state} />}
      </h2>
      <Trouble error={why.error} />
      {value && (
        <>
          <p>{value.why}</p>
          {value.because.length > 0 && (
            <ul>
              {value.because.map((each) => (
                <li key={each}>{each}</li>
              ))}
            </ul>
          )}
          <pre class="command" tabIndex={0}>
            {value.command}
          </pre>
          <div class="scroll" tabIndex={0} role="region" aria-label="attempts">
            <table>
              <thead>
                <tr>
                  {["attempt", "result", "duration", "CPU", "peak memory", "host"].map((name) => (
                    <th scope="col" key={name} class={["duration", "CPU", "peak memory"].includes(name) ? "number" : ""}>
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {value.attempts_made.map((each) => (
                  <tr key={each.number}>
                    <td>{each.number}</td>
                    <td>
                      {each.cause} {each.detail}
                    </td>
                    <td class="number">{each.started && each.ended ? duration(Date.parse(each.ended) - Date.parse(each.started)) : ""}</td>
                    <td class="number">{each.cpu_ms === null ? "" : duration(each.cpu_ms)}</td>
                    <td class="number">{each.peak_mem === null ? "" : amount("mem", each.peak_mem)}</td>
                    <td>{each.host}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      <h3>Log</h3>
      <Trouble error={log.error} />
      {log.value !== null && log.value.length >= kMostLog && (
        <p class="note">
          The end of the log; <a href={address("/v1/tasks/{task}/log", { task: id })}>show all</a>.
        </p>
      )}
      <pre class="log" tabIndex={0}>
        {log.value}
      </pre>
    </aside>
  );
}

const kMostLog = 200_000; // bytes

function Took({ from, to }: { from: string; to: string | null }) {
  const now = useNow();
  return <>; {duration((to ? Date.parse(to) : now) - Date.parse(from))}</>;
}

const Growing = ({ trials }: { trials: Trials }) => <Timeline trials={trials} now={useNow()} />;

export function RunPage({ run, task }: { run: string; task: string | undefined }) {
  const summary = useLive((signal) => get("/v1/runs/{run}/summary", { run }, signal), `summary ${run}`);
  const cells = useRef<Cells | null>(null);
  const trials = useLive(async (signal) => {
    const since = cells.current === null ? "" : ended_after(cells.current);
    const csv = await get("/v1/runs/{run}/trials.csv", since === "" ? { run } : { run, "changed-since": since }, signal);
    cells.current = read_cells(csv, cells.current);
    return trials_of(cells.current);
  }, `trials ${run}`);
  const shown = summary.value;
  if (shown === null)
    return (
      <>
        <h1>{run}</h1>
        {summary.error === null ? <p class="note">…</p> : <Trouble error={summary.error} />}
      </>
    );
  const { run: record, goals } = shown;
  const active = is_under_way(record);
  return (
    <>
      <h1>
        {record.id} <Badge state={record.state} />
      </h1>
      <Progress counts={record.counts} />
      <p>
        {counts_text(record.counts)}
        {record.started && <Took from={record.started} to={record.ended} />}
        {Object.entries(shown.resource_minutes).map(([name, minutes]) => `; ${name === "cpu" ? `${minutes.toPrecision(3)} core-minutes` : `${amount(name, minutes)}-minutes of ${name}`}`)}
      </p>
      {record.error !== "" && <Trouble error={record.error} />}
      <Actions summary={shown} done={summary.again} />
      <Trouble error={summary.error ?? trials.error} />
      {task !== undefined && <TaskPanel key={task} run={run} task={task} />}
      {shown.failures.length > 0 && (
        <Section title="Failures">
          <ul class="failures">
            {shown.failures.slice(0, 10).map((failure) => (
              <li key={failure.id}>
                <a href={link("runs", run, label_of(failure.id))}>{failure.id}</a> {failure.cause}
                {failure.last_lines.length > 0 && <pre>{failure.last_lines.slice(-3).join("\n")}</pre>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {trials.value !== null && (
        <>
          {goals[0] && <Search summary={shown} trials={trials.value} goal={goals[0]} />}
          {record.kind === "flow" && <Flow summary={shown} trials={trials.value} />}
          <Section title="Timeline">
            {active ? <Growing trials={trials.value} /> : <Timeline trials={trials.value} now={0} />}
          </Section>
          <Section title="Tasks">
            <Table run={run} trials={trials.value} goal={goals[0]} />
          </Section>
        </>
      )}
    </>
  );
}
