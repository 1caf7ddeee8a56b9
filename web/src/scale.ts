// Where a value stands on an axis: 0 at its beginning, 1 at its end.
import type { Column } from "./trials";

export interface Scale {
  low: number;
  high: number;
  logarithmic: boolean;
  at: (value: number) => number;
}

const kWide = 100; // ends that are so many times apart want a logarithmic axis

export function scale_of(values: Float64Array, column?: Column, trim = 0): Scale {
  const found = values.filter((value) => Number.isFinite(value));
  if (column?.texts) return linear(0, Math.max(1, column.choices.length - 1));
  if (found.length === 0) return linear(0, 1);
  let low = Infinity;
  let high = -Infinity;
  for (const value of found) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (trim > 0 && found.length > 8) high = found.sort()[Math.floor((found.length - 1) * (1 - trim))]!;
  const wide = column?.scale ? column.scale === "log" : high / low >= kWide;
  if (low > 0 && wide) {
    const from = Math.log(low);
    const span = Math.log(high) - from;
    return { low, high, logarithmic: true, at: (value) => Math.min(1, Math.max(0, (Math.log(value) - from) / span)) };
  }
  return linear(low, high);
}

function linear(low: number, high: number): Scale {
  const span = high - low;
  return { low, high, logarithmic: false, at: (value) => (span > 0 ? Math.min(1, Math.max(0, (value - low) / span)) : 0.5) };
}
