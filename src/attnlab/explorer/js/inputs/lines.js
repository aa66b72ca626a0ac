// @ts-check
/**
 * Lines that are no digits: of ruled and squared paper, of frames and of drawn tables; the rules of
 * `attnlab/data/lines.py` in the same words.
 */

import { grey, labelled, largest, map, rounded } from "./ink.js";
import { extreme } from "./sheets.js";

/** @import {Grey} from "./ink.js" */

/** Pixels along the longer side of the ink in which lines are looked for. */
const COARSE = 200;
/** Hundredths by which lines may rise, up to 15 degrees; gentle ones first. */
const SLOPES = [0, ...Array.from({ length: 27 }, (_, at) => [-at - 1, at + 1]).flat()];
/** The least ink of a pixel of a line. */
const DRAWN = 0.25;
/** The least shares of a row that a line inks: in its middle, and beside it. */
const SPANNED = 0.7;
const BESIDE = 0.35;
/** The most of a side that a line takes. */
const THIN = 1 / 20;
const FEWEST = 3;
/** The least share of the ink that is no line. */
const LEFT = 0.05;
/** The share of a side that faint lines span. */
const WIDE = 0.9;
/** The least share of a side that something in a digit takes. */
const DIGIT = 1 / 8;

/** The ink without a pattern that is weaker than half of it. @type {(ink: Grey) => Grey} */
export function withoutFaintLines(ink) {
  const half = largest(ink.data) / 2;
  const strong = map(ink, (value) => (value > half ? 1 : 0));
  const digit = longest(strong);
  if (longest(ink) < WIDE || digit < DIGIT || digit >= WIDE) return ink;
  const near = extreme(strong, 3, Math.max);
  return map(ink, (value, at) => (near.data[at] > 0 ? value : 0));
}

/** The most that one part takes of a side. @type {(marked: Grey) => number} */
function longest(marked) {
  const { height, width } = marked;
  const { parts, count } = labelled(marked);
  const ends = Array.from({ length: count + 1 }, () => [Infinity, -1, Infinity, -1]);
  parts.forEach((part, at) => {
    const [row, column] = [Math.floor(at / width), at % width];
    const box = ends[part];
    box[0] = Math.min(box[0], row);
    box[1] = Math.max(box[1], row);
    box[2] = Math.min(box[2], column);
    box[3] = Math.max(box[3], column);
  });
  const sides = ends.slice(1).flatMap(([top, low, left, right]) => [(low - top + 1) / height, (right - left + 1) / width]);
  return largest([0, ...sides]);
}

/**
 * Ink without its lines, and the rows and columns in whose middle there were some; null if there are fewer than
 * three lines, in a table none in one of both directions, or nothing else.
 * @type {(ink: Grey, table: boolean) => {ink: Grey, across: number[], down: number[]} | null}
 */
export function withoutLines(ink, table) {
  const marked = coarse(ink);
  const leaning = sheared(ink, slope(marked));
  const straight = turned(sheared(turned(leaning), slope(turned(marked))));
  const [rows, columns] = shares(straight);
  const [across, down] = [bands(rows), bands(columns)];
  if (table ? !across.length || !down.length : across.length + down.length < FEWEST) return null;
  const left = turned(takenOut(turned(takenOut(straight, across)), down));
  const sum = (/** @type {Grey} */ { data }) => data.reduce((all, value) => all + value, 0);
  if (sum(left) < LEFT * sum(ink)) return null;
  /** @type {(found: [number, number][]) => number[]} */
  const middles = (found) => found.map(([first, last]) => (first + last) / 2);
  return { ink: left, across: middles(across), down: middles(down) };
}

/** Rows as columns. @type {(values: Grey) => Grey} */
export function turned({ height, width, data }) {
  const found = grey(width, height);
  data.forEach((value, at) => (found.data[(at % width) * height + Math.floor(at / width)] = value));
  return found;
}

/** What is drawn, in few pixels. @type {(ink: Grey) => Grey} */
function coarse(ink) {
  const step = Math.ceil(Math.max(ink.height, ink.width) / COARSE);
  const found = grey(Math.ceil(ink.height / step), Math.ceil(ink.width / step));
  ink.data.forEach((value, at) => {
    const row = Math.floor(Math.floor(at / ink.width) / step);
    if (value > DRAWN) found.data[row * found.width + Math.floor((at % ink.width) / step)] = 1;
  });
  return found;
}

/** The slope along which most rows are inked nearly all along. @type {(marked: Grey) => number} */
function slope(marked) {
  let best = 0;
  let most = 0;
  for (const hundredths of SLOPES) {
    const moved = sheared(marked, hundredths / 100);
    let found = 0;
    for (let row = 0; row < moved.height; row++) {
      let sum = 0;
      for (let column = 0; column < moved.width; column++) sum += moved.data[row * moved.width + column];
      found += Math.max(0, sum / moved.width - 0.5) ** 2;
    }
    if (found > most + 1e-9) [best, most] = [hundredths / 100, found];
  }
  return best;
}

/** Columns moved so that lines of this slope go along rows; 0 moves in. @type {(values: Grey, slope: number) => Grey} */
function sheared(values, slope) {
  if (slope === 0) return values;
  const { height, width, data } = values;
  const found = grey(height, width);
  for (let column = 0; column < width; column++) {
    const shift = rounded(slope * (column - (width - 1) / 2));
    for (let row = Math.max(0, -shift); row < Math.min(height, height - shift); row++) {
      found.data[row * width + column] = data[(row + shift) * width + column];
    }
  }
  return found;
}

/**
 * Of each row and each column how much of what is between the outermost ink is drawn.
 * @type {(ink: Grey) => [number[], number[]]}
 */
function shares({ height, width, data }) {
  const down = new Array(height).fill(0);
  const across = new Array(width).fill(0);
  data.forEach((value, at) => {
    if (value <= DRAWN) return;
    down[Math.floor(at / width)] += 1;
    across[at % width] += 1;
  });
  /** @type {(counts: number[]) => number} */
  const extent = (counts) => counts.length - [...counts].reverse().findIndex(Boolean) - counts.findIndex(Boolean);
  const [high, wide] = [extent(down), extent(across)];
  return [down.map((count) => count / wide), across.map((count) => count / high)];
}

/** First and last row of each line; none is thick. @type {(share: number[]) => [number, number][]} */
function bands(share) {
  /** @type {[number, number][]} */
  const found = [];
  const most = THIN * share.length + 2;
  for (let first = 0; first < share.length; first++) {
    if (share[first] < BESIDE) continue;
    let last = first;
    while (last + 1 < share.length && share[last + 1] >= BESIDE) last += 1;
    if (largest(share.slice(first, last + 1)) >= SPANNED && last - first + 1 <= most) found.push([first, last]);
    first = last;
  }
  return found;
}

/** Without rows of lines, except where there is ink above and below them. @type {(ink: Grey, bands: [number, number][]) => Grey} */
function takenOut(ink, bands) {
  const { height, width, data } = ink;
  const found = map(ink, (value) => value);
  for (const [start, end] of bands) {
    const first = Math.max(0, start - 1);
    const last = Math.min(height - 1, end + 1);
    /** @type {(from: number, to: number, column: number) => boolean} */
    const inked = (from, to, column) => {
      for (let row = Math.max(0, from); row < Math.min(height, to); row++) if (data[row * width + column] > DRAWN) return true;
      return false;
    };
    for (let column = 0; column < width; column++) {
      if (inked(first - 2, first, column) && inked(last + 1, last + 3, column)) continue;
      for (let row = first; row <= last; row++) found.data[row * width + column] = 0;
    }
  }
  return found;
}

/**
 * The first and the last row behind of each cell, if lines part so many; null if they do not.
 * @type {(lines: number[], count: number, size: number) => [number, number][] | null}
 */
export function cellsBetween(lines, count, size) {
  /** @type {number[]} */
  let ends = [];
  if (lines.length === count + 1) ends = lines;
  else if (lines.length === count - 1) ends = [0, ...lines, size];
  else if (lines.length === 2) { // a frame
    ends = Array.from({ length: count + 1 }, (_, place) => lines[0] + ((lines[1] - lines[0]) * place) / count);
  } else return null;
  const cells = ends.slice(1).map((end, at) => /** @type {[number, number]} */ ([rounded(ends[at]), rounded(end)]));
  return cells.every(([first, end]) => end - first >= size / (4 * count)) ? cells : null;
}
