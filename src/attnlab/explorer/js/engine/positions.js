// @ts-check
/**
 * Positional encodings; `positions/schemes.py` has the formulas and papers. Every scheme fills slots:
 * vectors that are added to the input, a rotation of queries and keys, a bias that is added to the scores.
 */

import { numbers } from "./numbers.js";

/** @import {Numbers, PositionSpec} from "./types.js" */
/** @import {Weights} from "./weights.js" */
/** @typedef {{columns: number, front: number}} Grid patches in a row, and tokens in front of all patches */
/** @typedef {(place: number, into: Float32Array) => void} Vector adds the vector of a place */
/** @typedef {(place: number) => Float64Array} Angles of a query or key, one for each pair of coordinates */
/** @typedef {(head: number, query: number, key: number) => number} Bias by a head and two places */

/**
 * @typedef {object} Slots
 * @property {Vector} [add]
 * @property {Angles} [rotation]
 * @property {Bias} [bias]
 * @property {(length: number, tokens?: number[]) => number[]} [mapping] where tokens stand; without it at 0, 1, 2
 *   and so on
 * @property {boolean} [couples] places of the input and of an answer belong together
 */

/** @typedef {{breaks: number[], lead: number}} Columns how a task counts the columns that tokens stand in */

/** What one stack knows of places. */
export class Positions {
  #slots;
  /** @type {Placed | null} */
  #last = null;

  /** @param {Slots} slots */
  constructor(slots = {}) {
    this.#slots = slots;
  }

  /**
   * The places of `length` tokens, kept from the last time where they are the same.
   * @param {number} length
   * @param {number[]} [tokens] of an input; those of an answer are only counted
   * @returns {Placed}
   */
  at(length, tokens) {
    const { mapping, couples } = this.#slots;
    const have = this.#last?.places.length ?? -1;
    const same = couples && tokens ? false : mapping ? have === length : have >= length;
    if (this.#last && same) return this.#last;
    const places = mapping ? mapping(length, tokens) : [...Array(length).keys()];
    this.#last = new Placed(places, this.#slots);
    return this.#last;
  }
}

/**
 * Where the tokens of an answer stand beside those of the input; undefined where that cannot be compared.
 * @param {Placed} placed
 * @param {Placed} memory
 */
export const across = (placed, memory) => (placed.compares ? placed.across(memory) : undefined);

/** The places of the tokens of one pass, and the slots that make something of them. */
export class Placed {
  #slots;
  /** @type {{cos: Float64Array, sin: Float64Array}[]} by token */
  #turns;

  #keys;

  /**
   * @param {number[]} places
   * @param {Slots} slots
   * @param {Placed | null} [keys] where keys stand, if they are other tokens
   */
  constructor(places, slots, keys = null) {
    this.places = places;
    this.#slots = slots;
    this.#keys = keys;
    const { rotation } = slots;
    this.#turns = rotation
      ? places.map(rotation).map((angle) => ({ cos: angle.map(Math.cos), sin: angle.map(Math.sin) }))
      : [];
  }

  /**
   * Tokens with the vectors of their places added.
   * @param {Numbers} x (T, D)
   * @param {number} [start] the number of the first token
   * @returns {Numbers}
   */
  embed(x, start = 0) {
    const { add } = this.#slots;
    if (!add) return x;
    const [count, width] = x.shape;
    const sum = numbers(x.shape, x.data.slice());
    for (let t = 0; t < count; t++) {
      add(this.places[start + t], sum.data.subarray(t * width, (t + 1) * width));
    }
    return sum;
  }

  /**
   * Queries or keys (H, T, K), rotated in place: (x, y) -> (x cos a - y sin a, x sin a + y cos a).
   * @param {Numbers} vectors
   * @param {number} start
   * @returns {Numbers}
   */
  rotate(vectors, start) {
    if (!this.#slots.rotation) return vectors;
    const [heads, count, width] = vectors.shape;
    const { data } = vectors;
    for (let row = 0; row < heads * count; row++) {
      const { cos, sin } = this.#turns[start + (row % count)];
      for (let i = 0; i < width / 2; i++) {
        const at = row * width + 2 * i;
        const [x, y] = [data[at], data[at + 1]];
        data[at] = x * cos[i] - y * sin[i];
        data[at + 1] = x * sin[i] + y * cos[i];
      }
    }
    return vectors;
  }

  /**
   * Keys, rotated in the same way.
   * @param {Numbers} vectors
   * @param {number} start
   * @returns {Numbers}
   */
  rotateKeys(vectors, start) {
    return (this.#keys ?? this).rotate(vectors, start);
  }

  /** Whether places of the input and of an answer are compared. */
  get compares() {
    const { couples, rotation, bias } = this.#slots;
    return Boolean(couples && (rotation || bias));
  }

  /**
   * The same queries, which look at the tokens of `memory`.
   * @param {Placed} memory
   */
  across(memory) {
    return new Placed(this.places, this.#slots, memory);
  }

  /**
   * What is added to the score of a query and a key, by the head's own number and the tokens'.
   * @returns {Bias | null}
   */
  get bias() {
    const { bias } = this.#slots;
    const keys = this.#keys?.places ?? this.places;
    return bias ? (head, i, j) => bias(head, this.places[i], keys[j]) : null;
  }
}

/**
 * The positions of one stack.
 * @param {PositionSpec} spec
 * @param {object} about
 * @param {Weights} about.weights
 * @param {string} about.path of the positions' own weights
 * @param {number} about.width
 * @param {number} about.headWidth
 * @param {Grid} [about.grid]
 * @param {Columns} [about.counted]
 * @returns {Positions}
 */
export function buildPositions(spec, { weights, path, width, headWidth, grid = { columns: 1, front: 0 }, counted }) {
  const trained = (/** @type {string} */ name) => weights.get(`${path}.${name}`);
  const biases = spec.window ? "bias.inner.table" : "bias.table";
  const own = (/** @type {string} */ kind, base = spec.base) => {
    switch (kind) {
      case "none":
        return {};
      case "sinusoidal":
        return { add: waves(width, base) };
      case "learned":
        return { add: table(trained("add.table")) };
      case "rotary":
        return { rotation: angles(headWidth, base) };
      case "alibi":
        return { bias: linearBias(width / headWidth) };
      case "relative":
        return { bias: bucketBias(trained(biases), spec.buckets, spec.distance) };
      case "grid-sinusoidal":
        return { add: gridWaves(width, base, grid) };
      case "grid-learned":
        return { add: gridTable(trained("add.rows"), trained("add.columns"), grid) };
      case "grid-rotary":
        return { rotation: gridAngles(headWidth, base, grid) };
      default:
        throw new Error(`positions of kind ${kind} are unknown`);
    }
  };
  const usual = 10000; // the base of the waves and turns inside of a mapping
  switch (spec.kind) {
    case "randomised":
      return new Positions({ ...own(spec.inner, usual), mapping: evenPlaces(spec.limit) });
    case "interpolated":
      return new Positions({ ...own(spec.inner, usual), mapping: squeezedPlaces(spec.trained) });
    case "coupled": {
      const inner = own(spec.inner, usual);
      const bias = spec.window ? windowBias(spec.window, inner.bias) : inner.bias;
      const mapping = columnPlaces(counted ?? { breaks: [], lead: 0 });
      return new Positions({ ...inner, ...(bias && { bias }), mapping, couples: true });
    }
    default:
      return new Positions(own(spec.kind));
  }
}

/** @param {number} width @param {number} base */
const frequencies = (width, base) =>
  Float64Array.from({ length: Math.ceil(width / 2) }, (_, i) => base ** ((-2 * i) / width));

/**
 * PE(p, 2i) = sin(p base^(-2i/D)), PE(p, 2i+1) = cos of the same
 * @param {number} width
 * @param {number} base
 * @returns {Vector}
 */
function waves(width, base) {
  const frequency = frequencies(width, base);
  return (place, into) => {
    for (let i = 0; i < frequency.length; i++) {
      into[2 * i] += Math.sin(place * frequency[i]);
      into[2 * i + 1] += Math.cos(place * frequency[i]);
    }
  };
}

/**
 * E[min(p, length - 1)]
 * @param {Numbers} vectors
 * @returns {Vector}
 */
function table({ shape, data }) {
  return (place, into) => {
    const row = Math.min(Math.floor(place), shape[0] - 1);
    for (let i = 0; i < into.length; i++) into[i] += data[row * shape[1] + i];
  };
}

/** @param {number} headWidth @param {number} base @returns {Angles} */
function angles(headWidth, base) {
  const frequency = frequencies(headWidth, base);
  return (place) => frequency.map((each) => place * each);
}

/** -m_h |i - j| with m_h = 2^(-8 h / H), h = 1 .. H @param {number} heads @returns {Bias} */
function linearBias(heads) {
  return (head, i, j) => -Math.fround(2 ** ((-8 * (head + 1)) / heads)) * Math.abs(i - j);
}

/**
 * E[bucket(j - i), h]; keys after the query use the second half of the buckets.
 * @param {Numbers} trained (buckets, H)
 * @param {number} buckets
 * @param {number} distance
 * @returns {Bias}
 */
function bucketBias({ shape, data }, buckets, distance) {
  const half = buckets / 2;
  const offsets = [...Array(2 * distance + 1).keys()].map((n) => n - distance);
  const found = offsets.map((d) => bucket(Math.abs(d), half, distance) + (d > 0 ? half : 0));
  return (head, i, j) => {
    const offset = Math.max(-distance, Math.min(distance, Math.trunc(j - i)));
    return data[found[offset + distance] * shape[1] + head];
  };
}

/**
 * One bucket for each distance below e, then wider ones: e + floor((n - e) log(d / e) / log(distance / e)).
 * @param {number} d
 * @param {number} buckets n, of one direction
 * @param {number} distance
 */
export function bucket(d, buckets, distance) {
  const exact = Math.floor(buckets / 2);
  if (d < exact) return d;
  const wide = ((buckets - exact) * Math.log(d / exact)) / Math.log(distance / exact);
  return Math.min(exact + Math.trunc(wide), buckets - 1);
}

/**
 * Row, column, and whether it is a patch; what stands in front is said to be at 0.
 * @param {number} place
 * @param {Grid} grid
 */
function cell(place, { columns, front }) {
  const patch = Math.max(0, place - front);
  return { row: Math.floor(patch / columns), column: patch % columns, isPatch: place >= front };
}

/**
 * Waves of the row, then of the column.
 * @param {number} width
 * @param {number} base
 * @param {Grid} grid
 * @returns {Vector}
 */
function gridWaves(width, base, grid) {
  const half = waves(width / 2, base);
  return (place, into) => {
    const { row, column, isPatch } = cell(place, grid);
    if (!isPatch) return;
    half(row, into.subarray(0, width / 2));
    half(column, into.subarray(width / 2));
  };
}

/**
 * R[row] + C[column]
 * @param {Numbers} rows
 * @param {Numbers} columns
 * @param {Grid} grid
 * @returns {Vector}
 */
function gridTable(rows, columns, grid) {
  const [row, column] = [table(rows), table(columns)];
  return (place, into) => {
    const at = cell(place, { ...grid, columns: columns.shape[0] });
    if (!at.isPatch) return;
    row(at.row, into);
    column(at.column, into);
  };
}

/**
 * One half by the row, the other by the column.
 * @param {number} headWidth
 * @param {number} base
 * @param {Grid} grid
 * @returns {Angles}
 */
function gridAngles(headWidth, base, grid) {
  const half = angles(headWidth / 2, base);
  return (place) => {
    const { row, column } = cell(place, grid);
    return Float64Array.from([...half(row), ...half(column)]);
  };
}

/**
 * What `inner` adds, if anything, and -10,000 where a key is more than `window` places away.
 * @param {number} window
 * @param {Bias} [inner]
 * @returns {Bias}
 */
function windowBias(window, inner) {
  return (head, i, j) => (Math.abs(j - i) > window ? -1e4 : 0) + (inner ? inner(head, i, j) : 0);
}

/**
 * Columns, counted anew behind each of the `breaks`; an answer is counted from 0.
 * @param {Columns} counted
 */
function columnPlaces({ breaks, lead }) {
  return (/** @type {number} */ length, /** @type {number[]} */ tokens = []) => {
    const first = tokens.length ? lead : 0;
    let begin = 0;
    return [...Array(length).keys()].map((i) => {
      const place = i - begin + first;
      if (breaks.includes(tokens[i])) begin = i + 1;
      return place;
    });
  };
}

/** p_i = floor((i + 1/2) limit / n) @param {number} limit */
function evenPlaces(limit) {
  return (/** @type {number} */ length) => {
    if (length > limit) {
      throw new Error(`${length} tokens cannot be placed: the model's positions reach ${limit} tokens`);
    }
    return [...Array(length).keys()].map((i) => Math.floor(((2 * i + 1) * limit) / (2 * length)));
  };
}

/** p_i = i min(1, n0 / n) @param {number} trained */
function squeezedPlaces(trained) {
  return (/** @type {number} */ length) => {
    const squeeze = Math.min(1, trained / length);
    return [...Array(length).keys()].map((i) => i * squeeze);
  };
}
