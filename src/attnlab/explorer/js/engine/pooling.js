// @ts-check
/**
 * Pooling: one vector of all tokens x (T, D), coordinate by coordinate.
 *
 *     first       x_0                          the token in front
 *     last        x_(T-1)
 *     mean        1/T sum_t x_t
 *     min, max    min_t x_t, max_t x_t
 *     attention   sum_t a_t x_t with a = softmax over t of u . x_t
 *     boundary    W [min_t x_t; min_t d_t; mean_t d_t; x_0; x_(T-1)] + b, with d_t = x_(t+1) - x_t
 *     lowest      min_t f(x_t), a single number
 */

import { numbers, rows, softmax } from "./numbers.js";

/** @import {Taps} from "./taps.js" */
/** @import {Numbers} from "./types.js" */
/** @import {Layer, Weights} from "./weights.js" */
/** @typedef {(x: Numbers, taps: Taps) => Numbers} Pool from (T, D) to (1, E) */

/**
 * @param {string} pooling
 * @param {Weights} weights
 * @returns {Pool}
 */
export function buildPool(pooling, weights) {
  switch (pooling) {
    case "cls":
      return (x) => rows(x, 0, 1);
    case "last":
      return lastOf;
    case "mean":
      return meanOf;
    case "min":
      return lowestOf;
    case "max":
      return (x) => folded(x, Math.max);
    case "attention":
      return attentionPool(weights.linear("pool.score"));
    case "boundary":
      return boundaryPool(weights.linear("pool.join"));
    case "lowest":
      return lowestPool(weights.readout("pool.score"));
    default:
      throw new Error(`pooling of kind ${pooling} is unknown`);
  }
}

/** @param {Numbers} x @returns {Numbers} */
const lastOf = (x) => rows(x, x.shape[0] - 1, x.shape[0]);
/** @param {Numbers} x @returns {Numbers} */
const lowestOf = (x) => folded(x, Math.min);

/** @param {Numbers} x @returns {Numbers} */
function meanOf(x) {
  const sum = folded(x, (a, b) => a + b);
  for (let i = 0; i < sum.data.length; i++) sum.data[i] /= x.shape[0];
  return sum;
}

/**
 * @param {Numbers} x
 * @param {(a: number, b: number) => number} joined
 * @returns {Numbers}
 */
function folded(x, joined) {
  const [count, width] = x.shape;
  const found = numbers([1, width], x.data.slice(0, width));
  for (let t = 1; t < count; t++) {
    for (let i = 0; i < width; i++) found.data[i] = joined(found.data[i], x.data[t * width + i]);
  }
  return found;
}

/** @param {Layer} score @returns {Pool} */
function attentionPool(score) {
  return (x) => {
    const [count, width] = x.shape;
    const weights = score(x).data;
    softmax(weights, 0, count);
    const found = numbers([1, width]);
    for (let t = 0; t < count; t++) {
      for (let i = 0; i < width; i++) found.data[i] += weights[t] * x.data[t * width + i];
    }
    return found;
  };
}

/** @param {Layer} join @returns {Pool} */
function boundaryPool(join) {
  return (x) => {
    const [count, width] = x.shape;
    if (count < 2) throw new Error("boundary pooling needs 2 tokens at least");
    const steps = numbers([count - 1, width]);
    for (let i = 0; i < steps.data.length; i++) steps.data[i] = x.data[i + width] - x.data[i];
    const parts = [lowestOf(x), lowestOf(steps), meanOf(steps), rows(x, 0, 1), lastOf(x)];
    const all = numbers([1, 5 * width]);
    parts.forEach((part, n) => all.data.set(part.data, n * width));
    return join(all);
  };
}

/** @param {Layer} score @returns {Pool} */
function lowestPool(score) {
  return (x, taps) => lowestOf(taps.at("pool.token_scores", score(x)));
}
