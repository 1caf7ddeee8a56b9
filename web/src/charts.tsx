// The charts of a search. Each axis is labelled at both ends; outliers are drawn beyond its end and counted.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Goal } from "./api";
import { Canvas, dots, type Ink } from "./canvas";
import { Pick } from "./parts";
import { type Cut, label, type Scale, scale_between, scale_of, ticks } from "./scale";
import { best_so_far, type Column, short, type Trials } from "./trials";

const kMargin = { left: 76, right: 14, top: 10, bottom: 26 };
const kEdge = 18; // room beyond the end of an axis for the outliers that it leaves out
const kMostMarks = 2000; // outliers that are drawn; more would cover each other

/// Whether charts leave outliers at the edge, and how to change it.
export interface Edge {
  on: boolean;
  set: (on: boolean) => void;
}

export function useEdge(): Edge {
  const [on, set] = useState(true);
  return { on, set };
}

/// Outliers are left out at the worse end only: the best trials are always on the axis.
export const cut_of_goal = (goal: { direction: string }): Cut => (goal.direction === "max" ? "low" : "high");

function cut_of(column: Column, goals: Goal[]): Cut {
  if (column.kind === "param") return "none";
  const goal = goals.find((each) => each.metric === column.name);
  return goal ? cut_of_goal(goal) : "both";
}

export interface Fit {
  scale: Scale; // of the chart as drawn
  fitted: Scale; // without outliers
}

function useFit(column: Column, cut: Cut, edge: Edge): Fit {
  const fitted = useMemo(() => scale_of(column.numbers, cut, column), [column, cut]);
  const scale = useMemo(() => (edge.on || fitted.below + fitted.above === 0 ? fitted : scale_of(column.numbers, "none", column)), [fitted, edge.on]);
  return { scale, fitted };
}

/// Counts the outliers of a chart, and has a checkbox that puts them on the axis.
export function Outliers({ axes, what, edge }: { axes: { name: string; fitted: Scale; upright: boolean }[]; what: string; edge: Edge }) {
  const found = axes.flatMap(({ name, fitted, upright }) => [
    { count: fitted.below, text: `${upright ? "▼" : "◀"} ${fitted.below.toLocaleString("en")} with ${name} below ${label(fitted.low, fitted)}` },
    { count: fitted.above, text: `${upright ? "▲" : "▶"} ${fitted.above.toLocaleString("en")} with ${name} above ${label(fitted.high, fitted)}` },
  ]);
  const some = found.filter((each) => each.count > 0);
  if (some.length === 0) return null;
  return (
    <p class="note outliers">
      <label>
        <input type="checkbox" checked={edge.on} onChange={(event) => edge.set(event.currentTarget.checked)} /> Draw outliers at the edge
      </label>{" "}
      <span>
        ({what}: {some.map((each) => each.text).join(", ")})
      </span>
    </p>
  );
}

/// The area of a chart between its axes, and the places of values in it. Outliers are beyond its sides.
interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
  x: (value: number) => number;
  y: (value: number) => number;
}

function frame_of(ink: Ink, x: Scale, y: Scale): Frame {
  const left = kMargin.left + (x.below > 0 ? kEdge : 0);
  const right = ink.width - kMargin.right - (x.above > 0 ? kEdge : 0);
  const top = kMargin.top + (y.above > 0 ? kEdge : 0);
  const bottom = ink.height - kMargin.bottom - (y.below > 0 ? kEdge : 0);
  const along = (scale: Scale, from: number, to: number) => {
    const beyond = Math.sign(to - from) * (kEdge - 4);
    return (value: number): number =>
      scale.below > 0 && value < scale.low ? from - beyond : scale.above > 0 && value > scale.high ? to + beyond : from + (to - from) * scale.at(value);
  };
  return { left, right, top, bottom, x: along(x, left, right), y: along(y, bottom, top) };
}

/// -1 below the axis, 1 above it, 0 on it.
const side = (scale: Scale, value: number): number => Number(value > scale.high) - Number(value < scale.low);

/// Triangles that point to where the outliers are; `at`: x, y and both sides of each.
function marks(ink: Ink, at: [number, number, number, number][]): void {
  const { context } = ink;
  const step = Math.ceil(at.length / kMostMarks) || 1;
  context.fillStyle = ink.text;
  context.beginPath();
  for (let i = 0; i < at.length; i += step) {
    const [x, y, across, up] = at[i]!;
    const [dx, dy] = up !== 0 ? [0, -up] : [across, 0];
    context.moveTo(x + 5 * dx, y + 5 * dy);
    context.lineTo(x - 4 * dx + 4 * dy, y - 4 * dy + 4 * dx);
    context.lineTo(x - 4 * dx - 4 * dy, y - 4 * dy - 4 * dx);
    context.closePath();
  }
  context.fill();
}

function vertical_axis(ink: Ink, frame: Frame, scale: Scale, name: string, column?: Column): void {
  const { context } = ink;
  const line = (y: number): void => {
    context.strokeStyle = ink.line;
    context.beginPath();
    context.moveTo(frame.left, y);
    context.lineTo(frame.right, y);
    context.stroke();
  };
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = ink.faint;
  const room = 14;
  const text = (words: string, y: number): void => context.fillText(words, kMargin.left - 8, y, kMargin.left - 26);
  if (column?.texts) {
    const every = Math.ceil((column.choices.length * room) / (frame.bottom - frame.top));
    column.choices.forEach((choice, index) => {
      const y = frame.y(index);
      line(y);
      if (index % every === 0) text(clipped(choice, 9), y);
    });
  } else {
    const ends = scale.high > scale.low ? [scale.low, scale.high] : [scale.low];
    for (const end of ends) {
      line(frame.y(end));
      text(label(end, scale), frame.y(end));
    }
    for (const tick of ticks(scale, 4)) {
      const y = frame.y(tick);
      line(y);
      if (ends.every((end) => Math.abs(frame.y(end) - y) >= room)) text(label(tick, scale), y);
    }
  }
  context.fillStyle = ink.text;
  if (scale.below > 0) text(`▼ ${scale.below.toLocaleString("en")}`, frame.bottom + kEdge - 3);
  if (scale.above > 0) text(`▲ ${scale.above.toLocaleString("en")}`, frame.top - kEdge + 3);
  context.save();
  context.translate(8, (frame.top + frame.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(name, 0, 0, frame.bottom - frame.top);
  context.restore();
}

function horizontal_axis(ink: Ink, frame: Frame, scale: Scale, name: string, column?: Column): void {
  const { context, height } = ink;
  const wide = frame.right - frame.left;
  const y = height - kMargin.bottom + 8;
  context.textBaseline = "top";
  context.fillStyle = ink.faint;
  const text = (words: string, at: number, index: number, last: number): void => {
    context.textAlign = last === 0 ? "center" : index === 0 ? "left" : index === last ? "right" : "center";
    context.fillText(words, frame.x(at), y);
  };
  if (column?.texts) {
    const every = Math.ceil((column.choices.length * 70) / wide);
    column.choices.forEach((choice, index) => index % every === 0 && text(clipped(choice, 10), index, index, column.choices.length - 1));
    return;
  }
  const ends = scale.high > scale.low ? [scale.low, scale.high] : [scale.low];
  ends.forEach((end, index) => text(label(end, scale), end, index, ends.length - 1));
  context.fillStyle = ink.text;
  context.textAlign = "center";
  if (ends.length > 1) context.fillText(name, (frame.left + frame.right) / 2, y, wide - 160);
}

const clipped = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

interface Shown {
  trials: Trials;
  score: Column;
  goal: Goal;
  edge: Edge;
}

/// The score of each trial, and the best so far.
export function History({ trials, score, goal, edge }: Shown) {
  const { scale, fitted } = useFit(score, cut_of_goal(goal), edge);
  const draw = (ink: Ink): void => {
    const { context } = ink;
    const numbers = scale_between(1, trials.count, false);
    const frame = frame_of(ink, numbers, scale);
    vertical_axis(ink, frame, scale, goal.metric);
    horizontal_axis(ink, frame, numbers, "trial");
    const size = trials.count > 2000 ? 1 : trials.count > 300 ? 2 : 4;
    const points: number[] = [];
    const outliers: [number, number, number, number][] = [];
    let best = NaN;
    const path = new Path2D();
    let begun = false;
    for (let row = 0; row < trials.count; row += 1) {
      const value = score.numbers[row]!;
      if (Number.isNaN(value)) continue;
      const [x, y, out] = [frame.x(row + 1), frame.y(value), side(scale, value)];
      if (out !== 0) outliers.push([x, y, 0, out]);
      else points.push(x, y);
      if (Number.isNaN(best) || (goal.direction === "max" ? value > best : value < best)) {
        if (begun) path.lineTo(x, frame.y(best));
        else path.moveTo(x, y);
        begun = true;
        best = value;
        path.lineTo(x, y);
      }
    }
    if (begun) path.lineTo(frame.right, frame.y(best));
    dots(ink, ink.faint, 1, size, points);
    context.strokeStyle = ink.accent;
    context.lineWidth = 2;
    context.stroke(path);
    context.lineWidth = 1;
    marks(ink, outliers);
  };
  return (
    <>
      <Canvas height={240} draw={draw} label={`${goal.metric} of ${trials.count} trials; the best ${short(best_so_far(score, goal.direction === "max").pop()?.score ?? NaN)}`} />
      <Outliers axes={[{ name: goal.metric, fitted, upright: true }]} what="trials" edge={edge} />
    </>
  );
}

interface Pair {
  trials: Trials;
  across: Column;
  up: Column;
  goals: Goal[];
  edge: Edge;
  front?: Set<string>; // the ids of the trials that are emphasised and joined
}

/// One column by another, a point for each trial.
export function Scatter({ trials, across, up, goals, edge, front }: Pair) {
  const horizontal = useFit(across, cut_of(across, goals), edge);
  const vertical = useFit(up, cut_of(up, goals), edge);
  const draw = (ink: Ink): void => {
    const { context } = ink;
    const frame = frame_of(ink, horizontal.scale, vertical.scale);
    vertical_axis(ink, frame, vertical.scale, up.name, up);
    horizontal_axis(ink, frame, horizontal.scale, across.name, across);
    const size = trials.count > 2000 ? 2 : 4;
    const joined: [number, number][] = [];
    const points: number[] = [];
    const outliers: [number, number, number, number][] = [];
    for (let row = 0; row < trials.count; row += 1) {
      const value = up.numbers[row]!;
      const from = across.numbers[row]!;
      if (Number.isNaN(value) || Number.isNaN(from)) continue;
      const spread = across.texts ? (((row * 7919) % 101) / 101 - 0.5) * 20 : 0;
      const x = frame.x(from) + spread;
      const y = frame.y(value);
      const [beside, over] = [side(horizontal.scale, from), side(vertical.scale, value)];
      if (beside !== 0 || over !== 0) outliers.push([x, y, beside, over]);
      if (front?.has(trials.ids[row]!)) joined.push([x, y]);
      else if (beside === 0 && over === 0) points.push(x, y);
    }
    dots(ink, front ? ink.faint : ink.accent, trials.count > 2000 ? 0.25 : 0.7, size, points);
    context.fillStyle = context.strokeStyle = ink.accent;
    joined.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    context.beginPath();
    joined.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.stroke();
    for (const [x, y] of joined) context.fillRect(x - 3, y - 3, 6, 6);
    marks(ink, outliers);
  };
  return (
    <>
      <Canvas height={260} draw={draw} label={`${up.name} by ${across.name}${front ? `, the front of ${front.size} joined` : ""}`} />
      <Outliers
        axes={[
          { name: up.name, fitted: vertical.fitted, upright: true },
          { name: across.name, fitted: horizontal.fitted, upright: false },
        ]}
        what="trials"
        edge={edge}
      />
    </>
  );
}

/// One line of a chart.
export interface Line {
  name: string;
  points: [number, number][];
  colour: (ink: Ink) => string;
  strength: number; // 0 to 1
  cut: boolean; // its end is marked
}

interface LinesProps {
  lines: Line[]; // drawn in this order
  scale: Scale;
  across: string; // the name of the horizontal axis
  up: string; // the name of the vertical axis
  to: number; // the end of the horizontal axis
  label: string;
  stairs?: boolean;
}

export function Lines({ lines, scale, across, up, to, label: words, stairs = false }: LinesProps) {
  const draw = (ink: Ink): void => {
    const { context } = ink;
    const first = Math.min(...lines.map((line) => line.points[0]?.[0] ?? 0), to);
    const horizontal = scale_between(first, to, false);
    const frame = frame_of(ink, horizontal, scale);
    vertical_axis(ink, frame, scale, up);
    horizontal_axis(ink, frame, horizontal, across);
    const outliers: [number, number, number, number][] = [];
    for (const { points, colour, strength, cut } of lines) {
      context.strokeStyle = context.fillStyle = colour(ink);
      context.globalAlpha = strength;
      context.lineWidth = strength === 1 ? 2 : 1;
      context.beginPath();
      let before = 0;
      points.forEach(([at, value], index) => {
        const [x, y, out] = [frame.x(at), frame.y(value), side(scale, value)];
        if (out !== 0 && (out !== before || index === points.length - 1)) outliers.push([x, y, 0, out]);
        before = out;
        if (index === 0) return context.moveTo(x, y);
        if (stairs) context.lineTo(x, frame.y(points[index - 1]![1]));
        context.lineTo(x, y);
      });
      context.stroke();
      const last = points[points.length - 1];
      if (cut && last && side(scale, last[1]) === 0) {
        context.globalAlpha = 1;
        context.fillRect(frame.x(last[0]) - 2.5, frame.y(last[1]) - 2.5, 5, 5);
      }
    }
    context.globalAlpha = context.lineWidth = 1;
    marks(ink, outliers);
  };
  return <Canvas height={260} draw={draw} label={words} />;
}

/// The chosen range of each axis; only trials within all of them are emphasised.
export type Brushes = Map<string, [number, number]>; // by column name, as parts of its axis (0 to 1)

/// The rows inside and outside the chosen ranges; `places`: the places of the rows on each axis.
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
/// Returns true while the value changes quickly: the chart then draws fewer lines, to keep up.
function useMoving(value: unknown): boolean {
  const [rested, set] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => set(value), kRest_ms);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested !== value;
}

/// Chooses a range of an axis by keyboard, as dragging along the axis does by mouse.
function Range({ axes, scales, brushes, change }: { axes: Column[]; scales: Scale[]; brushes: Brushes; change: (brushes: Brushes) => void }) {
  const [name, choose] = useState(axes[0]!.name);
  const index = Math.max(0, axes.findIndex((each) => each.name === name));
  const [axis, scale] = [axes[index]!, scales[index]!];
  const [from, to] = brushes.get(axis.name) ?? [0, 1];
  const text = (part: number): string => {
    const value = scale.value(part);
    return axis.texts ? (axis.choices[Math.round(value)] ?? "") : label(value, scale);
  };
  const end = (words: string, value: number, brush: (value: number) => [number, number]) => (
    <label class="pick">
      {words} <input type="range" aria-valuetext={text(value)} min={0} max={1} step={0.02} value={value} onInput={(event) => change(new Map(brushes).set(axis.name, brush(Number(event.currentTarget.value))))} /> {text(value)}
    </label>
  );
  return (
    <p class="tools">
      <Pick label="axis" value={axis.name} of={axes.map((each) => each.name)} chosen={choose} />
      {end("minimum", from, (value) => [value, Math.max(value, to)])}
      {end("maximum", to, (value) => [Math.min(value, from), value])}
    </p>
  );
}

const kMostLines = 1200; // lines drawn; a sample of more trials
const kMostLinesMoving = 400;

export function Parallel({ trials, score, goal, edge, columns }: Shown & { columns: Column[] }) {
  const [brushes, set_brushes] = useState<Brushes>(new Map());
  const dragging = useRef<{ name: string; from: number } | null>(null);
  const box = useRef({ width: 1 });
  const height = 320;
  const top = 40;
  const tall = height - top - 28;
  const axes = useMemo(() => [...columns, score], [columns, score]);
  const fit = useFit(score, cut_of_goal(goal), edge);
  const scales = useMemo(() => axes.map((column) => (column === score ? fit.scale : scale_of(column.numbers, "none", column))), [axes, fit.scale]);
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
    // A trial's score is its colour: twelve shades, each drawn with one stroke.
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
        context.textAlign = index === axes.length - 1 ? "right" : "left";
        context.textBaseline = "middle";
        // An outline in the colour of the ground keeps the names readable on the lines of the trials.
        context.strokeStyle = ink.ground;
        context.lineWidth = 4;
        context.lineJoin = "round";
        context.fillStyle = ink.text;
        column.choices.slice(0, 8).forEach((text, choice) => {
          const [left, y] = [px + (index === axes.length - 1 ? -6 : 6), top + tall * (1 - scale.at(choice))];
          context.strokeText(clipped(text, 14), left, y);
          context.fillText(clipped(text, 14), left, y);
        });
        context.lineWidth = 1;
      } else {
        context.fillText(`${scale.above > 0 ? "≥ " : ""}${label(scale.high, scale)}`, px + shift, top - 9);
        context.fillText(`${scale.below > 0 ? "≤ " : ""}${label(scale.low, scale)}`, px + shift, top + tall + 20);
        if (scale.above > 0) marks(ink, [[px, top - 2, 0, 1]]);
        if (scale.below > 0) marks(ink, [[px, top + tall + 2, 0, -1]]);
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
      <Outliers axes={[{ name: goal.metric, fitted: fit.fitted, upright: true }]} what="trials" edge={edge} />
      <Range axes={axes} scales={scales} brushes={brushes} change={set_brushes} />
    </div>
  );
}
