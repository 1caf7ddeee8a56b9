// A fleet over a day: the cost of each plan by the hour, and the replicas of each server.
import { useMemo } from "preact/hooks";
import type { Day } from "./api";
import { type Line, Lines } from "./charts";
import { Section } from "./parts";
import { scale_of } from "./scale";

const kColours: Record<string, string> = { day: "hsl(215 75% 50%)", greedy: "hsl(30 80% 45%)", static: "hsl(0 0% 50%)" };
const hour = (seconds: number): string => `${String(Math.floor(seconds / 3600)).padStart(2, "0")}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")}`;
const cents = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 0 });

/// One row per server, one column per window; the bar shows the number of replicas, a line a change of accelerator.
function Replicas({ day }: { day: Day }) {
  const windows = day.plans["day"]?.windows ?? [];
  const servers = Object.keys(windows[0]?.allocations ?? {});
  const most = Math.max(1, ...windows.flatMap((each) => Object.values(each.allocations).map((one) => one.numReplicas)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="replicas over the day">
      <table class="replicas">
        <thead>
          <tr>
            <th scope="col">server</th>
            {day.windows.map((window, at) => (
              <th scope="col" key={at}>
                {day.windows.length <= 30 || at % 6 === 0 ? hour(window.start) : ""}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {servers.slice(0, 200).map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {windows.map((window, at) => {
                const one = window.allocations[name]!;
                const before = windows[at - 1]?.allocations[name];
                return (
                  <td key={at} class={before && before.accelerator !== one.accelerator ? "other" : ""} title={`${hour(day.windows[at]!.start)} ${one.numReplicas} × ${one.accelerator}${one.serves ? "" : ", not served"}`}>
                    <span class={one.serves ? "share" : "share over"} style={{ "--part": String(one.numReplicas / most) }} />
                    {one.numReplicas || ""}
                    {(!before || before.accelerator !== one.accelerator) && <small> {one.accelerator}</small>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function DaySection({ day }: { day: Day }) {
  const drawn = useMemo(() => {
    const names = Object.keys(day.plans);
    const hours = day.windows.map((window) => (window.start - day.windows[0]!.start) / 3600);
    const end = hours[hours.length - 1]! + day.windows[day.windows.length - 1]!.length / 3600;
    const lines = names.map((name): Line => {
      const costs = day.plans[name]!.windows.map((window, at): [number, number] => [hours[at]!, window.cost / (day.windows[at]!.length / 3600)]);
      return { name, points: [...costs, [end, costs[costs.length - 1]![1]]], colour: () => kColours[name] ?? "gray", strength: 1, cut: false };
    });
    const scale = scale_of(Float64Array.from([0, ...lines.flatMap((line) => line.points.map((point) => point[1] * 1.05))]));
    return { lines, scale, end };
  }, [day]);
  return (
    <Section title="Over the day" aside={`lower bound of the cost: ${cents(day.bound)} cents (gap ${(100 * day.gap).toFixed(2)} %)`}>
      <Lines lines={drawn.lines} scale={drawn.scale} across="hour of the day" up="cents per hour" to={drawn.end} label={`cents per hour over the day of the plans ${drawn.lines.map((line) => line.name).join(", ")}`} stairs />
      <div class="scroll" tabIndex={0} role="region" aria-label="plans of the day">
        <table>
          <thead>
            <tr>
              {["plan", "cost, cents", "starts", "stops", "accelerator changes", "unserved hours"].map((head) => (
                <th scope="col" key={head}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(day.plans).map(([name, plan]) => (
              <tr key={name}>
                <th scope="row">
                  <svg width="12" height="12" aria-hidden="true">
                    <rect width="12" height="12" fill={kColours[name] ?? "gray"} />
                  </svg>{" "}
                  {name === "day" ? "planned over the day" : name === "static" ? "sized for the busiest hour" : "each hour separately (greedy)"}
                </th>
                <td>{cents(plan.cost)}</td>
                <td>{plan.starts}</td>
                <td>{plan.stops}</td>
                <td>{plan.changes}</td>
                <td>{plan.unserved_hours}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h3>Replicas</h3>
      <Replicas day={day} />
    </Section>
  );
}
