// All runs: active, failed and done.
import { get, type Run } from "./api";
import { useLive } from "./live";
import { Badge, counts_text, is_under_way, Progress, Section, Trouble, useNow } from "./parts";
import { link } from "./route";
import { ago, duration } from "./words";

function Rows({ runs, now }: { runs: Run[]; now: number }) {
  return (
    <div class="scroll">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">run</th>
            <th scope="col">state</th>
            <th scope="col" class="wide">
              tasks
            </th>
            <th scope="col" class="created">
              created
            </th>
            <th scope="col">duration</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              <th scope="row">
                <a href={link("runs", run.id)}>{run.id}</a>
                {Object.entries(run.labels).map(([name, value]) => (
                  <span key={name} class="label">
                    {name}={value}
                  </span>
                ))}
              </th>
              <td>
                <Badge state={run.state} />
              </td>
              <td class="wide">
                <Progress counts={run.counts} />
                <small>{counts_text(run.counts)}</small>
              </td>
              <td class="created">{ago(run.created, now)}</td>
              <td>{run.started ? duration((run.ended ? Date.parse(run.ended) : now) - Date.parse(run.started)) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const kMostEarlier = 200;

export function Home() {
  const { value, error } = useLive((signal) => get("/v1/runs", {}, signal), "runs");
  const now = useNow();
  if (value === null) return <Trouble error={error} />;
  const newest = [...value.runs].reverse();
  const active = newest.filter(is_under_way);
  const done = newest.filter((run) => run.state === "done");
  const trouble = newest.filter((run) => !is_under_way(run) && run.state !== "done");
  const earlier = (runs: Run[]) => <Rows runs={runs.slice(0, kMostEarlier)} now={now} />;
  return (
    <>
      <h1>Runs</h1>
      <Trouble error={error} />
      {value.runs.length === 0 && (
        <p>
          Nothing has run yet. Try <code>berth run examples/digits/sweep.yaml</code>.
        </p>
      )}
      {active.length > 0 && (
        <Section title="Running and queued">
          <Rows runs={active} now={now} />
        </Section>
      )}
      {trouble.length > 0 && <Section title="Failed, interrupted or stopped">{earlier(trouble)}</Section>}
      {done.length > 0 && <Section title="Done">{earlier(done)}</Section>}
    </>
  );
}
