// This machine and the clusters: their resources, allocations and queues.
import { type Device, get, type Holder, type Topology, type Waiting } from "./api";
import { useLive } from "./live";
import { Section, Trouble, useNow } from "./parts";
import { link } from "./route";
import { ago, amount, duration } from "./words";

const amounts = (of: Record<string, number>): string =>
  Object.entries(of)
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${name} ${amount(name, value)}`)
    .join(", ");

function Bars({ total, held }: { total: Record<string, number>; held: (name: string) => number }) {
  return (
    <table class="bars">
      <tbody>
        {Object.entries(total).map(([name, all]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              {amount(name, held(name))} of {amount(name, all)} used
            </td>
            <td class="wide">
              <meter min={0} max={Math.max(all, 1)} value={held(name)} aria-label={`${name} used`} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/// A link to the run or task that a label such as "digits-3/17" names.
const Label = ({ of }: { of: string }) => <a href={link("runs", ...of.split("/", 1), ...(of.includes("/") ? [of.slice(of.indexOf("/") + 1)] : []))}>{of}</a>;

const part_of = (device: Device, holder: Holder): string => {
  const share = holder.devices.find((each) => each.uuid === device.uuid)!;
  return share.whole ? "whole" : [share.gpu_mem > 0 && amount("gpu_mem", share.gpu_mem), share.gpu_slots > 0 && `${share.gpu_slots} slots`].filter(Boolean).join(", ");
};

function Gpu({ device, holders }: { device: Device; holders: Holder[] }) {
  const mine = holders.filter((holder) => holder.devices.some((each) => each.uuid === device.uuid));
  const memory = device.total?.gpu_mem ?? 0;
  const held = memory - (device.free?.gpu_mem ?? 0);
  return (
    <li class={`card ${device.in_service ? "" : "sick"}`}>
      <strong>GPU {device.index}</strong> {device.model}
      {device.in_service ? (
        <>
          <meter min={0} max={Math.max(memory, 1)} value={held} aria-label={`memory of GPU ${device.index} used`} />
          <small>
            {amount("gpu_mem", held)} of {amount("gpu_mem", memory)}
            {device.total && device.total.gpu_slots > 0 && `; ${device.total.gpu_slots - (device.free?.gpu_slots ?? 0)} of ${device.total.gpu_slots} slots`}
          </small>
        </>
      ) : (
        <p class="trouble">out of service: {device.because}</p>
      )}
      <ul>
        {mine.map((holder, index) => (
          <li key={index}>
            <Label of={holder.label} /> <small>{part_of(device, holder)}</small>
          </li>
        ))}
        {device.foreign.map((each) => (
          <li key={each.pid}>
            {each.program} <small>not started by Berth, pid {each.pid}, {amount("gpu_mem", each.memory)}</small>
          </li>
        ))}
      </ul>
    </li>
  );
}

const kRadius = 130;
const kKinds = [
  { name: "NVLink or xGMI", width: 3, found: (link_: string) => /NV|XGMI/i.test(link_) },
  { name: "a PCIe switch", width: 1.5, found: (link_: string) => /^(PIX|PXB)/.test(link_) },
];

/// The devices on a circle, island by island, and the fast links between them.
function Picture({ known, devices }: { known: Topology; devices: Device[] }) {
  const order = known.islands.flat();
  const islands = known.islands.filter((island) => island.length > 1);
  const at = new Map(order.map((index, place) => [index, { x: 180 + kRadius * Math.sin((2 * Math.PI * place) / order.length), y: 160 - kRadius * Math.cos((2 * Math.PI * place) / order.length) }]));
  const { devices: all, links } = known.topology;
  const pairs = all.flatMap((a, i) => all.slice(i + 1).map((b, j) => ({ a, b, words: links[i]![i + 1 + j]!, kind: kKinds.findIndex((kind) => kind.found(links[i]![i + 1 + j]!)) })));
  const of = (index: number): Device | undefined => devices.find((each) => each.index === index);
  return (
    <figure class="topology">
      <svg width="360" height="320" role="img" aria-label={`${all.length} devices in ${known.islands.length} islands: ${known.islands.map((island) => island.join(" ")).join("; ")}`}>
        {pairs
          .filter((pair) => pair.kind >= 0)
          .map((pair) => {
            const [from, to] = [at.get(pair.a.index)!, at.get(pair.b.index)!];
            return (
              <line key={`${pair.a.index} ${pair.b.index}`} x1={from.x} y1={from.y} x2={to.x} y2={to.y} class={`kind${pair.kind}`} stroke-width={kKinds[pair.kind]!.width}>
                <title>{`${pair.a.index} and ${pair.b.index}: ${pair.words}`}</title>
              </line>
            );
          })}
        {all.map((device) => {
          const place = at.get(device.index)!;
          const one = of(device.index);
          const held = one?.total && one.free ? 1 - one.free.gpu_mem / Math.max(1, one.total.gpu_mem) : 0;
          return (
            <g key={device.index} class={`gpu island${known.islands.findIndex((island) => island.includes(device.index)) % 4} ${one && !one.in_service ? "sick" : held > 0 ? "held" : ""}`}>
              <title>{`GPU ${device.index}, ${device.model}, NUMA node ${device.numa}`}</title>
              <circle cx={place.x} cy={place.y} r="17" />
              <text x={place.x} y={place.y + 4} text-anchor="middle">
                {device.index}
              </text>
            </g>
          );
        })}
      </svg>
      <figcaption class="note">
        {known.topology.name && `${known.topology.name}; `}
        {islands.length > 0 ? `islands: ${islands.map((island) => island.join(" ")).join("; ")}` : "no two devices share a fast link"}. Thick: {kKinds[0]!.name}; thin: {kKinds[1]!.name}; filled: in use.
      </figcaption>
    </figure>
  );
}

function Held({ list, now, reasons }: { list: Holder[]; now: number; reasons: boolean }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={reasons ? "queue" : "allocations"}>
      <table>
        <thead>
          <tr>
            {["name", "resources", "cores", "GPUs", "user", "priority", reasons ? "queued" : "started"].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list.map((each, row) => (
            <tr key={row}>
              <th scope="row">
                <Label of={each.label} />
              </th>
              <td>{amounts(each.resources)}</td>
              <td>{each.cores.join(" ")}</td>
              <td>{each.devices.map((device) => device.index).join(" ")}</td>
              <td>{each.user}</td>
              <td>{each.priority}</td>
              <td>{ago(each.since, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/// The expected start of a queued request, and its basis.
function expected(waiting: Waiting, now: number): string {
  if (waiting.expected_start === null) return `the start is unknown: ${waiting.expected_by}`;
  const left = Math.max(0, Date.parse(waiting.expected_start) - now);
  return `it is expected to start in ${waiting.at_most ? "at most" : "about"} ${duration(left)}, ${waiting.expected_by}`;
}

/// The resources that a queued request lacks.
function lacking(waiting: Holder, free: Record<string, number>): string {
  const lacks = Object.entries(waiting.resources).filter(([name, requested]) => requested > (free[name] ?? 0));
  return lacks.length === 0
    ? `${waiting.label} waits for its turn in the queue; its resources are free`
    : `${waiting.label} waits for ${lacks.map(([name, requested]) => `${name} ${amount(name, requested)} (${amount(name, free[name] ?? 0)} free)`).join(", ")}`;
}

function Clusters() {
  const known = useLive((signal) => get("/v1/clusters", {}, signal), "clusters", true);
  const asked = useLive(async (signal) => ((known.value?.clusters.length ?? 0) > 0 ? await get("/v1/top", {}, signal) : null), `top ${known.value?.clusters.length}`, true);
  if (known.value === null || known.value.clusters.length === 0) return <Trouble error={known.error} />;
  return (
    <Section title="Clusters" aside={<button onClick={asked.again}>Refresh</button>}>
      <Trouble error={asked.error} />
      {asked.value === null && asked.error === null && <p class="note">Waiting for the clusters.</p>}
      {known.value.clusters.map((entry) => {
        const cluster = asked.value?.clusters?.find((each) => each.name === entry.name);
        return (
          <section key={entry.name}>
            <h3>
              {entry.name} <small>{entry.kind}</small>
            </h3>
            <Trouble error={entry.error ?? cluster?.error ?? null} />
            {(cluster?.hosts ?? []).map((host) => (
              <div key={host.host} class="host">
                <strong>{host.host}</strong> {host.state} <small>{host.holders}</small>
                <Trouble error={host.error ?? null} />
                {host.total && <Bars total={host.total} held={(name) => (host.total![name] ?? 0) - (host.free?.[name] ?? 0)} />}
              </div>
            ))}
          </section>
        );
      })}
    </Section>
  );
}

export function MachinePage() {
  const { value, error } = useLive((signal) => get("/v1/machine", {}, signal), "machine");
  const topology = useLive(async (signal) => ((value?.devices.length ?? 0) > 0 ? await get("/v1/topology", {}, signal) : null), `topology ${value?.devices.length}`, true);
  const now = useNow();
  if (value === null) return <Trouble error={error} />;
  return (
    <>
      <h1>This machine</h1>
      <Trouble error={error} />
      <Bars total={value.total} held={(name) => value.held[name] ?? 0} />
      <p class="note">Limits: {value.enforced || "not enforced"}.</p>
      {value.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      {value.devices.length > 0 && (
        <Section title="GPUs" aside={`${value.devices.filter((each) => each.in_service).length} of ${value.devices.length} in service`}>
          <div class="beside">
            <ul class="cards">
              {value.devices.map((device) => (
                <Gpu key={device.uuid} device={device} holders={value.holders} />
              ))}
            </ul>
            {topology.value && topology.value.topology.devices.length > 1 && <Picture known={topology.value} devices={value.devices} />}
          </div>
          <Trouble error={topology.error} />
        </Section>
      )}
      <Section title="Allocations">{value.holders.length === 0 ? <p>None.</p> : <Held list={value.holders} now={now} reasons={false} />}</Section>
      {value.waiting.length > 0 && (
        <Section title="Queue">
          <Held list={value.waiting} now={now} reasons />
          <ul>
            {value.waiting.map((each, index) => (
              <li key={index}>
                {lacking(each, value.free)}; {expected(each, now)}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Clusters />
    </>
  );
}
