// @ts-check
/**
 * Numbers with a shape, and the functions of a transformer that are no products.
 *
 * Shapes as in Python, without the batch, since one input is answered at a time: T query length, S key
 * length, H heads, D width, K width of a head, V vocabulary. Everything is row-major.
 */

/** @import {Numbers} from "./types.js" */

const EPSILON = 1e-5; // of torch's layer norm

/**
 * @param {number[]} shape
 * @param {Float32Array} [data] taken as it is; by default zeros
 * @returns {Numbers}
 */
export function numbers(shape, data) {
  return { shape, data: data ?? new Float32Array(shape.reduce((a, b) => a * b, 1)) };
}

/**
 * Rows `start` to `stop - 1` of a matrix; they share its memory.
 * @param {Numbers} x
 * @param {number} start
 * @param {number} stop
 * @returns {Numbers}
 */
export function rows(x, start, stop) {
  const width = x.shape[1];
  return numbers([stop - start, width], x.data.subarray(start * width, stop * width));
}

/**
 * x + y, number by number.
 * @param {Numbers} x
 * @param {Numbers} y
 * @returns {Numbers}
 */
export function add(x, y) {
  const sum = numbers(x.shape);
  for (let i = 0; i < sum.data.length; i++) sum.data[i] = x.data[i] + y.data[i];
  return sum;
}

/**
 * Make `count` numbers from `start` on their softmax. Where all are -Infinity, nothing is seen: zeros.
 * @param {Float32Array} data
 * @param {number} start
 * @param {number} count
 */
export function softmax(data, start, count) {
  const stop = start + count;
  let most = -Infinity;
  for (let i = start; i < stop; i++) if (data[i] > most) most = data[i];
  let sum = 0;
  for (let i = start; i < stop; i++) {
    const weight = data[i] === -Infinity ? 0 : Math.exp(data[i] - most);
    data[i] = weight;
    sum += weight;
  }
  if (sum > 0) for (let i = start; i < stop; i++) data[i] /= sum;
}

/**
 * softmax(x / temperature) of each row.
 * @param {Numbers} x (T, V)
 * @param {number} temperature
 * @returns {Numbers}
 */
export function softmaxRows(x, temperature) {
  const [count, width] = x.shape;
  const found = numbers(x.shape, x.data.map((value) => value / temperature));
  for (let t = 0; t < count; t++) softmax(found.data, t * width, width);
  return found;
}

/**
 * (x - mean) / sqrt(variance + 1e-5) * weight + bias, each row by itself.
 * @param {Numbers} x (T, D)
 * @param {Float32Array} weight
 * @param {Float32Array} bias
 * @returns {Numbers}
 */
export function layerNorm(x, weight, bias) {
  const [count, width] = x.shape;
  const found = numbers(x.shape);
  for (let t = 0; t < count; t++) {
    const start = t * width;
    let mean = 0;
    for (let i = 0; i < width; i++) mean += x.data[start + i];
    mean /= width;
    let variance = 0;
    for (let i = 0; i < width; i++) variance += (x.data[start + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + EPSILON);
    for (let i = 0; i < width; i++) {
      found.data[start + i] = (x.data[start + i] - mean) * scale * weight[i] + bias[i];
    }
  }
  return found;
}

/**
 * max(x, 0), in place.
 * @param {Numbers} x
 * @returns {Numbers}
 */
export function relu(x) {
  for (let i = 0; i < x.data.length; i++) if (x.data[i] < 0) x.data[i] = 0;
  return x;
}

/**
 * x times the share of a normal distribution that lies below x, in place (Hendrycks and Gimpel, 2016).
 * @param {Numbers} x
 * @returns {Numbers}
 */
export function gelu(x) {
  for (let i = 0; i < x.data.length; i++) x.data[i] *= 0.5 * erfc(-x.data[i] * Math.SQRT1_2);
  return x;
}

/**
 * 1 - erf(x), to 2e-7: a polynomial in t = 1 / (1 + 0.3275911 x) times exp(-x^2) (Abramowitz and Stegun,
 * 1964, 7.1.26).
 * @param {number} x
 * @returns {number}
 */
export function erfc(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const tail =
    t *
    (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) *
    Math.exp(-x * x);
  return x >= 0 ? tail : 2 - tail;
}

/**
 * The place of the largest of `count` numbers from `start` on; of equal ones the first.
 * @param {Float32Array} data
 * @param {number} start
 * @param {number} count
 * @returns {number}
 */
export function argmax(data, start, count) {
  let best = 0;
  for (let i = 1; i < count; i++) if (data[start + i] > data[start + best]) best = i;
  return best;
}
