// @ts-check
/**
 * Messages with numbers: JSON in which `{shape, at, type}` points into a binary part. As one frame:
 * u32 little-endian length of the JSON | JSON | zeros to a multiple of 4 | numbers.
 */

/** @import {Values} from "../types.js" */

/** @param {unknown} value @returns {value is Values} */
function isValues(value) {
  return typeof value === "object" && value !== null && "data" in value && ArrayBuffer.isView(value.data);
}

/** To a multiple of 4. @param {number} size */
const padded = (size) => (size + 3) & ~3;

/**
 * A message as plain JSON values, and the bytes of its numbers.
 * @param {unknown} message @returns {{plain: any, numbers: Uint8Array<ArrayBuffer>}}
 */
export function pack(message) {
  /** @type {Uint8Array[]} */
  const parts = [];
  let size = 0;
  /** @param {any} value @returns {any} */
  const plain = (value) => {
    if (isValues(value)) {
      const { shape, data } = value;
      const at = size;
      parts.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      size = padded(size + data.byteLength);
      return { shape, at, type: data instanceof Float32Array ? "f32" : "u8" };
    }
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
  };
  const found = plain(message);
  const numbers = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    numbers.set(part, at);
    at = padded(at + part.length);
  }
  return { plain: found, numbers };
}

/**
 * The message of plain JSON values and the bytes of its numbers, which stay where they are.
 * @param {any} plain @param {ArrayBufferLike} buffer @param {number} [start] where the numbers begin
 * @returns {any}
 */
export function unpack(plain, buffer, start = 0) {
  if (Array.isArray(plain)) return plain.map((each) => unpack(each, buffer, start));
  if (typeof plain !== "object" || plain === null) return plain;
  if ("at" in plain && "type" in plain && "shape" in plain) {
    const count = plain.shape.reduce((/** @type {number} */ product, /** @type {number} */ side) => product * side, 1);
    const kind = plain.type === "f32" ? Float32Array : Uint8Array;
    return { shape: plain.shape, data: new kind(/** @type {ArrayBuffer} */ (buffer), start + plain.at, count) };
  }
  return Object.fromEntries(Object.entries(plain).map(([key, each]) => [key, unpack(each, buffer, start)]));
}

/** @param {unknown} message @returns {Uint8Array<ArrayBuffer>} */
export function writeFrame(message) {
  const { plain, numbers } = pack(message);
  const text = new TextEncoder().encode(JSON.stringify(plain));
  const start = 4 + padded(text.length);
  const frame = new Uint8Array(start + numbers.length);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, 4);
  frame.set(numbers, start);
  return frame;
}

/** @param {ArrayBuffer} frame @returns {any} */
export function readFrame(frame) {
  const length = new DataView(frame).getUint32(0, true);
  const plain = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, length)));
  return unpack(plain, frame, 4 + padded(length));
}
