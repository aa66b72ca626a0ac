// @ts-check
/**
 * Products of matrices, C = A B + bias: in plain loops, and by SIMD instructions where there are any.
 *
 * Matrices that come again, the weights, are laid out once (`lay`); B is given as torch keeps the weights
 * of a linear map, (N, K), a row for each column of B. Rows of A are given as they are.
 */

import { PANEL, ROWS, simdAvailable, simdProducts } from "./simd.js";

/**
 * B and its bias as a kernel wants them.
 * @typedef {object} Laid
 * @property {number} inner rows of B
 * @property {number} columns
 * @property {number} at where it lies: bytes in the kernel's memory
 * @property {Float32Array} weight (N, K), for plain loops; else empty
 * @property {Float32Array} bias (N), the same
 */

/**
 * @typedef {object} Kernels
 * @property {"simd" | "plain"} name
 * @property {(weight: Float32Array, columns: number, bias?: Float32Array) => Laid} lay
 * @property {(rows: number, laid: Laid) => Float32Array} room where the rows of the next product may be
 *   written, so that they are not copied; it belongs to the kernel
 * @property {(a: Float32Array, rows: number, laid: Laid) => Float32Array} product A B + bias, (rows, N)
 * @property {(a: Float32Array, rows: number, weight: Float32Array, columns: number) => Float32Array} once
 *   the same for a B that does not come again, without a bias
 */

/**
 * The fastest there is, or the one that is asked for.
 * @param {"simd" | "plain"} [name]
 * @returns {Kernels}
 */
export function makeKernels(name = simdAvailable() ? "simd" : "plain") {
  return name === "simd" ? new SimdKernels() : new PlainKernels();
}

/** @implements {Kernels} */
export class PlainKernels {
  name = /** @type {const} */ ("plain");
  #room = new Float32Array(0);

  /** @type {Kernels["lay"]} */
  lay(weight, columns, bias = new Float32Array(columns)) {
    return { inner: weight.length / columns, columns, at: 0, weight, bias };
  }

  /** @type {Kernels["room"]} */
  room(rows, { inner }) {
    if (this.#room.length < rows * inner) this.#room = new Float32Array(rows * inner);
    return this.#room;
  }

  /** @type {Kernels["product"]} */
  product(a, rows, laid) {
    return plainProduct(a, rows, laid.weight, laid.columns, laid.bias);
  }

  /** @type {Kernels["once"]} */
  once(a, rows, weight, columns) {
    return plainProduct(a, rows, weight, columns);
  }
}

/**
 * Four columns at a time, so that a number of A is read once for four products.
 * @param {Float32Array} a (rows, K)
 * @param {number} rows
 * @param {Float32Array} weight (columns, K)
 * @param {number} columns
 * @param {Float32Array} [bias]
 * @returns {Float32Array} (rows, columns)
 */
export function plainProduct(a, rows, weight, columns, bias) {
  const inner = columns ? weight.length / columns : 0;
  const c = new Float32Array(rows * columns);
  for (let n = 0; n < columns; n += 4) {
    const [w0, w1, w2, w3] = [0, 1, 2, 3].map((each) => Math.min(n + each, columns - 1) * inner);
    for (let row = 0; row < rows; row++) {
      const start = row * inner;
      let [c0, c1, c2, c3] = [0, 0, 0, 0];
      for (let k = 0; k < inner; k++) {
        const factor = a[start + k];
        c0 += factor * weight[w0 + k];
        c1 += factor * weight[w1 + k];
        c2 += factor * weight[w2 + k];
        c3 += factor * weight[w3 + k];
      }
      const at = row * columns + n;
      c[at] = c0;
      if (n + 1 < columns) c[at + 1] = c1;
      if (n + 2 < columns) c[at + 2] = c2;
      if (n + 3 < columns) c[at + 3] = c3;
    }
  }
  if (bias) for (let i = 0; i < c.length; i++) c[i] += bias[i % columns];
  return c;
}

const PAGE = 65536; // bytes of a page of WebAssembly's memory
const FEW = 4096; // multiplications that are done before a matrix is laid out
const NOTHING = new Float32Array(0);

/**
 * What is laid out stands at the beginning of the kernel's memory; behind it stand, while a product is
 * computed, a B that does not come again, A and C.
 * @implements {Kernels}
 */
export class SimdKernels {
  name = /** @type {const} */ ("simd");
  #memory = new WebAssembly.Memory({ initial: 1 });
  #products = simdProducts(this.#memory);
  #floats = new Float32Array(this.#memory.buffer);
  #used = 0; // floats that are laid out

  /** @type {Kernels["lay"]} */
  lay(weight, columns, bias = new Float32Array(columns)) {
    const laid = this.#layAt(this.#used, weight, columns, bias);
    this.#used += size(laid);
    return laid;
  }

  /** @type {Kernels["room"]} */
  room(rows, laid) {
    this.#reserve(this.#used + rows * (laid.inner + padded(laid.columns)));
    return this.#floats.subarray(this.#used, this.#used + rows * laid.inner);
  }

  /** @type {Kernels["product"]} */
  product(a, rows, laid) {
    return this.#product(a, rows, laid, this.#used);
  }

  /** @type {Kernels["once"]} */
  once(a, rows, weight, columns) {
    if (rows * weight.length < FEW) return plainProduct(a, rows, weight, columns);
    const laid = this.#layAt(this.#used, weight, columns, new Float32Array(columns));
    return this.#product(a, rows, laid, this.#used + size(laid));
  }

  /**
   * @param {Float32Array} a
   * @param {number} rows
   * @param {Laid} laid
   * @param {number} start where A is put, and C behind it
   * @returns {Float32Array}
   */
  #product(a, rows, laid, start) {
    const { inner, columns, at } = laid;
    const wide = padded(columns);
    const end = start + rows * inner;
    this.#reserve(end + rows * wide);
    if (a.buffer !== this.#memory.buffer) this.#floats.set(a.subarray(0, rows * inner), start);
    const together = rows - (rows % ROWS);
    const panels = wide / PANEL;
    this.#products.several(4 * start, at, 4 * end, together / ROWS, inner, panels);
    const [a1, c1] = [start + together * inner, end + together * wide];
    this.#products.one(4 * a1, at, 4 * c1, rows - together, inner, panels);
    return this.#read(end, rows, columns);
  }

  /**
   * C without the columns that fill up a panel.
   * @param {number} start
   * @param {number} rows
   * @param {number} columns
   * @returns {Float32Array}
   */
  #read(start, rows, columns) {
    const wide = padded(columns);
    if (wide === columns) return this.#floats.slice(start, start + rows * columns);
    const c = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      for (let n = 0; n < columns; n++) c[row * columns + n] = this.#floats[start + row * wide + n];
    }
    return c;
  }

  /**
   * @param {number} start
   * @param {Float32Array} weight
   * @param {number} columns
   * @param {Float32Array} bias
   * @returns {Laid}
   */
  #layAt(start, weight, columns, bias) {
    const inner = weight.length / columns;
    const laid = { inner, columns, at: 4 * start, weight: NOTHING, bias: NOTHING };
    this.#reserve(start + size(laid));
    const floats = this.#floats;
    for (let n = 0; n < padded(columns); n++) {
      const at = start + Math.floor(n / PANEL) * PANEL * (inner + 1) + (n % PANEL);
      floats[at] = n < columns ? bias[n] : 0;
      for (let k = 0; k < inner; k++) {
        floats[at + PANEL * (k + 1)] = n < columns ? weight[n * inner + k] : 0;
      }
    }
    return laid;
  }

  /** @param {number} floats that the memory must hold */
  #reserve(floats) {
    const missing = 4 * floats - this.#memory.buffer.byteLength;
    if (missing <= 0) return;
    this.#memory.grow(Math.ceil(missing / PAGE));
    this.#floats = new Float32Array(this.#memory.buffer);
  }
}

/** Columns with those that fill up the last panel. @param {number} columns */
const padded = (columns) => Math.ceil(columns / PANEL) * PANEL;
/** Floats of what is laid out. @param {Laid} laid */
const size = (laid) => padded(laid.columns) * (laid.inner + 1);
