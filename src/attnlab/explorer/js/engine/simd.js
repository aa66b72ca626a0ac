// @ts-check
/**
 * C = A B + bias with four floats an instruction, assembled here and compiled by whoever runs the page.
 *
 * B lies in panels of eight columns, each as a row of eight biases and then one of eight floats for each
 * row of B, so that the innermost loop reads on and on:
 *
 *     for every R rows of A
 *       for every panel of B
 *         C's R x 8 numbers begin as the biases, in 2 R registers
 *         for k: load B[k]'s eight; for each row r: C[r] += A[r, k] B[k]
 */

import {
  and,
  assemble,
  constant,
  fusedMultiplyAdd,
  get,
  load,
  multiplyAdd,
  plus,
  repeat,
  set,
  shiftRight,
  splat,
  store,
  times,
} from "./assembler.js";

/** @import {Code} from "./assembler.js" */
/** @typedef {(a: Code, b: Code, c: Code) => Code} MultiplyAdd */
/**
 * Addresses are in bytes; `groups` counts how often so many rows are taken.
 * @typedef {(a: number, b: number, c: number, groups: number, inner: number,
 *   panels: number) => void} Product
 */

/** Columns of a panel. */
export const PANEL = 8;
/** Rows that are computed together. */
export const ROWS = 4;

const FLOAT = 4; // bytes
const VECTOR = 16;
const UNROLLED = 4; // steps of the innermost loop that are written out

/**
 * The products of `ROWS` rows at a time and of one.
 * @param {WebAssembly.Memory} memory
 * @returns {{several: Product, one: Product}}
 */
export function simdProducts(memory) {
  const { exports } = new WebAssembly.Instance(compiled(), { env: { memory } });
  return /** @type {{several: Product, one: Product}} */ (/** @type {unknown} */ (exports));
}

/** Whether this engine has WebAssembly with SIMD, and may use it. */
export function simdAvailable() {
  try {
    return compiled() !== null;
  } catch {
    return false;
  }
}

/** @type {WebAssembly.Module | null} */
let ready = null;

function compiled() {
  if (ready === null) {
    const fused = simdModule(fusedMultiplyAdd);
    ready = new WebAssembly.Module(WebAssembly.validate(fused) ? fused : simdModule(multiplyAdd));
  }
  return ready;
}

/**
 * @param {MultiplyAdd} multiplied
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function simdModule(multiplied) {
  return assemble([product("several", ROWS, multiplied), product("one", 1, multiplied)]);
}

const [A, B, C, GROUPS, INNER, PANELS, AT_B, AT_C, PANELS_LEFT, LEFT, FIRST_ROW] = Array(11).keys();

/**
 * @param {string} name
 * @param {number} count R
 * @param {MultiplyAdd} multiplied
 * @returns {import("./assembler.js").Procedure}
 */
function product(name, count, multiplied) {
  const every = [...Array(count).keys()];
  const row = (/** @type {number} */ r) => FIRST_ROW + r; // where A's row r is read, then C's is written
  const vectors = FIRST_ROW + count;
  const low = (/** @type {number} */ r) => vectors + 2 * r;
  const high = (/** @type {number} */ r) => vectors + 2 * r + 1;
  const [left, right, factor] = [0, 1, 2].map((n) => vectors + 2 * count + n);

  const step = (/** @type {number} */ k) => [
    set(left, load(get(AT_B), 2 * VECTOR * k)),
    set(right, load(get(AT_B), 2 * VECTOR * k + VECTOR)),
    every.map((r) => [
      set(factor, splat(get(row(r)), FLOAT * k)),
      set(low(r), multiplied(get(factor), get(left), get(low(r)))),
      set(high(r), multiplied(get(factor), get(right), get(high(r)))),
    ]),
  ];
  const steps = (/** @type {number} */ n) => [
    [...Array(n).keys()].map(step),
    every.map((r) => set(row(r), plus(get(row(r)), constant(FLOAT * n)))),
    set(AT_B, plus(get(AT_B), constant(2 * VECTOR * n))),
  ];
  const panel = [
    pointers(A, times(get(INNER), constant(FLOAT))),
    every.map((r) => [set(low(r), load(get(AT_B), 0)), set(high(r), load(get(AT_B), VECTOR))]),
    set(AT_B, plus(get(AT_B), constant(2 * VECTOR))),
    set(LEFT, shiftRight(get(INNER), constant(Math.log2(UNROLLED)))),
    repeat(LEFT, steps(UNROLLED)),
    set(LEFT, and(get(INNER), constant(UNROLLED - 1))),
    repeat(LEFT, steps(1)),
    pointers(AT_C, times(get(PANELS), constant(2 * VECTOR))),
    every.map((r) => [store(get(row(r)), 0, get(low(r))), store(get(row(r)), VECTOR, get(high(r)))]),
    set(AT_C, plus(get(AT_C), constant(2 * VECTOR))),
  ];
  const group = [
    set(AT_B, get(B)),
    set(AT_C, get(C)),
    set(PANELS_LEFT, get(PANELS)),
    repeat(PANELS_LEFT, panel),
    set(A, plus(get(A), times(get(INNER), constant(FLOAT * count)))),
    set(C, plus(get(C), times(get(PANELS), constant(2 * VECTOR * count)))),
  ];
  const body = repeat(GROUPS, group);
  return { name, parameters: 6, integers: vectors - 6, vectors: 2 * count + 3, body };

  /** @param {number} first @param {Code} apart bytes between rows */
  function pointers(first, apart) {
    return every.map((r) => set(row(r), r === 0 ? get(first) : plus(get(row(r - 1)), apart)));
  }
}
