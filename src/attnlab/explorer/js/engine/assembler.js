// @ts-check
/**
 * A small assembler for WebAssembly: a module of functions over one imported memory.
 *
 * Code is a nested array of bytes; `bytes` flattens it. Integers of a module are written in LEB128: seven
 * bits a byte, the lowest first, and the highest bit of a byte says that another one follows.
 */

/** @typedef {number | Code[]} Code */

const I32 = 0x7f;
const V128 = 0x7b;
const NOTHING = 0x40; // the type of a block without a value

/**
 * @param {Code} code
 * @param {number[]} [into]
 * @returns {number[]}
 */
export function bytes(code, into = []) {
  if (typeof code === "number") into.push(code);
  else for (const each of code) bytes(each, into);
  return into;
}

/**
 * A number that is not below 0.
 * @param {number} value
 * @returns {number[]}
 */
export function unsigned(value) {
  const found = [];
  for (; value > 0x7f; value >>>= 7) found.push((value & 0x7f) | 0x80);
  return [...found, value];
}

/**
 * A number of either sign.
 * @param {number} value
 * @returns {number[]}
 */
export function signed(value) {
  const found = [];
  for (; value < -64 || value > 63; value >>= 7) found.push((value & 0x7f) | 0x80);
  return [...found, value & 0x7f];
}

/** @param {number} local */
export const get = (local) => [0x20, unsigned(local)];
/** @param {number} local @param {Code} value */
export const set = (local, value) => [value, 0x21, unsigned(local)];
/** @param {number} value */
export const constant = (value) => [0x41, signed(value)];
/** @param {Code} a @param {Code} b */
export const plus = (a, b) => [a, b, 0x6a];
/** @param {Code} a @param {Code} b */
export const minus = (a, b) => [a, b, 0x6b];
/** @param {Code} a @param {Code} b */
export const times = (a, b) => [a, b, 0x6c];
/** @param {Code} a @param {Code} b */
export const and = (a, b) => [a, b, 0x71];
/** @param {Code} a @param {Code} b */
export const shiftRight = (a, b) => [a, b, 0x76];
/** Four floats. @param {Code} address @param {number} offset */
export const load = (address, offset) => [address, 0xfd, 0x00, 2, unsigned(offset)];
/** Four times the same float. @param {Code} address @param {number} offset */
export const splat = (address, offset) => [address, 0xfd, 0x09, 2, unsigned(offset)];
/** @param {Code} address @param {number} offset @param {Code} value */
export const store = (address, offset, value) => [address, value, 0xfd, 0x0b, 2, unsigned(offset)];
/** a b + c, four at a time. @param {Code} a @param {Code} b @param {Code} c */
export const multiplyAdd = (a, b, c) => [c, a, b, 0xfd, unsigned(0xe6), 0xfd, unsigned(0xe4)];
/** The same as one instruction (relaxed SIMD). @param {Code} a @param {Code} b @param {Code} c */
export const fusedMultiplyAdd = (a, b, c) => [a, b, c, 0xfd, unsigned(0x105)];

/**
 * Run `body` as often as the local `counter` says, which ends at 0; not at all if it says 0.
 * @param {number} counter
 * @param {Code} body
 * @returns {Code}
 */
export function repeat(counter, body) {
  const countDown = [set(counter, minus(get(counter), constant(1))), get(counter)];
  const loop = [0x03, NOTHING, body, countDown, 0x0d, 0, 0x0b];
  return [0x02, NOTHING, get(counter), 0x45, 0x0d, 0, loop, 0x0b];
}

/**
 * @typedef {object} Procedure
 * @property {string} name
 * @property {number} parameters i32 each
 * @property {number} integers further locals of type i32, numbered behind the parameters
 * @property {number} vectors locals of type v128, numbered behind those
 * @property {Code} body
 */

/**
 * A module that imports the memory `env.memory` and exports the procedures.
 * @param {Procedure[]} procedures
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function assemble(procedures) {
  const types = procedures.map((each) => [0x60, list(Array(each.parameters).fill(I32)), list([])]);
  const memory = [text("env"), text("memory"), 0x02, 0x00, unsigned(1)];
  const exported = procedures.map((each, number) => [text(each.name), 0x00, unsigned(number)]);
  return new Uint8Array(
    bytes([
      [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, types),
      section(2, [memory]),
      section(3, procedures.map((_, number) => unsigned(number))),
      section(7, exported),
      section(10, procedures.map(written)),
    ]),
  );
}

/** @param {Procedure} procedure */
function written({ integers, vectors, body }) {
  const locals = [
    [unsigned(integers), I32],
    [unsigned(vectors), V128],
  ];
  return sized([list(locals), body, 0x0b]);
}

/** @param {number} kind @param {Code[]} items */
const section = (kind, items) => [kind, sized(list(items))];
/** @param {Code[]} items */
const list = (items) => [unsigned(items.length), items];
/** @param {string} word */
const text = (word) => list([...word].map((letter) => letter.charCodeAt(0)));

/** @param {Code} code */
function sized(code) {
  const flat = bytes(code);
  return [unsigned(flat.length), flat];
}
