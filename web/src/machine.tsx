// This machine: what it has, who holds it, and what waits for it.
import { get, type Machine } from "./api";
import { useLive } from "./live";
import { Section, Trouble } from "./parts";
import { amount } from "./words";

export function MachinePage() {
  const { value, error } = useLive((signal) => get<Machine>("/v1/machine", signal), "machine");
  if (value === null) return <Trouble error={error} />;
  return (
    <>
      <h1>This machine</h1>
      <Trouble error={error} />
      <table class="bars">
        <tbody>
          {Object.entries(value.total).map(([name, total]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                {amount(name, value.held[name] ?? 0)} of {amount(name, total)} held
              </td>
              <td class="wide">
                <meter min={0} max={Math.max(total, 1)} value={value.held[name] ?? 0} aria-label={`${name} held`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">Limits: {value.enforced || "advice only"}.</p>
      {value.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      {value.devices.length > 0 && (
        <Section title="Devices">
          <pre>{JSON.stringify(value.devices, null, 1)}</pre>
        </Section>
      )}
      <Section title="Who holds it">{value.holders.length === 0 ? <p>Nobody.</p> : <Things list={value.holders} />}</Section>
      {value.waiting.length > 0 && (
        <Section title="What waits">
          <Things list={value.waiting} />
        </Section>
      )}
    </>
  );
}

/// A list of objects as a table of their keys.
function Things({ list }: { list: object[] }) {
  const keys = [...new Set(list.flatMap((each) => Object.keys(each)))];
  const words = (value: unknown): string =>
    value === null || value === undefined
      ? ""
      : typeof value === "object"
        ? Object.entries(value)
            .map(([name, each]) => `${name} ${typeof each === "number" ? amount(name, each) : String(each)}`)
            .join(", ")
        : String(value);
  return (
    <table>
      <thead>
        <tr>
          {keys.map((key) => (
            <th scope="col" key={key}>
              {key}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {list.map((each, row) => (
          <tr key={row}>
            {keys.map((key) => (
              <td key={key}>{words((each as Record<string, unknown>)[key])}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
