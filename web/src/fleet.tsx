// A fleet of inference servers: its plan, cost and latencies, and plans for other loads and capacities.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Allocation, type FleetPlan, get, type ServerPlan } from "./api";
import { DaySection } from "./day";
import { useLive } from "./live";
import { Pick, Section, Trouble } from "./parts";
import { link } from "./route";

const cents = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 2 });
const signed = (value: number): string => (value > 0 ? "+" : "") + cents(value);
const ms = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });

/// "2 × H100 + 1 × L4", as its parts have it.
export const in_words = (one: Allocation | undefined): string =>
  !one || one.accelerator === "" ? "none" : (one.parts ?? [one]).map((part) => `${part.numReplicas} × ${part.accelerator}${part.role ? ` ${part.role}` : ""}`).join(" + ") + (one.spot ? " (spot)" : "");

/// A value of a plan against what it is to be at most.
function Against({ is, most, name = "" }: { is: number | undefined; most: number | undefined; name?: string }) {
  if (is === undefined || (is === 0 && !most)) return null;
  return (
    <span class={most && is > most * 1.0005 ? "over" : ""}>
      {name}
      {ms(is)}
      {most ? <small> / {ms(most)}</small> : null}
    </span>
  );
}

function Tail({ found, wanted }: { found: Record<string, number> | undefined; wanted: Record<string, number> }) {
  const names = new Set([...Object.keys(wanted), ...(found?.["p95"] === undefined ? [] : ["p95"])]);
  return (
    <>
      {[...names].map((name) => (
        <div key={name}>
          <Against is={found?.[name]} most={wanted[name]} name={`${name} `} />
        </div>
      ))}
    </>
  );
}

function Servers({ plan, base }: { plan: FleetPlan; base: FleetPlan }) {
  const [wanted, set_wanted] = useState("");
  const names = Object.keys(plan.servers).filter((name) => `${name} ${plan.servers[name]!.class} ${in_words(plan.allocations[name])} ${plan.reasons[name]?.text}`.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <p class="tools">
        <input type="search" placeholder="filter: H100" aria-label="filter servers" value={wanted} onInput={(event) => set_wanted(event.currentTarget.value)} />
        <span class="note">
          {names.length} of {Object.keys(plan.servers).length} servers
        </span>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="servers">
        <table>
          <thead>
            <tr>
              {["server", "class", "allocation", "cost, cents/h", "ITL / SLO, ms", "TTFT / SLO, ms", "utilization", "change", "reason"].map((head) => (
                <th scope="col" key={head}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.slice(0, 400).map((name) => {
              const server: ServerPlan = plan.servers[name]!;
              const one = plan.allocations[name];
              const serving = one && one.numReplicas > 0 ? one : undefined;
              const moved = in_words(one) !== in_words(base.allocations[name]);
              return (
                <tr key={name} class={moved ? "moved" : ""}>
                  <th scope="row">{name}</th>
                  <td>{server.class || "Free"}</td>
                  <td>
                    {in_words(one)}
                    {moved && <small> was {in_words(base.allocations[name])}</small>}
                  </td>
                  <td>{one ? cents(one.cost) : ""}</td>
                  <td>
                    <Against is={serving?.itlAverage} most={server.slo.itl} />
                    <Tail found={serving?.itlPercentiles} wanted={server.slo.itlPercentiles} />
                  </td>
                  <td>
                    <Against is={serving?.ttftAverage} most={server.slo.ttft} />
                    <Tail found={serving?.ttftPercentiles} wanted={server.slo.ttftPercentiles} />
                  </td>
                  <td>{serving ? `${(100 * server.utilisation).toFixed(0)} %` : ""}</td>
                  <td>{server.change}</td>
                  <td class={plan.reasons[name]?.status === "served" ? "" : "over"}>{plan.reasons[name]?.text}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Capacity({ plan }: { plan: FleetPlan }) {
  return (
    <table class="bars">
      <tbody>
        {plan.totals.map((type) => (
          <tr key={type.type}>
            <th scope="row">{type.type}</th>
            <td>
              {type.count}
              {type.limit !== null && ` of ${type.limit}`}; {cents(type.cost)} cents an hour
              {type.shadowPrice > 0 && <small> value of one more: {cents(type.shadowPrice)}</small>}
            </td>
            <td class="wide">{type.limit !== null && <meter min={0} max={Math.max(1, type.limit)} value={type.count} aria-label={`${type.type} used`} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cost({ plan, base }: { plan: FleetPlan; base: FleetPlan }) {
  const before = Object.values(plan.servers).reduce((sum, each) => sum + each.current.cost, 0);
  const unserved = Object.entries(plan.proof.unserved_by_priority).filter(([, count]) => count > 0);
  return (
    <>
      <p>
        <strong class="figure">{cents(plan.cost)}</strong> cents an hour{plan !== base && <>, {signed(plan.cost - base.cost)} compared with the original plan</>}; {signed(plan.cost - before)} compared with the current allocations, which cost {cents(before)}.
        {plan.watts > 0 && ` It draws ${Math.round(plan.watts).toLocaleString("en")} W.`}
      </p>
      <p class="note">
        The value of this plan is {cents(plan.proof.value)}: the additional cost, plus a penalty for each move to another accelerator. No plan has a value below {cents(plan.proof.bound)} (gap {(100 * plan.proof.gap).toFixed(4)} %){plan.proof.stopped && ", and the time limit stopped the search"}.
      </p>
      {unserved.map(([priority, count]) => (
        <p key={priority} class="trouble">
          {count} of priority {priority} not served; every plan leaves at least {plan.proof.unserved_bound_by_priority[priority]} unserved
        </p>
      ))}
    </>
  );
}

/// The value, once it has rested.
function useRested<T>(value: T, rest_ms: number): T {
  const [rested, set] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => set(value), rest_ms);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested;
}

function Slider({ name, value, most, step, unit, set }: { name: string; value: number; most: number; step: number; unit: string; set: (value: number) => void }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="wide">
        <input type="range" aria-label={name} aria-valuetext={`${value} ${unit}`} min={0} max={most} step={step} value={value} onInput={(event) => set(Number(event.currentTarget.value))} />
      </td>
      <td>
        {value} {unit}
      </td>
    </tr>
  );
}

type Sets = Record<string, number>; // of --set: a path and its value

function WhatIf({ base, sets, change }: { base: FleetPlan; sets: Sets; change: (sets: Sets) => void }) {
  const names = Object.keys(base.servers);
  const [chosen, choose] = useState(names[0] ?? "");
  const rate = base.allocations[chosen]?.load?.arrivalRate ?? 0;
  const path = `server.${chosen}.arrivalRate`;
  const put = (name: string, value: number, usual: number): void => {
    const next = { ...sets };
    if (value === usual) delete next[name];
    else next[name] = value;
    change(next);
  };
  return (
    <>
      <table class="bars sliders">
        <tbody>
          {base.totals
            .filter((type) => type.limit !== null)
            .map((type) => (
              <Slider key={type.type} name={`capacity of ${type.type}`} value={sets[`capacity.${type.type}`] ?? type.limit!} most={Math.max(8, 2 * type.limit!)} step={1} unit="" set={(value) => put(`capacity.${type.type}`, value, type.limit!)} />
            ))}
          {chosen !== "" && <Slider key={chosen} name={`requests per minute of ${chosen}`} value={sets[path] ?? rate} most={Math.max(60, 4 * rate)} step={Math.max(1, Math.round(rate / 50))} unit="/min" set={(value) => put(path, value, rate)} />}
        </tbody>
      </table>
      <p class="tools">
        {names.length > 1 && <Pick label="load of" value={chosen} of={names} chosen={choose} />}
        {Object.keys(sets).length > 0 && <button onClick={() => change({})}>Reset</button>}
      </p>
    </>
  );
}

function Plan({ number, has_day }: { number: number; has_day: boolean }) {
  const base = useLive((signal) => get("/v1/fleets/{number}/plan", { number }, signal), `fleet ${number}`, true);
  const [sets, change] = useState<Sets>({});
  const rested = useRested(sets, 30);
  const set = Object.entries(rested).map(([path, value]) => `${path}=${value}`);
  const took = useRef(0);
  const tried = useLive(
    async (signal) => {
      if (set.length === 0) return null;
      const begun = performance.now();
      const found = await get("/v1/fleets/{number}/plan", { number, percentiles: "closed-form", set }, signal);
      took.current = performance.now() - begun;
      return found;
    },
    `fleet ${number} ${set.join(" ")}`,
    true,
  );
  const last = useRef<FleetPlan | null>(null);
  if (tried.value !== null || set.length === 0) last.current = tried.value;
  // The simulator takes longer, so it runs only after the sliders have rested.
  const resting = useRested(sets, 700);
  const simulated = useLive(
    async (signal) => {
      const set = Object.entries(resting).map(([path, value]) => `${path}=${value}`);
      return set.length === 0 ? null : { of: resting, plan: await get("/v1/fleets/{number}/plan", { number, set }, signal) };
    },
    `fleet ${number} simulated ${JSON.stringify(resting)}`,
    true,
  );
  const exact = simulated.value?.of === rested ? simulated.value.plan : null;
  if (base.value === null) return <Trouble error={base.error} />;
  const plan = exact ?? last.current ?? base.value;
  return (
    <>
      <Trouble error={tried.error ?? base.error} />
      <Cost plan={plan} base={base.value} />
      <Section title="Capacity">
        <Capacity plan={plan} />
      </Section>
      <Section title="What if" aside={set.length > 0 && took.current > 0 ? `planned in ${Math.round(took.current)} ms, percentiles by ${exact ? "the simulator" : "closed form"}` : "percentiles by closed form, then by the simulator"}>
        <WhatIf base={base.value} sets={sets} change={change} />
      </Section>
      <Section title="Servers">
        <Servers plan={plan} base={base.value} />
      </Section>
      {has_day && <DayOf number={number} />}
    </>
  );
}

function DayOf({ number }: { number: number }) {
  const { value, error } = useLive((signal) => get("/v1/fleets/{number}/day", { number }, signal), `day ${number}`, true);
  return value === null ? <Trouble error={error} /> : <DaySection day={value} />;
}

export function FleetPage({ number }: { number: number }) {
  const { value, error } = useLive((signal) => get("/v1/fleets", {}, signal), "fleets", true);
  if (value === null) return <Trouble error={error} />;
  const name = value.fleets[number];
  if (name === undefined)
    return (
      <>
        <h1>Fleets</h1>
        <p>
          No fleet was given: start <code>berth dashboard --fleet fleet.json</code> or <code>berth serve fleet.json</code> to see its plan here.
        </p>
      </>
    );
  return (
    <>
      <h1>{name}</h1>
      {value.fleets.length > 1 && <Pick label="fleet" value={name} of={value.fleets} chosen={(one) => (window.location.hash = link("fleets", String(value.fleets.indexOf(one))))} />}
      <Plan key={number} number={number} has_day={value.profile !== ""} />
    </>
  );
}
