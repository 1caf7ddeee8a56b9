// A bar for each task over time; tasks that ran in parallel are in different lanes.
import { useMemo } from "preact/hooks";
import { Canvas, type Ink } from "./canvas";
import { duration } from "./words";
import type { Trials } from "./trials";

const kMostLanes = 40;

export function Timeline({ trials, now }: { trials: Trials; now: number }) {
  const { lanes, of, from, to } = useMemo(() => {
    const rows = Array.from({ length: trials.count }, (_, row) => row).filter((row) => !Number.isNaN(trials.started[row]!));
    rows.sort((a, b) => trials.started[a]! - trials.started[b]!);
    const free: number[] = []; // when each lane is free again
    const lane_of = new Map<number, number>();
    let begin = Infinity;
    let end = -Infinity;
    for (const row of rows) {
      const starts = trials.started[row]!;
      const ends = Number.isNaN(trials.ended[row]!) ? now : trials.ended[row]!;
      begin = Math.min(begin, starts);
      end = Math.max(end, ends);
      let lane = free.findIndex((at) => at <= starts);
      if (lane < 0) lane = free.push(0) - 1;
      free[lane] = ends;
      lane_of.set(row, lane);
    }
    return { lanes: free.length, of: lane_of, from: begin, to: end };
  }, [trials, now]);
  if (lanes === 0) return null;
  const shown = Math.min(lanes, kMostLanes);
  const tall = shown > 16 ? 6 : 14;
  const draw = (ink: Ink): void => {
    const { context, width } = ink;
    const x = (at: number): number => ((at - from) / Math.max(1, to - from)) * width;
    const painted = Array.from({ length: shown }, () => ({ state: "", to: 0 }));
    for (const [row, lane] of of) {
      if (lane >= shown) continue;
      const state = trials.states[row]!;
      const left = x(trials.started[row]!);
      const right = x(Number.isNaN(trials.ended[row]!) ? now : trials.ended[row]!);
      const before = painted[lane]!;
      if (before.state === state && right < before.to + 0.2) continue; // too small to see
      painted[lane] = { state, to: Math.max(before.to, left + 1, right) };
      context.fillStyle = state === "failed" ? ink.bad : state === "running" ? ink.text : ink.accent;
      context.globalAlpha = state === "stopped" ? 0.3 : 0.8;
      context.fillRect(left, lane * tall, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), tall - 2);
    }
    context.globalAlpha = 1;
    context.fillStyle = ink.faint;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText("0 s", 0, shown * tall + 4);
    context.textAlign = "right";
    context.fillText(duration(to - from), width, shown * tall + 4);
  };
  return <Canvas height={shown * tall + 20} draw={draw} label={`${of.size} tasks in ${lanes} lanes over ${duration(to - from)}`} />;
}
