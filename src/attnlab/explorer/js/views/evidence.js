// @ts-check
/** A picture of what a finding rests on: its curve, or its numbers as bars. */

import { h, svg } from "../html.js";

/** @import {Curve, Finding} from "../types.js" */
/** @typedef {{low: number, high: number, log: boolean}} Range */
/** @typedef {{name: string, text: string, share: number}} Bar */

/** Largest over smallest value from which an axis is logarithmic. */
const FAR = 30;
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [360, 190, 52, 10, 8, 38];
const DASHES = ["", "6 3", "2 3", "9 3 2 3"];

/** @param {Finding} finding */
export function evidence({ curve, evidence: numbers, kind }) {
  if (curve) return h("figure", { class: "evidence" }, drawCurve(curve), legendOf(curve));
  const bars = barsOf(numbers);
  return bars.length ? h("dl", { class: "evidence bars", "aria-label": `Evidence of ${kind}` }, bars.map(drawBar)) : null;
}

/** @param {Bar} bar */
function drawBar({ name, text, share }) {
  const fill = h("span", { class: "bar-fill", style: { transform: `scaleX(${share})` } });
  return h("div", null, h("dt", null, name), h("dd", null, h("span", { class: "bar-track", "aria-hidden": "true" }, fill), h("span", { class: "number" }, text)));
}

/** Each number with its share of the largest. @param {[string, number | null][]} numbers @returns {Bar[]} */
export function barsOf(numbers) {
  const known = numbers.flatMap(([, value]) => (value === null ? [] : [value]));
  const { log, high } = rangeOf(known);
  const low = log ? Math.min(...known) / 3 : 0;
  return numbers.map(([name, value]) => {
    const share = value === null ? 0 : log ? Math.log(value / low) / Math.log(high / low) : high > 0 ? Math.max(0, value) / high : 0;
    return { name, text: value === null ? "not finite" : short(value), share };
  });
}

/** Where values lie; on a logarithmic axis where a linear one would hide the small ones. @param {number[]} values @returns {Range} */
export function rangeOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { low, high, log: low > 0 && high >= FAR * low };
}

/** Where a value lies in its range, from 0 to 1. @param {Range} range @param {number} value */
export function placeIn({ low, high, log }, value) {
  if (high === low) return 0.5;
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

/** A number of at most four digits, with an exponent where zeros would make it wider than the axis. @param {number} value */
export function short(value) {
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(4));
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? rounded.toExponential() : String(rounded);
}

/** @param {Curve} curve */
function drawCurve(curve) {
  const every = curve.lines.flatMap(({ values }) => finite(values));
  const [across, up] = [rangeOf(finite(curve.x)), rangeOf(every)];
  const flat = { ...across, log: false };
  const x = (/** @type {number} */ value) => LEFT + placeIn(flat, value) * (WIDTH - LEFT - RIGHT);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - placeIn(up, value) * (HEIGHT - TOP - BOTTOM);
  const lines = curve.lines.map(({ values }, number) => svg("polyline", {
    class: "evidence-line", points: pointsOf(curve.x, values, x, y), "stroke-dasharray": DASHES[number % DASHES.length],
  }));
  const floor = HEIGHT - BOTTOM;
  const ticks = [
    ...ends(up).map((value) => text(LEFT - 6, y(value) + 4, short(value), "end")),
    ...ends(across).map((value, at) => text(x(value), floor + 15, short(value), at ? "end" : "start")),
    text((LEFT + WIDTH) / 2, HEIGHT - 5, curve.x_label, "middle"),
  ];
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": wordsOf(curve) },
    svg("path", { class: "evidence-axis", d: `M${LEFT} ${TOP}V${floor}H${WIDTH - RIGHT}` }), lines, ticks);
}

/** @param {(number | null)[]} x @param {(number | null)[]} values @param {(value: number) => number} across @param {(value: number) => number} up */
export function pointsOf(x, values, across, up) {
  const pairs = values.flatMap((value, at) => (value === null || x[at] === null || x[at] === undefined ? [] : [[across(x[at]), up(value)]]));
  return pairs.map((pair) => pair.map((each) => each.toFixed(1)).join(",")).join(" ");
}

/** @param {number} x @param {number} y @param {string} words @param {"start" | "middle" | "end"} anchor */
function text(x, y, words, anchor) {
  return svg("text", { x, y, "text-anchor": anchor }, words);
}

/** @param {Range} range */
function ends({ low, high }) {
  return low === high ? [low] : [low, high];
}

/** @param {(number | null)[]} values */
function finite(values) {
  return values.flatMap((value) => (value === null ? [] : [value]));
}

/** What the picture shows, for those who do not see it. @param {Curve} curve */
export function wordsOf({ x_label, y_label, lines }) {
  const words = lines.map(({ name, values }) => {
    const known = finite(values);
    return known.length ? `${name} goes from ${short(known[0] ?? 0)} to ${short(known.at(-1) ?? 0)}` : `${name} is never finite`;
  });
  return `${y_label} by ${x_label}: ${words.join("; ")}`;
}

/** @param {Curve} curve */
function legendOf({ lines, y_label }) {
  if (lines.length < 2) return h("figcaption", { class: "number" }, y_label);
  const keys = lines.map(({ name }, number) => h("span", null,
    svg("svg", { viewBox: "0 0 24 8", class: "evidence-key", "aria-hidden": "true" },
      svg("path", { class: "evidence-line", d: "M0 4H24", "stroke-dasharray": DASHES[number % DASHES.length] })), name));
  return h("figcaption", { class: "number evidence-keys" }, y_label, keys);
}
