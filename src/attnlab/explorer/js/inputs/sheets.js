// @ts-check
/**
 * Paper that is no plane: a sheet on a desk, and light with shadows; the rules of `attnlab/data/sheets.py` in
 * the same words.
 */

import { edgeOf, grey, labelled, map, median, padded, penOf, rounded } from "./ink.js";

/** @import {Grey} from "./ink.js" */

/** Pixels along the longer side of the picture in which a sheet is looked for. */
const COARSE = 256;
/** The shorter side of a picture that may show a sheet. */
export const SMALLEST = 64;
/** The least shares of the edge that is desk, and of the picture that is sheet. */
const DESK = 0.7;
const SHEET = 0.12;
/** The least difference between sheet and desk. */
const STEP = 0.2;
/** The least share of the smallest box around a sheet, at whatever angle, that is sheet. */
const STRAIGHT = 0.84;
const TURNS = 30;
/** Of what is written: the least area in squares of the pen, the most as a share of the sheet. */
const LONG = 5.0;
const MOST = 0.3;
/** What is left out along the sides of a sheet, as a share of the longer side of the picture. */
const RIM = 0.02;
/** That of the closing, as a share of the longer side of the paper; pens are thinner. */
const WINDOW = 0.25;
/** Steps of the histogram. */
const BINS = 128;

/**
 * Where the sheet is, and whether it is brighter than the desk; null if there is none.
 * @type {(picture: Grey) => {mask: Grey, bright: boolean} | null}
 */
export function findSheet(picture) {
  const { height, width } = picture;
  if (Math.min(height, width) < SMALLEST) return null;
  const step = Math.ceil(Math.max(height, width) / COARSE);
  const coarse = reduced(picture, step);
  const level = threshold(coarse);
  const bright = map(coarse, (value) => (value > level ? 1 : 0));
  const desk = mean(edgeOf(bright));
  const apart = meanWhere(coarse, (at) => bright.data[at] > 0) - meanWhere(coarse, (at) => bright.data[at] === 0);
  if (Math.max(desk, 1 - desk) < DESK || !(apart >= STEP)) return null;
  const unlike = map(bright, (value) => (value > 0 !== desk > 0.5 ? 1 : 0));
  const filled = withoutHoles(largestPart(unlike));
  const drawn = map(filled, (value, at) => (value > 0 && unlike.data[at] === 0 ? 1 : 0));
  if (mean(filled.data) < SHEET || squareness(filled) < STRAIGHT || !isWritten(drawn, filled)) return null;
  const rim = Math.max(1, rounded(RIM * Math.max(coarse.height, coarse.width)));
  const inner = extreme(padded(filled, rim), 2 * rim + 1, Math.min);
  const mask = grey(height, width);
  for (let row = 0; row < height; row++) {
    const down = Math.min(Math.floor(row / step), coarse.height - 1) + rim;
    for (let column = 0; column < width; column++) {
      const across = Math.min(Math.floor(column / step), coarse.width - 1) + rim;
      mask.data[row * width + column] = inner.data[down * inner.width + across];
    }
  }
  return { mask, bright: desk <= 0.5 };
}

/** @type {(values: ArrayLike<number>) => number} */
function mean(values) {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at];
  return sum / values.length;
}

/** @type {(values: Grey, wanted: (at: number) => boolean) => number} */
function meanWhere(values, wanted) {
  let sum = 0;
  let count = 0;
  values.data.forEach((value, at) => {
    if (!wanted(at)) return;
    sum += value;
    count += 1;
  });
  return sum / count;
}

/** Means of squares; what is left at the right and at the bottom is left out. @type {(picture: Grey, step: number) => Grey} */
function reduced(picture, step) {
  const found = grey(Math.floor(picture.height / step), Math.floor(picture.width / step));
  for (let row = 0; row < found.height * step; row++) {
    for (let column = 0; column < found.width * step; column++) {
      const at = Math.floor(row / step) * found.width + Math.floor(column / step);
      found.data[at] += picture.data[row * picture.width + column];
    }
  }
  return map(found, (value) => value / step ** 2);
}

/** The level that parts the most distant halves (Otsu, 1979). @type {(picture: Grey) => number} */
function threshold(picture) {
  const counts = new Float64Array(BINS);
  picture.data.forEach((value) => {
    if (value >= 0 && value <= 1) counts[Math.min(BINS - 1, Math.floor(value * BINS))] += 1;
  });
  const all = counts.reduce((sum, count) => sum + count, 0);
  const total = counts.reduce((sum, count, bin) => sum + (count * (bin + 0.5)) / BINS, 0);
  let best = -1;
  let level = 0;
  let below = 0;
  let sums = 0;
  counts.forEach((count, bin) => {
    below += count;
    sums += (count * (bin + 0.5)) / BINS;
    const apart = below * (all - below) * (sums / below - (total - sums) / (all - below)) ** 2;
    if (apart > best) [best, level] = [apart, (bin + 1) / BINS];
  });
  return level;
}

/** Of parts that touch, also at corners. @type {(marked: Grey) => Grey} */
function largestPart(marked) {
  const { parts, count } = labelled(marked);
  const sizes = new Float64Array(count + 1);
  parts.forEach((part) => (sizes[part] += 1));
  sizes[0] = 0;
  const largest = sizes.indexOf(sizes.reduce((most, size) => Math.max(most, size), 0));
  return map(marked, (_, at) => (parts[at] === largest && largest > 0 ? 1 : 0));
}

/** With all that the marked pixels surround. @type {(marked: Grey) => Grey} */
function withoutHoles(marked) {
  const { height, width, data } = marked;
  const outside = new Uint8Array(data.length);
  /** @type {number[]} */
  const waiting = [];
  /** @type {(row: number, column: number) => void} */
  const visit = (row, column) => {
    const at = row * width + column;
    if (row < 0 || row >= height || column < 0 || column >= width || outside[at] || data[at] > 0) return;
    outside[at] = 1;
    waiting.push(at);
  };
  for (let row = 0; row < height; row++) [0, width - 1].forEach((column) => visit(row, column));
  for (let column = 0; column < width; column++) [0, height - 1].forEach((row) => visit(row, column));
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const [row, column] = [Math.floor(at / width), at % width];
    visit(row - 1, column);
    visit(row + 1, column);
    visit(row, column - 1);
    visit(row, column + 1);
  }
  return map(marked, (_, at) => 1 - outside[at]);
}

/** The share of the smallest box around what is marked, over the angles of its sides. @type {(marked: Grey) => number} */
function squareness(marked) {
  let smallest = Infinity;
  let count = 0;
  marked.data.forEach((value) => (count += value));
  for (let turn = 0; turn < TURNS; turn++) {
    const angle = ((Math.PI / 2) * turn) / TURNS;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const ends = [Infinity, -Infinity, Infinity, -Infinity];
    marked.data.forEach((value, at) => {
      if (value === 0) return;
      const [down, across] = [Math.floor(at / marked.width), at % marked.width];
      const one = cos * across + sin * down;
      const other = cos * down - sin * across;
      ends[0] = Math.min(ends[0], one);
      ends[1] = Math.max(ends[1], one);
      ends[2] = Math.min(ends[2], other);
      ends[3] = Math.max(ends[3], other);
    });
    smallest = Math.min(smallest, (ends[1] - ends[0] + 1) * (ends[3] - ends[2] + 1));
  }
  return count / smallest;
}

/** Whether what is drawn are thin lines, or nothing that one could tell. @type {(drawn: Grey, filled: Grey) => boolean} */
function isWritten(drawn, filled) {
  const sum = (/** @type {Grey} */ { data }) => data.reduce((all, value) => all + value, 0);
  const area = sum(drawn);
  if (area === 0) return true;
  const pen = Math.max(1, penOf(drawn));
  return LONG * pen ** 2 <= area && area <= MOST * sum(filled);
}

/**
 * The largest value in a square of an odd size around each pixel, or the smallest: along rows, then along columns.
 * @type {(values: Grey, size: number, pick: (a: number, b: number) => number) => Grey}
 */
export function extreme(values, size, pick) {
  const { height, width } = values;
  const found = grey(height, width, values.data.slice());
  for (let row = 0; row < height; row++) slide(found.data, row * width, 1, width, size, pick);
  for (let column = 0; column < width; column++) slide(found.data, column, width, height, size, pick);
  return found;
}

/**
 * In a window that slides along a line: blocks as long as the window, from both their ends (van Herk, 1992).
 * @type {(data: Float64Array, from: number, step: number, count: number, size: number, pick: (a: number, b: number) => number) => void}
 */
function slide(data, from, step, count, size, pick) {
  const half = (size - 1) / 2;
  const long = Math.ceil((count + 2 * half) / size) * size;
  const line = new Float64Array(long);
  for (let at = 0; at < long; at++) line[at] = data[from + Math.min(count - 1, Math.max(0, at - half)) * step];
  const ahead = line.slice();
  const back = line.slice();
  for (let at = 1; at < long; at++) if (at % size) ahead[at] = pick(ahead[at], ahead[at - 1]);
  for (let at = long - 2; at >= 0; at--) if ((at + 1) % size) back[at] = pick(back[at], back[at + 1]);
  for (let at = 0; at < count; at++) data[from + at * step] = pick(back[at], ahead[at + size - 1]);
}

/** The mean of the pixels around each. @type {(picture: Grey) => Grey} */
function smooth({ height, width, data }) {
  const found = grey(height, width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let y = row - 1; y <= row + 1; y++) {
        for (let x = column - 1; x <= column + 1; x++) {
          sum += data[Math.min(height - 1, Math.max(0, y)) * width + Math.min(width - 1, Math.max(0, x))];
        }
      }
      found.data[row * width + column] = sum / 9;
    }
  }
  return found;
}

/**
 * How far each pixel is from the paper around it, as a share of the paper's light, and the deviation of the paper
 * itself; nothing outside the mask. `dark`: ink is darker than paper.
 * @type {(picture: Grey, mask: Grey, dark: boolean) => {above: Grey, noise: number}}
 */
export function inkOnUnevenPaper(picture, mask, dark) {
  const light = smooth(dark ? picture : map(picture, (value) => 1 - value));
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  mask.data.forEach((value, at) => {
    if (value === 0) return;
    const [row, column] = [Math.floor(at / mask.width), at % mask.width];
    box[0] = Math.min(box[0], row);
    box[1] = Math.max(box[1], row);
    box[2] = Math.min(box[2], column);
    box[3] = Math.max(box[3], column);
  });
  const side = Math.max(box[1] - box[0], box[3] - box[2]) + 1;
  const size = 2 * rounded((WINDOW * side) / 2) + 1;
  const most = extreme(map(light, (value, at) => (mask.data[at] > 0 ? value : -Infinity)), size, Math.max);
  const paper = extreme(map(most, (value, at) => (mask.data[at] > 0 ? value : Infinity)), size, Math.min);
  const above = map(light, (value, at) =>
    mask.data[at] > 0 ? (paper.data[at] - value) / Math.max(paper.data[at], 0.1) : 0,
  );
  const inside = above.data.filter((_, at) => mask.data[at] > 0);
  const usual = median([...inside]);
  const noise = 1.4826 * median([...inside].map((value) => Math.abs(value - usual)));
  return { above: map(above, (value, at) => (mask.data[at] > 0 ? value - usual : 0)), noise };
}
