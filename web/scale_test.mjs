// Tests of the axes of charts: node --test scale_test.mjs, where SCALE names the bundle of src/scale.ts.
import assert from "node:assert/strict";
import test from "node:test";

const { label, scale_of, ticks } = await import(process.env.SCALE);
const usual = [0.951, 0.955, 0.957, 0.96, 0.962, 0.966, 0.97, 0.971, 0.975, 0.983];

test("outliers at the worse end are left out and counted", () => {
  const scale = scale_of(Float64Array.from([...usual, 0.286, 0.47, NaN]), "low");
  assert.deepEqual([scale.low, scale.high, scale.below, scale.above], [0.951, 0.983, 2, 0]);
  assert.deepEqual([scale.at(0.286), scale.at(0.951), scale.at(0.983)], [0, 0, 1]);
});

test("the best value is always on the axis", () => {
  const scale = scale_of(Float64Array.from([...usual, 100]), "low");
  assert.deepEqual([scale.high, scale.above], [100, 0]);
});

test("a metric without a direction loses outliers at both ends", () => {
  const scale = scale_of(Float64Array.from([...usual, -3, 1e9]), "both");
  assert.deepEqual([scale.low, scale.high, scale.below, scale.above], [0.951, 0.983, 1, 1]);
});

test("no value is left out where the scale is switched off, of few values, or without gain", () => {
  assert.equal(scale_of(Float64Array.from([...usual, 0.286]), "none").low, 0.286);
  assert.equal(scale_of(Float64Array.from([0.97, 0.98, 0.286]), "low").low, 0.286);
  assert.equal(scale_of(Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), "both").below, 0);
});

test("equal quartiles take the outer quantiles instead", () => {
  const scale = scale_of(Float64Array.from([...Array(30).fill(1), ...Array(6).fill(0.98), -50]), "low");
  assert.deepEqual([scale.low, scale.high, scale.below], [0.98, 1, 1]);
});

test("values of many magnitudes have a logarithmic axis, and none of them is an outlier", () => {
  const scale = scale_of(Float64Array.from({ length: 50 }, (_, i) => 10 ** (i / 10)), "high");
  assert.deepEqual([scale.logarithmic, scale.above], [true, 0]);
  assert.ok(Math.abs(scale.value(scale.at(50)) - 50) < 1e-9);
  assert.equal(scale_of(Float64Array.from([...usual, 1e6]), "high").logarithmic, false, "an outlier does not make it one");
});

test("odd values make no odd scale", () => {
  for (const values of [[], [NaN], [3], [5, 5, 5, 5, 5, 5, 5, 5, 5], [Infinity, 1, 2], [1e16, 1e16 + 2], [0, 5e-324]]) {
    const scale = scale_of(Float64Array.from(values), "both");
    assert.ok(Number.isFinite(scale.low) && Number.isFinite(scale.high) && scale.at(1) >= 0 && scale.at(1) <= 1, String(values));
    assert.ok(ticks(scale, 4).length < 20);
  }
});

test("labels tell the ends of an axis apart", () => {
  const scale = scale_of(Float64Array.from([0.98123, 0.98156]));
  assert.deepEqual([label(scale.low, scale), label(scale.high, scale)], ["0.98123", "0.98156"]);
  assert.equal(label(1_234_567, scale_of(Float64Array.from([0, 1_234_567]))), "1.23e6");
});
