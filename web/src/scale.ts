// An axis of a chart: its two ends, and the place of a value between them.
import { type Column, short } from "./trials";

export interface Scale {
  low: number; // the value at the beginning of the axis
  high: number; // the value at the end of the axis
  below: number; // the number of values below `low`
  above: number; // the number of values above `high`
  logarithmic: boolean;
  at: (value: number) => number; // 0 at the beginning, 1 at the end; values outside are clamped
  value: (part: number) => number; // the inverse of `at`
}

/// The ends of an axis from which outliers may be left out.
export type Cut = "none" | "low" | "high" | "both";

const kWide = 100; // an axis whose ends differ by this factor is logarithmic
const kFewest = 8; // a scale of fewer values leaves none out
const kQuantiles = [0.25, 0.1]; // the second applies where the quartiles are equal
const kReach = 3; // an outlier is this many interquartile ranges beyond a quartile (Tukey's outer fence)
const kGain = 2; // outliers are left out only if the axis without them is this many times shorter

export function scale_of(values: Float64Array, cut: Cut = "none", column?: Column): Scale {
  if (column?.texts) return scale_between(0, Math.max(1, column.choices.length - 1), false);
  const found = values.filter((value) => Number.isFinite(value));
  if (found.length === 0) return scale_between(0, 1, false);
  const [low, high] = ends_of(found, cut, column);
  return with_counts(scale_between(low, high, is_logarithmic(low, high, column)), values);
}

export const is_logarithmic = (low: number, high: number, column?: Column): boolean => low > 0 && (column?.scale ? column.scale === "log" : high / low >= kWide);

/// The scale with the number of values on either side of it.
export function with_counts(scale: Scale, values: Float64Array): Scale {
  let below = 0;
  let above = 0;
  for (const value of values) {
    if (value < scale.low) below += 1;
    if (value > scale.high) above += 1;
  }
  return { ...scale, below, above };
}

export function scale_between(low: number, high: number, logarithmic: boolean): Scale {
  const [to, from] = logarithmic ? [Math.log, Math.exp] : [Number, Number];
  const begin = to(low);
  const span = to(high) - begin;
  return {
    low,
    high,
    below: 0,
    above: 0,
    logarithmic,
    at: (value) => (span > 0 ? Math.min(1, Math.max(0, (value <= low ? 0 : to(value) - begin) / span)) : 0.5),
    value: (part) => from(begin + span * part),
  };
}

/// The lowest and the highest value that are not outliers, by quantiles.
function ends_of(found: Float64Array, cut: Cut, column?: Column): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of found) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (cut === "none" || found.length < kFewest) return [low, high];
  // Powers of ten are compared where the whole axis would be logarithmic.
  const to = is_logarithmic(low, high, column) ? Math.log : Number;
  const sorted = found.sort();
  const [least, most] = fences(sorted, to);
  const inner = sorted.filter((value) => (cut === "high" || to(value) >= least) && (cut === "low" || to(value) <= most));
  const [inner_low, inner_high] = [inner[0] ?? low, inner[inner.length - 1] ?? high];
  return to(high) - to(low) >= kGain * (to(inner_high) - to(inner_low)) ? [inner_low, inner_high] : [low, high];
}

function fences(sorted: Float64Array, to: (value: number) => number): [number, number] {
  const quantile = (part: number): number => to(sorted[Math.round((sorted.length - 1) * part)]!);
  for (const part of kQuantiles) {
    const [low, high] = [quantile(part), quantile(1 - part)];
    if (high > low) return [low - kReach * (high - low), high + kReach * (high - low)];
  }
  return [-Infinity, Infinity];
}

/// The label of a value on an axis, with as many digits as tell it from its neighbours.
export function label(value: number, scale: Scale): string {
  const span = scale.high - scale.low;
  const digits = span > 0 && value !== 0 ? Math.ceil(Math.log10(Math.abs(value) / span)) + 2 : 3;
  const rounded = Number(value.toPrecision(Math.min(6, Math.max(3, digits))));
  return Math.abs(rounded) >= 1e6 ? rounded.toExponential().replace("+", "") : short(rounded);
}

/// Round numbers between the ends, some `count` of them.
export function ticks({ low, high, logarithmic }: Scale, count: number): number[] {
  if (!(high > low)) return [];
  if (logarithmic) {
    const decades = Math.log10(high / low);
    const every = Math.max(1, Math.ceil(decades / count));
    const multiples = decades < 2 ? [1, 2, 5] : [1];
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += every) for (const each of multiples) found.push(each * 10 ** power);
    return found.filter((each) => each > low && each < high);
  }
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= rough) ?? 10 * unit;
  const found: number[] = [];
  const first = Math.ceil(low / step);
  for (let i = 0; i <= 2 * count; i += 1) found.push(Number(((first + i) * step).toPrecision(12)));
  return found.filter((each) => each > low && each < high);
}
