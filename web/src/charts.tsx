// What a search has found: how its best grew, which values led there, and what one of them does.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Goal } from "./api";
import { Canvas, dots, type Ink, ticks } from "./canvas";
import { Pick } from "./parts";
import { scale_of, type Scale } from "./scale";
import { best_so_far, type Column, short, type Trials } from "./trials";

export const kMargin = { left: 64, right: 12, top: 10, bottom: 26 };
const kWorst = 0.1; // of the scores are left out of an axis: what diverged would flatten the others

interface Shown {
  trials: Trials;
  score: Column;
  goal: Goal;
}

/// The scale of the scores, the best at the top: what a goal minimises grows downwards in worth.
export function worth(score: Column, goal: Goal, left_out = kWorst): Scale {
  const sign = goal.direction === "max" ? -1 : 1;
  const scale = scale_of(Float64Array.from(score.numbers, (value) => sign * value), undefined, left_out);
  if (sign > 0) return scale;
  return { low: -scale.high, high: -scale.low, logarithmic: false, at: (value) => 1 - scale.at(-value) };
}

export function axis(ink: Ink, scale: Scale, column?: Column): void {
  const { context, width, height } = ink;
  const tall = height - kMargin.top - kMargin.bottom;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const marks = column?.texts ? column.choices.map((_, index) => index) : scale.logarithmic ? [scale.low, Math.sqrt(scale.low * scale.high), scale.high] : ticks(scale.low, scale.high, 4);
  for (const mark of marks) {
    const y = kMargin.top + tall * (1 - scale.at(mark));
    context.strokeStyle = ink.line;
    context.beginPath();
    context.moveTo(kMargin.left, y);
    context.lineTo(width - kMargin.right, y);
    context.stroke();
    context.fillStyle = ink.faint;
    context.fillText(column?.texts ? column.choices[mark]!.slice(0, 9) : short(Number(mark.toPrecision(3))), kMargin.left - 6, y);
  }
}

export function History({ trials, score, goal }: Shown) {
  const scale = useMemo(() => worth(score, goal), [score, goal]);
  const draw = (ink: Ink): void => {
    const { context, width, height } = ink;
    axis(ink, scale);
    const wide = width - kMargin.left - kMargin.right;
    const tall = height - kMargin.top - kMargin.bottom;
    const x = (row: number): number => kMargin.left + (wide * (row + 0.5)) / Math.max(1, trials.count);
    const y = (value: number): number => kMargin.top + tall * (1 - scale.at(value));
    const size = trials.count > 2000 ? 1 : trials.count > 300 ? 2 : 3;
    const points: number[] = [];
    let best = NaN;
    const path = new Path2D();
    let begun = false;
    for (let row = 0; row < trials.count; row += 1) {
      const value = score.numbers[row]!;
      if (Number.isNaN(value)) continue;
      points.push(x(row), y(value));
      if (Number.isNaN(best) || (goal.direction === "max" ? value > best : value < best)) {
        if (begun) path.lineTo(x(row), y(best));
        else path.moveTo(x(row), y(value));
        begun = true;
        best = value;
        path.lineTo(x(row), y(best));
      }
    }
    if (begun) path.lineTo(width - kMargin.right, y(best));
    dots(ink, ink.faint, 1, size, points);
    context.strokeStyle = ink.accent;
    context.lineWidth = 2;
    context.stroke(path);
    context.lineWidth = 1;
    context.fillStyle = ink.faint;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText("trial 1", kMargin.left, height - kMargin.bottom + 8);
    context.textAlign = "right";
    context.fillText(String(trials.count), width - kMargin.right, height - kMargin.bottom + 8);
  };
  return <Canvas height={220} draw={draw} label={`${goal.metric} of ${trials.count} trials; the best ${short(best_so_far(score, goal.direction === "max").pop()?.score ?? NaN)}`} />;
}

/// What stands below the ends of an axis, or below each of its choices.
function below(ink: Ink, column: Column, scale: Scale): void {
  const { context, width, height } = ink;
  context.fillStyle = ink.faint;
  context.textBaseline = "top";
  const ends = column.texts
    ? column.choices.map((text, index) => [text, index] as const)
    : [scale.low, scale.high].map((value) => [short(Number(value.toPrecision(4))), value] as const);
  ends.forEach(([text, value], index) => {
    context.textAlign = index === 0 ? "left" : index === ends.length - 1 ? "right" : "center";
    context.fillText(text, kMargin.left + (width - kMargin.left - kMargin.right) * scale.at(value), height - kMargin.bottom + 8);
  });
}

interface Pair {
  trials: Trials;
  across: Column;
  up: Column;
  scale: Scale; // of `up`
  front?: Set<string>; // the ids of those that are drawn strongly, and joined
}

export function Scatter({ trials, across, up, scale, front }: Pair) {
  const other = useMemo(() => scale_of(across.numbers, across), [across]);
  const draw = (ink: Ink): void => {
    const { context, width, height } = ink;
    axis(ink, scale, up);
    const wide = width - kMargin.left - kMargin.right;
    const tall = height - kMargin.top - kMargin.bottom;
    const size = trials.count > 2000 ? 2 : 4;
    const joined: [number, number][] = [];
    const points: number[] = [];
    for (let row = 0; row < trials.count; row += 1) {
      const value = up.numbers[row]!;
      const from = across.numbers[row]!;
      if (Number.isNaN(value) || Number.isNaN(from)) continue;
      const spread = across.texts ? (((row * 7919) % 101) / 101 - 0.5) * 20 : 0;
      const x = kMargin.left + wide * other.at(from) + spread;
      const y = kMargin.top + tall * (1 - scale.at(value));
      if (front?.has(trials.ids[row]!)) joined.push([x, y]);
      else points.push(x, y);
    }
    dots(ink, front ? ink.faint : ink.accent, trials.count > 2000 ? 0.25 : 0.7, size, points);
    context.fillStyle = context.strokeStyle = ink.accent;
    joined.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    context.beginPath();
    joined.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.stroke();
    for (const [x, y] of joined) context.fillRect(x - 3, y - 3, 6, 6);
    below(ink, across, other);
  };
  return <Canvas height={240} draw={draw} label={`${up.name} by ${across.name}${front ? `, the front of ${front.size} joined` : ""}`} />;
}

/// A line each, drawn in its order, with where it ends marked if it was cut there.
export interface Line {
  name: string;
  points: [number, number][];
  colour: (ink: Ink) => string;
  strength: number; // 0 to 1
  cut: boolean;
}

export function Lines({ lines, scale, from, to, label, stairs = false }: { lines: Line[]; scale: Scale; from: string; to: number; label: string; stairs?: boolean }) {
  const draw = (ink: Ink): void => {
    const { context, width, height } = ink;
    axis(ink, scale);
    const wide = width - kMargin.left - kMargin.right;
    const tall = height - kMargin.top - kMargin.bottom;
    const least = Math.min(...lines.map((line) => line.points[0]?.[0] ?? 0), to);
    const x = (at: number): number => kMargin.left + (wide * (at - least)) / Math.max(1e-9, to - least);
    const y = (value: number): number => kMargin.top + tall * (1 - scale.at(value));
    for (const { points, colour, strength, cut } of lines) {
      context.strokeStyle = context.fillStyle = colour(ink);
      context.globalAlpha = strength;
      context.lineWidth = strength === 1 ? 2 : 1;
      context.beginPath();
      points.forEach(([at, value], index) => {
        if (index === 0) return context.moveTo(x(at), y(value));
        if (stairs) context.lineTo(x(at), y(points[index - 1]![1]));
        context.lineTo(x(at), y(value));
      });
      context.stroke();
      const last = points[points.length - 1];
      if (cut && last) {
        context.globalAlpha = 1;
        context.fillRect(x(last[0]) - 2.5, y(last[1]) - 2.5, 5, 5);
      }
    }
    context.globalAlpha = context.lineWidth = 1;
    context.fillStyle = ink.faint;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText(`${from} ${short(least)}`, kMargin.left, height - kMargin.bottom + 8);
    context.textAlign = "right";
    context.fillText(short(Number(to.toPrecision(3))), width - kMargin.right, height - kMargin.bottom + 8);
  };
  return <Canvas height={240} draw={draw} label={label} />;
}

/// Which rows lie within what was marked on the axes.
export type Brushes = Map<string, [number, number]>; // of a column, as parts of its axis

/// The rows within and without; `places`: of each axis, where the rows stand on it.
function parted(count: number, axes: Column[], places: Float32Array[], brushes: Brushes): [Uint32Array, Uint32Array] {
  const out = new Uint8Array(count);
  let left = count;
  axes.forEach((column, index) => {
    const brush = brushes.get(column.name);
    if (!brush) return;
    const [from, to] = brush;
    const at = places[index]!;
    for (let row = 0; row < count; row += 1)
      if (!(at[row]! >= from && at[row]! <= to) && out[row] === 0) {
        out[row] = 1;
        left -= 1;
      }
  });
  const inside = new Uint32Array(left);
  const outside = new Uint32Array(count - left);
  for (let row = 0, i = 0, o = 0; row < count; row += 1)
    if (out[row] === 0) inside[i++] = row;
    else outside[o++] = row;
  return [inside, outside];
}

const kRest_ms = 150;
/// Whether it has changed just now: what is drawn meanwhile has to be drawn soon, and less of it will do.
function useMoving(value: unknown): boolean {
  const [rested, set] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => set(value), kRest_ms);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested !== value;
}

/// What dragging along an axis does, for keys.
function Between({ axes, brushes, change }: { axes: Column[]; brushes: Brushes; change: (brushes: Brushes) => void }) {
  const [name, choose] = useState(axes[0]!.name);
  const [from, to] = brushes.get(name) ?? [0, 1];
  const end = (label: string, value: number, brush: (value: number) => [number, number]) => (
    <label class="pick">
      {label}{" "}
      <input type="range" aria-valuetext={`${Math.round(100 * value)} % of the axis`} min={0} max={1} step={0.02} value={value} onInput={(event) => change(new Map(brushes).set(name, brush(Number(event.currentTarget.value))))} />
    </label>
  );
  return (
    <p class="tools">
      <Pick label="of" value={name} of={axes.map((each) => each.name)} chosen={choose} />
      {end("from", from, (value) => [value, Math.max(value, to)])}
      {end("to", to, (value) => [Math.min(value, from), value])}
    </p>
  );
}

const kMostLines = 1200; // that are drawn; of more a part stands for all
const kMostLinesMoving = 400;

export function Parallel({ trials, score, goal, columns }: Shown & { columns: Column[] }) {
  const [brushes, set_brushes] = useState<Brushes>(new Map());
  const dragging = useRef<{ name: string; from: number } | null>(null);
  const box = useRef({ width: 1 });
  const height = 300;
  const top = 36;
  const tall = height - top - 24;
  const axes = useMemo(() => [...columns, score], [columns, score]);
  const scales = useMemo(
    () => axes.map((column) => (column === score ? worth(score, goal) : scale_of(column.numbers, column))),
    [axes, goal],
  );
  const places = useMemo(
    () => axes.map((column, index) => Float32Array.from(column.numbers, (value) => (Number.isNaN(value) ? NaN : scales[index]!.at(value)))),
    [axes, scales],
  );
  const [inside, outside] = useMemo(() => parted(trials.count, axes, places, brushes), [places, brushes]);
  const most = useMoving(brushes) ? kMostLinesMoving : kMostLines;
  const x = (index: number, width: number): number => 40 + ((width - 80) * index) / Math.max(1, axes.length - 1);
  const draw = (ink: Ink): void => {
    const { context, width } = ink;
    box.current.width = width;
    const last = places.length - 1;
    const some = (of: Uint32Array, most: number): number[] => {
      const found: number[] = [];
      for (let i = 0, step = Math.ceil(of.length / most); i < of.length; i += step) if (!Number.isNaN(places[last]![of[i]!]!)) found.push(of[i]!);
      return found;
    };
    const stroke = (list: number[]): void => {
      context.beginPath();
      for (const row of list) {
        let begun = false;
        for (let index = 0; index < axes.length; index += 1) {
          const at = places[index]![row]!;
          if (Number.isNaN(at)) {
            begun = false;
            continue;
          }
          const px = x(index, width);
          const py = top + tall * (1 - at);
          if (begun) context.lineTo(px, py);
          else context.moveTo(px, py);
          begun = true;
        }
      }
      context.stroke();
    };
    if (brushes.size > 0) {
      context.strokeStyle = ink.line;
      context.globalAlpha = 0.5;
      stroke(some(outside, most / 4));
    }
    // The worth of a trial is its colour: twelve shades, each one stroke.
    const shades: number[][] = Array.from({ length: 12 }, () => []);
    const lines = some(inside, most);
    for (const row of lines) {
      const at = places[last]![row]!;
      shades[Math.min(11, Math.floor((goal.direction === "max" ? at : 1 - at) * 12))]!.push(row);
    }
    context.globalAlpha = Math.max(0.08, Math.min(0.8, 60 / Math.sqrt(lines.length + 1) / 12));
    shades.forEach((list, shade) => {
      context.strokeStyle = `hsl(${220 - 190 * (shade / 11)} 75% 50%)`;
      if (list.length > 0) stroke(list);
    });
    context.globalAlpha = 1;
    axes.forEach((column, index) => {
      const px = x(index, width);
      context.strokeStyle = ink.faint;
      context.beginPath();
      context.moveTo(px, top);
      context.lineTo(px, top + tall);
      context.stroke();
      context.fillStyle = ink.text;
      context.textAlign = index === 0 ? "left" : index === axes.length - 1 ? "right" : "center";
      context.textBaseline = "alphabetic";
      const shift = index === 0 ? -36 : index === axes.length - 1 ? 36 : 0;
      context.fillText(column.name, px + shift, 12);
      context.fillStyle = ink.faint;
      const scale = scales[index]!;
      if (column.texts) {
        column.choices.slice(0, 8).forEach((text, choice) => context.fillText(text.slice(0, 14), px + shift, top + tall * (1 - scale.at(choice)) - 3));
      } else {
        context.fillText(short(Number(scale.high.toPrecision(3))), px + shift, top - 5);
        context.fillText(short(Number(scale.low.toPrecision(3))), px + shift, top + tall + 14);
      }
      const brush = brushes.get(column.name);
      if (brush) {
        context.fillStyle = ink.accent;
        context.globalAlpha = 0.3;
        context.fillRect(px - 8, top + tall * (1 - brush[1]), 16, tall * (brush[1] - brush[0]));
        context.globalAlpha = 1;
      }
    });
  };
  const pointed = (kind: "down" | "move" | "up", px: number, py: number): void => {
    const at = Math.min(1, Math.max(0, 1 - (py - top) / tall));
    if (kind === "down") {
      const near = axes.findIndex((_, index) => Math.abs(x(index, box.current.width) - px) < 16);
      dragging.current = near < 0 ? null : { name: axes[near]!.name, from: at };
      return;
    }
    const drag = dragging.current;
    if (!drag) return;
    const next = new Map(brushes);
    if (Math.abs(at - drag.from) < 0.01) next.delete(drag.name);
    else next.set(drag.name, [Math.min(at, drag.from), Math.max(at, drag.from)]);
    set_brushes(next);
    if (kind === "up") dragging.current = null;
  };
  return (
    <div>
      <Canvas height={height} draw={draw} onPointer={pointed} label={`parallel coordinates of ${columns.map((each) => each.name).join(", ")} and ${goal.metric}`} />
      <p class="note">
        {brushes.size === 0 ? "Drag along an axis to choose trials, or enter a range below. " : `${inside.length} of ${trials.count} trials `}
        {brushes.size > 0 && <button onClick={() => set_brushes(new Map())}>choose all</button>}
      </p>
      <Between axes={axes} brushes={brushes} change={set_brushes} />
    </div>
  );
}
