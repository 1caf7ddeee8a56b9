// The trials of a run as columns, from the lines of berth show --csv: a hundred thousand of them have
// to be read and drawn while somebody waits.

export interface Column {
  name: string; // "lr"
  kind: "param" | "metric";
  numbers: Float64Array; // NaN: none
  texts: string[] | null; // of a column that is not all numbers
  choices: string[]; // the different texts, in the order of their appearance
  scale?: "linear" | "log"; // as the space says; else by how wide the values are
}

export interface Trials {
  count: number;
  ids: string[];
  states: string[];
  causes: string[];
  hosts: string[];
  started: Float64Array; // ms since 1970; NaN: it has not
  ended: Float64Array;
  columns: Column[];
}

/// The cells of the next line from `at` on; quotes stand around cells with commas, quotes and line ends.
function cells_from(csv: string, at: number, cells: string[]): number {
  cells.length = 0;
  for (;;) {
    if (csv.charCodeAt(at) === 34) {
      let cell = "";
      let from = at + 1;
      for (;;) {
        const quote = csv.indexOf('"', from);
        if (quote < 0) {
          cells.push(cell + csv.slice(from));
          return csv.length;
        }
        cell += csv.slice(from, quote);
        from = quote + 1;
        if (csv.charCodeAt(from) !== 34) break;
        cell += '"';
        from += 1;
      }
      cells.push(cell);
      at = from;
    } else {
      let end = at;
      for (let c = csv.charCodeAt(end); end < csv.length && c !== 44 && c !== 10 && c !== 13; c = csv.charCodeAt(end)) end += 1;
      cells.push(csv.slice(at, end));
      at = end;
    }
    const c = csv.charCodeAt(at);
    if (at >= csv.length) return at;
    at += 1;
    if (c === 13 && csv.charCodeAt(at) === 10) return at + 1;
    if (c !== 44) return at;
  }
}

/// The cells of a CSV, column by column, and the row of each task.
export interface Cells {
  header: string[];
  columns: string[][];
  rows: Map<string, number>;
}

/// Reads a CSV; a task that `before` has takes its row, which is changed in place.
export function read_cells(csv: string, before: Cells | null): Cells {
  const cells: string[] = [];
  let at = cells_from(csv, 0, cells);
  const found = before ?? { header: [], columns: [], rows: new Map<string, number>() };
  const place = cells.map((name) => {
    const known = found.header.indexOf(name);
    if (known >= 0) return known;
    found.columns.push(new Array<string>(found.rows.size).fill(""));
    return found.header.push(name) - 1;
  });
  const id = cells.indexOf("id");
  while (at < csv.length) {
    at = cells_from(csv, at, cells);
    if (cells.length !== place.length) continue;
    const known = found.rows.get(cells[id]!);
    const row = known ?? found.rows.size;
    if (known === undefined) {
      found.rows.set(cells[id]!, row);
      for (const column of found.columns) column.push("");
    }
    for (let i = 0; i < cells.length; i += 1) found.columns[place[i]!]![row] = cells[i]!;
  }
  return found;
}

const kLate_ms = 60_000; // a host's clock may be so far behind another's
/// From when on a task may have ended that is not in these cells; "": any time.
export function ended_after({ header, columns }: Cells): string {
  const last = (columns[header.indexOf("ended")] ?? []).reduce((latest, each) => (each > latest ? each : latest), "");
  return last === "" ? "" : `${new Date(Date.parse(last) - kLate_ms).toISOString().slice(0, 19)}Z`;
}

export const read_trials = (csv: string): Trials => trials_of(read_cells(csv, null));

export function trials_of({ header, columns: rows }: Cells): Trials {
  const named = (name: string): string[] => rows[header.indexOf(name)] ?? [];
  const times = (name: string): Float64Array => Float64Array.from(named(name), (text) => (text === "" ? NaN : Date.parse(text)));
  const columns: Column[] = [];
  header.forEach((name, i) => {
    const kind = name.startsWith("params.") ? "param" : name.startsWith("metrics.") ? "metric" : null;
    if (kind === null) return;
    const texts = [...rows[i]!];
    const numbers = Float64Array.from(texts, (text) => (text === "" ? NaN : Number(text)));
    const numeric = texts.every((text, row) => text === "" || !Number.isNaN(numbers[row]!));
    const choices = numeric ? [] : [...new Set(texts)];
    if (!numeric) {
      const place = new Map(choices.map((text, index) => [text, index]));
      texts.forEach((text, row) => (numbers[row] = place.get(text)!));
    }
    columns.push({ name: name.slice(name.indexOf(".") + 1), kind, numbers, texts: numeric ? null : texts, choices });
  });
  return {
    count: named("id").length,
    ids: [...named("id")],
    states: [...named("state")],
    causes: [...named("cause")],
    hosts: [...named("host")],
    started: times("started"),
    ended: times("ended"),
    columns,
  };
}

/// How the best of a search grew: the score of each trial that was better than all before it.
export function best_so_far(score: Column, maximise: boolean): { row: number; score: number }[] {
  const steps: { row: number; score: number }[] = [];
  score.numbers.forEach((value, row) => {
    const best = steps[steps.length - 1]?.score;
    if (!Number.isNaN(value) && (best === undefined || (maximise ? value > best : value < best))) steps.push({ row, score: value });
  });
  return steps;
}

export const cell_text = (column: Column, row: number): string =>
  column.texts ? column.texts[row]! : Number.isNaN(column.numbers[row]!) ? "" : short(column.numbers[row]!);

export function short(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const rounded = Number(value.toPrecision(6));
  return Math.abs(rounded) < 1e-4 ? rounded.toExponential() : String(rounded);
}

/// The rows by a column, those without a value last.
export function sorted(trials: Trials, by: Float64Array, descending: boolean): Uint32Array {
  const rows = Uint32Array.from({ length: trials.count }, (_, row) => row);
  const sign = descending ? -1 : 1;
  return rows.sort((a, b) => {
    const x = by[a]!;
    const y = by[b]!;
    const lacks = Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return lacks !== 0 ? lacks : Number.isNaN(x) || x === y ? a - b : sign * (x - y);
  });
}
