// @ts-check
/**
 * Digits of a photo or a scan, as `attnlab/data/ink.py` reads them and in the same words: the paper is a plane
 * through the grey values of the edge, unless it is a sheet on a desk or lies in a shadow; ink is what stands out
 * from it; a border, a frame, rules between cells and other lines are left out.
 */

import {
  SIDE,
  boxOf,
  centred,
  cut,
  edgeOf,
  fullest,
  labelled,
  largest,
  map,
  median,
  withoutSpecks,
} from "./ink.js";
import { cellsBetween, turned, withoutFaintLines, withoutLines } from "./lines.js";
import { SMALLEST, findSheet, inkOnUnevenPaper } from "./sheets.js";

/** @import {Box, Grey} from "./ink.js" */

/** The least contrast of ink, on a scale from black to white. */
const FAINTEST = 0.1;
/** The most of a side that a border, a frame or a rule takes. */
const THICKEST = 1 / 8;
/** The least share of a side along which a straight line goes. */
const SPANNED = 0.9;
/** The least share of the ink inside a frame that does not touch it. */
const FREE = 0.1;
/** The least median of a picture that shows paper in shadows. */
const BRIGHT = 0.35;
/** The share of the edge that may be ink, beyond which paper is no plane. */
const UNEVEN = 0.05;
/** Ink on the edge that does not count. */
const WEAK = 0.2;

/**
 * The digits of a picture, cut into equal cells, each as MNIST has it.
 * @param {Grey} picture  0 is black
 * @param {number} rows
 * @param {number} columns
 * @returns {Uint8Array} 28 * rows x 28 * columns
 */
export function readDigits(picture, rows, columns) {
  const { height, width } = picture;
  if (height < rows || width < columns) {
    throw new Error(`the picture has ${width} x ${height} pixels, too few for ${rows} x ${columns} digits`);
  }
  const inner = withoutBorder(picture);
  let ink = (inner === picture ? inkOnASheet(picture) : null) ?? findInk(inner);
  if (largest(ink.data) === 0) ink = findInk(picture); // a bar that fills its picture looks like paper in a border
  if (largest(ink.data) === 0) throw new Error("the picture has no ink in it: nothing stands out against its edge");
  const cells = cellsOf(ink, rows, columns);
  const pixels = new Uint8Array(SIDE * rows * SIDE * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [top, bottom] = cells.down[row];
      const [left, right] = cells.across[column];
      const cell = cut(cells.ink, { top, bottom, left, right });
      if (largest(cell.data) === 0) {
        const where = `row ${row + 1}, column ${column + 1} of its ${rows} x ${columns} cells`;
        throw new Error(`the picture has no ink in ${where}`);
      }
      paste(pixels, centred(cell), row, column, columns);
    }
  }
  return pixels;
}

/**
 * Ink without lines, and where its cells are: between lines that were drawn, or all alike but for digits that
 * reach into the next cell. A picture that is as small as MNIST's has none of this.
 * @type {(ink: Grey, rows: number, columns: number) => {ink: Grey, down: [number, number][], across: [number, number][]}}
 */
function cellsOf(ink, rows, columns) {
  const small = Math.min(ink.height / rows, ink.width / columns) < SMALLEST;
  const inner = withoutRules(withoutFrame(ink), rows, columns);
  if (small) return { ink: inner, down: gaps(inner, rows, 0), across: gaps(turned(inner), columns, 0) };
  const plain = withoutFaintLines(inner);
  const found = withoutLines(plain, rows > 1 && columns > 1) ?? { ink: plain, across: [], down: [] };
  return {
    ink: found.ink,
    down: cellsBetween(found.across, rows, found.ink.height) ?? gaps(found.ink, rows, 4),
    across: cellsBetween(found.down, columns, found.ink.width) ?? gaps(turned(found.ink), columns, 4),
  };
}

/**
 * Equal cells, whose ends move to where there is no ink, or least, up to a `part` of a cell.
 * @type {(ink: Grey, count: number, part: number) => [number, number][]}
 */
function gaps({ height: size, width, data }, count, part) {
  const mass = new Float64Array(size + 2);
  data.forEach((value, at) => (mass[Math.floor(at / width) + 1] += value));
  const ends = [0];
  for (let place = 1; place < count; place++) {
    const end = Math.floor((size * place) / count);
    let best = end;
    const reach = part ? Math.floor(size / (part * count)) : 0;
    for (let away = 0; away <= reach; away++) {
      for (const at of [end - away, end + away]) if (mass[at] + mass[at + 1] < mass[best] + mass[best + 1]) best = at;
    }
    ends.push(best);
  }
  return [...ends.slice(1), size].map((end, at) => [ends[at], end]);
}

/** The ink of a sheet that lies on a desk; null if there is none. @type {(picture: Grey) => Grey | null} */
function inkOnASheet(picture) {
  const found = findSheet(picture);
  if (!found) return null;
  const { above, noise } = inkOnUnevenPaper(picture, found.mask, found.bright);
  const ink = scaled(above, noise);
  return largest(ink.data) > 0 ? ink : null;
}

/**
 * Put a digit into a cell of a grid of digits.
 * @type {(pixels: Uint8Array, digit: Uint8Array, row: number, column: number, columns: number) => void}
 */
export function paste(pixels, digit, row, column, columns) {
  for (let y = 0; y < SIDE; y++) {
    const line = digit.subarray(y * SIDE, (y + 1) * SIDE);
    pixels.set(line, ((row * SIDE + y) * columns + column) * SIDE);
  }
}

/**
 * How much ink each pixel has, 0 to 1; nothing but 0 where there is none.
 * @type {(picture: Grey) => Grey}
 */
export function findInk(picture) {
  const { paper, noise } = paperOf(picture);
  const above = map(picture, (value, at) => value - paper[at]);
  const below = map(above, (value) => -value);
  const dark = largest(above.data) < largest(below.data);
  const ink = scaled(dark ? below : above, noise);
  const touching = edgeOf(ink);
  const share = touching.filter((value) => value > WEAK).length / touching.length;
  if (share <= UNEVEN || Math.min(picture.height, picture.width) < SMALLEST) return ink;
  const everywhere = map(picture, () => 1);
  const found = inkOnUnevenPaper(picture, everywhere, dark || median([...picture.data]) > BRIGHT);
  return within(scaled(found.above, found.noise));
}

/** The ink without parts that touch the edge, unless most of it does. @type {(ink: Grey) => Grey} */
function within(ink) {
  const { parts } = labelled(ink);
  const touching = new Set(edgeOf({ ...ink, data: Float64Array.from(parts) }));
  const free = map(ink, (value, at) => (touching.has(parts[at]) ? 0 : value));
  const sum = (/** @type {Grey} */ { data }) => data.reduce((all, value) => all + value, 0);
  return sum(free) >= FREE * sum(ink) ? free : ink;
}

/**
 * From nothing, where a pixel is no further from the paper than its noise, to 1.
 * @type {(above: Grey, noise: number) => Grey}
 */
function scaled(above, noise) {
  const most = largest(above.data);
  if (most < FAINTEST + Math.min(4 * noise, FAINTEST)) return map(above, () => 0);
  const floor = Math.min(4 * noise, most / 2); // half where a digit that touches the edge passes for noise
  return map(above, (value) => Math.min(1, Math.max(0, (value - floor) / (fullest(most) - floor))));
}

/**
 * The plane through the edge, and the deviation of the edge from it.
 * @type {(picture: Grey) => {paper: Float64Array, noise: number}}
 */
function paperOf({ height, width, data }) {
  /** @type {number[]} */
  const edge = [];
  data.forEach((_, at) => {
    const [row, column] = [Math.floor(at / width), at % width];
    if (row === 0 || row === height - 1 || column === 0 || column === width - 1) edge.push(at);
  });
  const middle = median(edge.map((at) => data[at]));
  let paper = new Float64Array(data.length).fill(middle);
  const away = () => edge.map((at) => Math.abs(data[at] - paper[at]));
  if (deviation(away()) === 0) return { paper, noise: 0 };
  for (let turn = 0; turn < 3; turn++) { // what is far from the plane is ink that touches the edge
    const apart = away();
    const most = Math.max(3 * deviation(apart), median(apart));
    const near = edge.filter((_, place) => apart[place] <= most);
    const terms = near.map((at) => [1, Math.floor(at / width) / height, (at % width) / width]);
    const found = leastSquares(terms, near.map((at) => data[at]));
    if (!found) break;
    const [base, down, across] = found;
    paper = data.map((_, at) => base + (down * Math.floor(at / width)) / height + (across * (at % width)) / width);
  }
  return { paper, noise: deviation(away()) };
}

/**
 * By the median of distances, which ink on less than half of the edge does not move.
 * @type {(distances: number[]) => number}
 */
function deviation(distances) {
  return 1.4826 * median(distances);
}

/**
 * Least squares of few terms by the normal equations; null where they do not settle every term.
 * @type {(terms: number[][], values: number[]) => number[] | null}
 */
function leastSquares(terms, values) {
  const count = terms[0].length;
  const rows = Array.from({ length: count }, (_, a) => [
    ...Array.from({ length: count }, (_, b) => terms.reduce((sum, each) => sum + each[a] * each[b], 0)),
    terms.reduce((sum, each, at) => sum + each[a] * values[at], 0),
  ]);
  for (let at = 0; at < count; at++) {
    const pivot = rows.slice(at).reduce((best, row) => (Math.abs(row[at]) > Math.abs(best[at]) ? row : best));
    if (Math.abs(pivot[at]) < 1e-9) return null;
    rows.splice(rows.indexOf(pivot), 1);
    rows.splice(at, 0, pivot);
    rows.forEach((row, place) => {
      if (place === at) return;
      const share = row[at] / pivot[at];
      pivot.forEach((value, column) => (row[column] -= share * value));
    });
  }
  return rows.map((row, at) => row[count] / row[at]);
}

/**
 * The picture inside its border; as it is if it has none.
 * @type {(picture: Grey) => Grey}
 */
function withoutBorder(picture) {
  const edge = median(edgeOf(picture));
  const usual = median([...picture.data]);
  if (Math.abs(edge - usual) < FAINTEST) return picture;
  const like = map(picture, (value) => (Math.abs(value - edge) < Math.abs(value - usual) ? 1 : 0));
  const widths = frameWidths(like);
  if (!widths) return picture;
  const inner = edgeOf(cut(like, inside(like, widths)));
  return inner.reduce((sum, value) => sum + value, 0) / inner.length > 1 - SPANNED
    ? picture
    : cut(picture, inside(picture, widths));
}

/**
 * The ink inside the frame; as it is if there is none.
 * @type {(ink: Grey) => Grey}
 */
function withoutFrame(ink) {
  const half = largest(ink.data) / 2;
  const drawn = map(withoutSpecks(ink), (value) => (value > half ? 1 : 0));
  const box = boxOf(drawn);
  const widths = frameWidths(cut(drawn, box));
  if (!widths) return ink;
  const framed = cut(ink, box);
  const inner = cut(framed, inside(framed, widths));
  return standsFree(inner) ? inner : ink;
}

/**
 * Whether there is ink that does not touch the edge: else a frame is part of a digit, as in 8.
 * @type {(ink: Grey) => boolean}
 */
function standsFree(ink) {
  const { parts } = labelled(ink);
  const touching = new Set(edgeOf({ ...ink, data: Float64Array.from(parts) }));
  let all = 0;
  let free = 0;
  ink.data.forEach((value, at) => {
    all += value;
    if (!touching.has(parts[at])) free += value;
  });
  return free > 0 && free >= FREE * all;
}

/**
 * The ink without lines between the cells.
 * @type {(ink: Grey, rows: number, columns: number) => Grey}
 */
function withoutRules(ink, rows, columns) {
  const across = rules(shares(ink, "rows"), rows);
  const down = rules(shares(ink, "columns"), columns);
  return map(ink, (value, at) => (across[Math.floor(at / ink.width)] || down[at % ink.width] ? 0 : value));
}

/**
 * Of each line of pixels the share that is marked.
 * @type {(values: Grey, along: "rows" | "columns") => number[]}
 */
function shares({ height, width, data }, along) {
  const counts = new Array(along === "rows" ? height : width).fill(0);
  data.forEach((value, at) => {
    if (value > 0) counts[along === "rows" ? Math.floor(at / width) : at % width] += 1;
  });
  return counts.map((count) => count / (along === "rows" ? width : height));
}

/**
 * Which lines of pixels are ruled, by the share of each that is inked.
 * @type {(spans: number[], cells: number) => boolean[]}
 */
function rules(spans, cells) {
  const count = spans.length;
  const ruled = new Array(count).fill(false);
  const thickest = (THICKEST * count) / cells;
  for (let place = 1; place < cells; place++) {
    const found = spans.flatMap((span, at) =>
      Math.abs(at + 0.5 - (count * place) / cells) <= thickest && span >= SPANNED ? [at] : [],
    );
    if (found.length <= thickest) found.forEach((at) => (ruled[at] = true));
  }
  return ruled.map((_, at) => ruled[at - 1] || ruled[at] || ruled[at + 1] || false); // the lines beside are blurred
}

/** @typedef {[number, number, number, number]} Widths  at the top, bottom, left and right */

/**
 * How many lines of pixels are marked at each side, if that is a thin frame.
 * @type {(marked: Grey) => Widths | null}
 */
function frameWidths(marked) {
  const down = shares(marked, "rows");
  const across = shares(marked, "columns");
  /** @type {(spans: number[]) => number} */
  const leading = (spans) => {
    const end = spans.findIndex((span) => span < SPANNED);
    return end < 0 ? spans.length : end;
  };
  const [top, left] = [leading(down), leading(across)];
  const [bottom, right] = [leading(down.reverse()), leading(across.reverse())];
  const thin = Math.min(top, bottom, left, right) > 0;
  const fits = Math.max(top, bottom) <= THICKEST * marked.height && Math.max(left, right) <= THICKEST * marked.width;
  return thin && fits ? [top, bottom, left, right] : null;
}

/**
 * What a frame holds, less a line at each side where it may be blurred.
 * @type {(values: Grey, widths: Widths) => Box}
 */
function inside({ height, width }, [top, bottom, left, right]) {
  return { top: top + 1, bottom: height - bottom - 1, left: left + 1, right: width - right - 1 };
}
