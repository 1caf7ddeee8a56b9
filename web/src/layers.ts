// The drawing of a graph in layers: what waits for something stands right of it, and lines cross little.

export interface Node {
  name: string;
  layer: number;
  place: number; // within its layer, from the top
  passed: boolean; // a line goes through here, and nothing stands here
}

export interface Edge {
  from: string;
  to: string;
  through: Node[]; // both ends, and what it passes between
}

export interface Layers {
  nodes: Node[];
  edges: Edge[];
  layers: number;
  tallest: number;
}

const kSweeps = 8;

export function layered(steps: { name: string; after: string[] }[]): Layers {
  const by_name = new Map(steps.map((step) => [step.name, step]));
  const layer_of = new Map<string, number>();
  const layer = (name: string, seen: Set<string>): number => {
    const known = layer_of.get(name);
    if (known !== undefined) return known;
    if (seen.has(name)) return 0; // a flow has no cycle
    seen.add(name);
    const after = by_name.get(name)?.after ?? [];
    const found = after.reduce((most, each) => Math.max(most, 1 + layer(each, seen)), 0);
    layer_of.set(name, found);
    return found;
  };
  const rows: Node[][] = [];
  const node = (name: string, at: number, passed: boolean): Node => {
    const row = (rows[at] ??= []);
    const made = { name, layer: at, place: row.length, passed };
    row.push(made);
    return made;
  };
  const standing = new Map(steps.map((step) => [step.name, node(step.name, layer(step.name, new Set()), false)]));
  const before = new Map<Node, Node[]>();
  const behind = new Map<Node, Node[]>();
  const join = (a: Node, b: Node): void => {
    before.set(b, [...(before.get(b) ?? []), a]);
    behind.set(a, [...(behind.get(a) ?? []), b]);
  };
  const edges: Edge[] = [];
  for (const step of steps) {
    const to = standing.get(step.name)!;
    for (const name of step.after) {
      const from = standing.get(name);
      if (!from) continue;
      const through = [from];
      for (let at = from.layer + 1; at < to.layer; at += 1) through.push(node(`${name} ${step.name}`, at, true));
      through.push(to);
      for (let i = 1; i < through.length; i += 1) join(through[i - 1]!, through[i]!);
      edges.push({ from: name, to: step.name, through });
    }
  }
  // Each stands at the mean of what it is joined with, from the left and from the right by turns (Sugiyama, 1981).
  for (let sweep = 0; sweep < kSweeps; sweep += 1) {
    const neighbours = sweep % 2 === 0 ? before : behind;
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const mean = new Map(
        row.map((each) => {
          const of = neighbours.get(each) ?? [];
          return [each, of.length === 0 ? each.place : of.reduce((sum, other) => sum + other.place, 0) / of.length];
        }),
      );
      row.sort((a, b) => mean.get(a)! - mean.get(b)! || a.place - b.place);
      row.forEach((each, place) => (each.place = place));
    }
  }
  return { nodes: rows.flat(), edges, layers: rows.length, tallest: Math.max(0, ...rows.map((row) => row.length)) };
}
