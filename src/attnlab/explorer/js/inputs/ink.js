// @ts-check
/**
 * From ink to digits as MNIST has them (LeCun, Bottou, Bengio and Haffner, 1998): the rules of
 * `attnlab/data/ink.py` in the same words. A digit is scaled into 20 x 20 pixels with its proportions kept
 * and placed in 28 x 28 such that its centre of mass is at the middle.
 */

/**
 * Values from 0 to 1, row by row. Of ink, 1 is full.
 * @typedef {{height: number, width: number, data: Float64Array}} Grey
 */

export const SIDE = 28;
export const BOX = 20;
/** Lines thinner than the first, in pixels of the 20 x 20, are drawn again with the second. */
const THIN = 1.3;
const PEN = 2.0;
/** Parts with less than this share of the largest part's ink are no parts of a digit. */
const SPECK = 0.02;

/** @type {(height: number, width: number, data?: Float64Array) => Grey} */
export function grey(height, width, data = new Float64Array(height * width)) {
  return { height, width, data };
}

/** @type {(values: Grey, change: (value: number, at: number) => number) => Grey} */
export function map(values, change) {
  return grey(values.height, values.width, values.data.map(change));
}

/** @type {(values: ArrayLike<number>) => number} */
export function largest(values) {
  let most = -Infinity;
  for (let at = 0; at < values.length; at++) most = Math.max(most, values[at]);
  return most;
}

/**
 * One digit, scaled and placed as in MNIST.
 * @param {Grey} ink
 * @returns {Uint8Array} 28 x 28
 */
export function centred(ink) {
  let digit = withoutSpecks(ink);
  digit = cut(digit, boxOf(digit));
  const scale = BOX / Math.max(digit.height, digit.width);
  if (scale < 0.5) {
    digit = thickened(digit, scale);
    digit = cut(digit, boxOf(digit));
  }
  const longest = Math.max(digit.height, digit.width);
  const [height, width] = [digit.height, digit.width].map((side) => Math.max(1, rounded((BOX * side) / longest)));
  const small = resized(digit, height, width);
  const full = fullest(largest(small.data));
  const ready = map(small, (value) => Math.min(1, Math.max(0, value / full)));
  return placed(ready);
}

/**
 * A scaled digit in 28 x 28 pixels.
 * @type {(digit: Grey) => Uint8Array}
 */
export function placed(digit) {
  const { height, width, data } = digit;
  const down = new Float64Array(height);
  const across = new Float64Array(width);
  data.forEach((value, at) => {
    down[Math.floor(at / width)] += value;
    across[at % width] += value;
  });
  const top = start(down);
  const left = start(across);
  const pixels = new Uint8Array(SIDE * SIDE);
  data.forEach((value, at) => {
    pixels[(top + Math.floor(at / width)) * SIDE + left + (at % width)] = rounded(255 * value);
  });
  return pixels;
}

/**
 * Where the box begins, so that the centre of mass is at the middle and nothing is outside.
 * @type {(mass: Float64Array) => number}
 */
function start(mass) {
  const sum = mass.reduce((all, each) => all + each, 0);
  const centre = mass.reduce((all, each, at) => all + each * at, 0) / sum;
  return Math.min(SIDE - mass.length, Math.max(0, rounded(SIDE / 2 - centre)));
}

/**
 * What counts as ink at its fullest: nearly full is left as it is.
 * @type {(most: number) => number}
 */
export function fullest(most) {
  return most > 0.95 ? 1 : most;
}

/**
 * The nearest whole number, and of two the even one, as Python rounds.
 * @type {(value: number) => number}
 */
export function rounded(value) {
  const near = Math.round(value);
  return Math.abs(value % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** @type {(values: number[]) => number} */
export function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const middle = ordered.length >> 1;
  return ordered.length % 2 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}

/**
 * What stands in the first and last row and column; corners count twice.
 * @type {(values: Grey) => number[]}
 */
export function edgeOf({ height, width, data }) {
  const rows = [...data.subarray(0, width), ...data.subarray((height - 1) * width)];
  const sides = Array.from({ length: height }, (_, row) => [data[row * width], data[row * width + width - 1]]);
  return [...rows, ...sides.flat()];
}

/** @typedef {{top: number, bottom: number, left: number, right: number}} Box  bottom and right are behind the last */

/**
 * The smallest box around the ink.
 * @type {(ink: Grey) => Box}
 */
export function boxOf({ height, width, data }) {
  const box = { top: height, bottom: 0, left: width, right: 0 };
  data.forEach((value, at) => {
    if (value === 0) return;
    const row = Math.floor(at / width);
    const column = at % width;
    box.top = Math.min(box.top, row);
    box.bottom = Math.max(box.bottom, row + 1);
    box.left = Math.min(box.left, column);
    box.right = Math.max(box.right, column + 1);
  });
  return box;
}

/** @type {(values: Grey, box: Box) => Grey} */
export function cut(values, { top, bottom, left, right }) {
  const part = grey(bottom - top, right - left);
  for (let row = top; row < bottom; row++) {
    const from = row * values.width;
    part.data.set(values.data.subarray(from + left, from + right), (row - top) * part.width);
  }
  return part;
}

/** With zeros around it. @type {(values: Grey, by: number) => Grey} */
export function padded(values, by) {
  const wide = grey(values.height + 2 * by, values.width + 2 * by);
  for (let row = 0; row < values.height; row++) {
    const line = values.data.subarray(row * values.width, (row + 1) * values.width);
    wide.data.set(line, (row + by) * wide.width + by);
  }
  return wide;
}

/**
 * The ink without its smallest parts.
 * @type {(ink: Grey) => Grey}
 */
export function withoutSpecks(ink) {
  const { parts, count } = labelled(ink);
  const masses = new Float64Array(count + 1);
  ink.data.forEach((value, at) => (masses[parts[at]] += value));
  masses[0] = 0;
  const least = SPECK * largest(masses);
  return map(ink, (value, at) => (masses[parts[at]] >= least ? value : 0));
}

/**
 * The number of the part that each pixel belongs to, 0 for paper; pixels that touch at a corner are of one part.
 * @type {(ink: Grey) => {parts: Int32Array, count: number}}
 */
export function labelled({ height, width, data }) {
  const parts = new Int32Array(data.length);
  const waiting = new Int32Array(data.length);
  let count = 0;
  for (let first = 0; first < data.length; first++) {
    if (data[first] <= 0 || parts[first]) continue;
    parts[first] = ++count;
    waiting[0] = first;
    for (let length = 1; length > 0; ) {
      const at = waiting[--length];
      const row = Math.floor(at / width);
      const column = at % width;
      for (let y = Math.max(0, row - 1); y <= Math.min(height - 1, row + 1); y++) {
        for (let x = Math.max(0, column - 1); x <= Math.min(width - 1, column + 1); x++) {
          const next = y * width + x;
          if (data[next] <= 0 || parts[next]) continue;
          parts[next] = count;
          waiting[length++] = next;
        }
      }
    }
  }
  return { parts, count };
}

/**
 * The width of lines: in a bar that is w wide, a pixel is w/4 + 1/2 away from the paper on average.
 * @type {(drawn: Grey) => number}
 */
export function penOf(drawn) {
  const room = padded(drawn, 1);
  const away = squaredDistances(map(room, (value) => 1 - value));
  let sum = 0;
  let count = 0;
  room.data.forEach((value, at) => {
    sum += value * Math.sqrt(away[at]);
    count += value;
  });
  return (4 * sum) / count - 2;
}

/**
 * Thin lines as a pen of MNIST would have drawn them.
 * @type {(ink: Grey, scale: number) => Grey}
 */
function thickened(ink, scale) {
  const half = largest(ink.data) / 2; // a digit may be fainter than its neighbours
  const drawn = map(ink, (value) => (value > half ? 1 : 0));
  const pen = penOf(drawn);
  if (pen * scale >= THIN) return ink;
  const radius = (PEN / scale - pen) / 2;
  const room = padded(drawn, Math.ceil(radius));
  const near = squaredDistances(room);
  return map(room, (_, at) => (near[at] <= radius * radius ? 1 : 0));
}

/**
 * The squared distance of each pixel to the nearest marked one (Felzenszwalb and Huttenlocher, 2012): along
 * rows, then along columns.
 * @type {(marked: Grey) => Float64Array}
 */
function squaredDistances({ height, width, data }) {
  const values = data.map((value) => (value > 0 ? 0 : 1e12));
  for (let row = 0; row < height; row++) lower(values, row * width, 1, width);
  for (let column = 0; column < width; column++) lower(values, column, width, height);
  return values;
}

/**
 * The lower envelope of parabolas over a line of values, in place.
 * @type {(values: Float64Array, from: number, step: number, count: number) => void}
 */
function lower(values, from, step, count) {
  const line = Float64Array.from({ length: count }, (_, at) => values[from + at * step]);
  const roots = new Int32Array(count);
  const bounds = new Float64Array(count + 1);
  let last = 0;
  bounds[0] = -Infinity;
  bounds[1] = Infinity;
  /** @type {(a: number, b: number) => number} */
  const meet = (a, b) => (line[b] + b * b - line[a] - a * a) / (2 * (b - a));
  for (let at = 1; at < count; at++) {
    while (meet(roots[last], at) <= bounds[last]) last--;
    bounds[last + 1] = meet(roots[last], at);
    roots[++last] = at;
    bounds[last + 1] = Infinity;
  }
  for (let at = 0, root = 0; at < count; at++) {
    while (bounds[root + 1] < at) root++;
    values[from + at * step] = (at - roots[root]) ** 2 + line[roots[root]];
  }
}

/**
 * In another size. Each new pixel is the mean of the old ones around it, weighted by a triangle, which is at
 * least one old pixel wide on either side (Pillow's `BILINEAR`).
 * @type {(values: Grey, height: number, width: number) => Grey}
 */
export function resized(values, height, width) {
  const across = weights(values.width, width);
  const wide = grey(values.height, width);
  for (let row = 0; row < values.height; row++) {
    across.forEach(({ first, shares }, column) => {
      let sum = 0;
      for (let at = 0; at < shares.length; at++) sum += shares[at] * values.data[row * values.width + first + at];
      wide.data[row * width + column] = Math.fround(sum);
    });
  }
  const small = grey(height, width);
  weights(values.height, height).forEach(({ first, shares }, row) => {
    for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let at = 0; at < shares.length; at++) sum += shares[at] * wide.data[(first + at) * width + column];
      small.data[row * width + column] = Math.fround(sum);
    }
  });
  return small;
}

/** @type {(before: number, after: number) => {first: number, shares: number[]}[]} */
function weights(before, after) {
  const scale = before / after;
  const reach = Math.max(scale, 1);
  return Array.from({ length: after }, (_, at) => {
    const centre = (at + 0.5) * scale;
    const first = Math.max(0, Math.floor(centre - reach + 0.5));
    const end = Math.min(before, Math.floor(centre + reach + 0.5));
    const shares = Array.from({ length: end - first }, (_, place) =>
      Math.max(0, 1 - Math.abs(first + place - centre + 0.5) / reach),
    );
    const sum = shares.reduce((all, each) => all + each, 0);
    return { first, shares: shares.map((each) => each / sum) };
  });
}
