// @ts-check
/**
 * Multi-head attention (Vaswani et al., 2017), as in `attention.py`. For each head, with q, k, v linear in
 * their inputs:
 *
 *     scores  = c (q k^T / sqrt(K) + bias)        (H, T, S), -Infinity where a key is not visible
 *     pattern = softmax over keys of scores       (H, T, S)
 *     z       = pattern v                         (H, T, K)
 *     out     = concat over heads of z, times W_o, plus b_o   (T, D)
 *
 * c is 1, or log n / log n0 for a query that sees n keys. A window lets query i see key j only if
 * |i - j| <= window.
 */

import { numbers, softmax } from "./numbers.js";

/** @import {Kernels} from "./kernels.js" */
/** @import {Placed} from "./positions.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Numbers} from "./types.js" */
/** @import {Layer} from "./weights.js" */

/**
 * `placed` turns queries and keys and biases scores; cross attention has none, unless places are compared. The first query is token
 * `start`. `causal`: a query sees itself and what stands before it.
 * @typedef {{taps: Taps, placed?: Placed, start?: number, causal?: boolean}} Pass
 */

/** From `x` (queries) to `memory` (keys and values). */
export class Attention {
  #kernels;
  #own;

  /**
   * @param {object} parts
   * @param {string} parts.path
   * @param {number} parts.heads
   * @param {number} parts.headWidth
   * @param {Layer} parts.query
   * @param {Layer} parts.key
   * @param {Layer} parts.value
   * @param {Layer} parts.output in the place of W_o and b_o
   * @param {Kernels} parts.kernels
   * @param {number} [parts.window] 0: all keys are seen
   * @param {number} [parts.logScale] n0; 0: c = 1
   * @param {number[] | null} [parts.own] the heads that pruning left, for biases that differ between heads
   */
  constructor({ path, heads, headWidth, query, key, value, output, kernels, window, logScale, own }) {
    this.path = path;
    this.heads = heads;
    this.headWidth = headWidth;
    this.query = query;
    this.key = key;
    this.value = value;
    this.output = output;
    this.window = window ?? 0;
    this.logScale = logScale ?? 0;
    this.#own = own ?? [...Array(heads).keys()];
    this.#kernels = kernels;
  }

  /**
   * @param {Numbers} x (T, D)
   * @param {Numbers} memory (S, D)
   * @param {Pass} pass
   * @returns {Numbers} (T, D)
   */
  forward(x, memory, pass) {
    return this.attend(this.queries(x, pass), this.keysValues(memory, pass), pass);
  }

  /**
   * @param {Numbers} x
   * @param {Pass} pass
   * @returns {Numbers} q (H, T, K)
   */
  queries(x, { placed, start = 0 }) {
    const q = this.#split(this.query(x));
    return placed ? placed.rotate(q, start) : q;
  }

  /**
   * @param {Numbers} memory
   * @param {Pass} pass
   * @returns {{k: Numbers, v: Numbers}} (H, S, K) each
   */
  keysValues(memory, { placed, start = 0 }) {
    const [k, v] = [this.#split(this.key(memory)), this.#split(this.value(memory))];
    return { k: placed ? placed.rotateKeys(k, start) : k, v };
  }

  /**
   * @param {Numbers} q
   * @param {{k: Numbers, v: Numbers}} memory
   * @param {Pass} pass
   * @returns {Numbers} (T, D)
   */
  attend(q, { k, v }, pass) {
    const { taps, start = 0 } = pass;
    const scores = taps.at(`${this.path}.scores`, this.scores(q, k, pass), start);
    const pattern = taps.at(`${this.path}.pattern`, softmaxOf(scores), start);
    const z = taps.at(`${this.path}.z`, this.mix(pattern, v), start);
    return this.output(join(z));
  }

  /**
   * c (q k^T / sqrt(K) + bias), -Infinity where a key is not visible
   * @param {Numbers} q
   * @param {Numbers} k
   * @param {Pass} pass
   * @returns {Numbers} (H, T, S)
   */
  scores(q, k, { placed, start = 0, causal = false }) {
    const [heads, queries, width] = q.shape;
    const keys = k.shape[1];
    const scores = numbers([heads, queries, keys]);
    const bias = placed?.bias;
    for (let h = 0; h < heads; h++) {
      const products = this.#kernels.once(slab(q, h), queries, slab(k, h), keys);
      for (let t = 0; t < queries; t++) {
        const i = start + t; // the query's place
        const first = this.window ? Math.max(0, i - this.window) : 0;
        const last = Math.min(causal ? i : keys - 1, this.window ? i + this.window : keys - 1, keys - 1);
        const c = this.logScale ? Math.log(Math.max(1, last - first + 1)) / Math.log(this.logScale) : 1;
        const row = (h * queries + t) * keys;
        for (let j = 0; j < keys; j++) {
          const seen = j >= first && j <= last;
          const score = products[t * keys + j] / Math.sqrt(width) + (bias ? bias(this.#own[h], i, j) : 0);
          scores.data[row + j] = seen ? c * score : -Infinity;
        }
      }
    }
    return scores;
  }

  /**
   * pattern v
   * @param {Numbers} pattern (H, T, S)
   * @param {Numbers} v (H, S, K)
   * @returns {Numbers} z (H, T, K)
   */
  mix(pattern, v) {
    const [heads, queries, keys] = pattern.shape;
    const width = v.shape[2];
    const z = numbers([heads, queries, width]);
    for (let h = 0; h < heads; h++) {
      const columns = transposed(slab(v, h), keys, width);
      z.data.set(this.#kernels.once(slab(pattern, h), queries, columns, width), h * queries * width);
    }
    return z;
  }

  /**
   * (T, H K) as (H, T, K)
   * @param {Numbers} x
   * @returns {Numbers}
   */
  #split(x) {
    const [heads, width] = [this.heads, this.headWidth];
    const count = x.shape[0];
    const found = numbers([heads, count, width]);
    for (let h = 0; h < heads; h++) {
      for (let t = 0; t < count; t++) {
        for (let i = 0; i < width; i++) {
          found.data[(h * count + t) * width + i] = x.data[(t * heads + h) * width + i];
        }
      }
    }
    return found;
  }
}

/** What is left of an attention without heads: the bias of its output, the same for every token. */
export class NoHeads {
  heads = 0;
  #bias;

  /**
   * @param {string} path
   * @param {Float32Array} bias
   */
  constructor(path, bias) {
    this.path = path;
    this.#bias = bias;
  }

  /**
   * @param {Numbers} x
   * @returns {Numbers}
   */
  forward(x) {
    const out = numbers(x.shape);
    for (let t = 0; t < x.shape[0]; t++) out.data.set(this.#bias, t * x.shape[1]);
    return out;
  }
}

/** The softmax of each row. @param {Numbers} scores @returns {Numbers} */
function softmaxOf(scores) {
  const keys = scores.shape[2];
  const pattern = numbers(scores.shape, scores.data.slice());
  for (let row = 0; row < pattern.data.length; row += keys) softmax(pattern.data, row, keys);
  return pattern;
}

/** (H, T, K) as (T, H K). @param {Numbers} z @returns {Numbers} */
function join(z) {
  const [heads, count, width] = z.shape;
  const joined = numbers([count, heads * width]);
  for (let h = 0; h < heads; h++) {
    for (let t = 0; t < count; t++) {
      for (let i = 0; i < width; i++) {
        joined.data[(t * heads + h) * width + i] = z.data[(h * count + t) * width + i];
      }
    }
  }
  return joined;
}

/** The numbers of one head; they share memory. @param {Numbers} x @param {number} head */
function slab(x, head) {
  const size = x.shape[1] * x.shape[2];
  return x.data.subarray(head * size, (head + 1) * size);
}

/** @param {Float32Array} x (rows, columns) @param {number} rows @param {number} columns */
function transposed(x, rows, columns) {
  const found = new Float32Array(x.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) found[j * rows + i] = x[i * columns + j];
  }
  return found;
}
