// @ts-check
/**
 * Weights, values and pictures from text. `explorer/weights.py` describes the format of weights.
 *
 * Nothing here needs a browser: V8 without a page has neither `atob` nor `TextDecoder`.
 */

/** @typedef {{shape: number[], data: Float32Array}} Tensor */
/** @typedef {{bits: number, tensors: [string, number[]][], text: string}} PackedWeights */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SIX_BITS = new Uint8Array(128);
for (let value = 0; value < 64; value++) SIX_BITS[ALPHABET.charCodeAt(value)] = value;

/**
 * Bytes from base64.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function bytesOf(text) {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  const sextet = (/** @type {number} */ at) => SIX_BITS[text.charCodeAt(at) & 127];
  for (let from = 0, to = 0; from < text.length; from += 4, to += 3) {
    const three = (sextet(from) << 18) | (sextet(from + 1) << 12) | (sextet(from + 2) << 6) | sextet(from + 3);
    bytes[to] = three >> 16;
    bytes[to + 1] = three >> 8;
    bytes[to + 2] = three; // beyond the end of the last three nothing is written
  }
  return bytes;
}

/**
 * Tensors by their names: each number is an integer of some bits times the scale of its row.
 * @param {PackedWeights} packed
 * @returns {Record<string, Tensor>}
 */
export function unpackWeights({ bits, tensors, text }) {
  const bytes = bytesOf(text);
  const rows = tensors.map(([, shape]) => (shape.length > 1 ? shape[0] : 1));
  const scales = new DataView(bytes.buffer);
  const next = integersFrom(bytes, 4 * sum(rows), bits);
  /** @type {Record<string, Tensor>} */
  const found = {};
  let row = 0;
  tensors.forEach(([name, shape], index) => {
    const data = new Float32Array(shape.reduce((size, side) => size * side, 1));
    const width = data.length / Math.max(1, rows[index]);
    for (let at = 0, end = width; at < data.length; end += width, row++) {
      const scale = scales.getFloat32(4 * row, true);
      for (; at < end; at++) data[at] = next() * scale;
    }
    if (data.length === 0) row += rows[index];
    found[name] = { shape, data };
  });
  return found;
}

/**
 * Signed integers of `bits` bits, one after the other, the lowest bit first.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @param {number} bits
 * @returns {() => number}
 */
function integersFrom(bytes, at, bits) {
  const mask = (1 << bits) - 1;
  const middle = 1 << (bits - 1);
  let held = 0;
  let count = 0; // bits held, at most 23 + 8
  return () => {
    for (; count < bits; count += 8) held |= bytes[at++] << count;
    const value = (held & mask) - middle;
    held >>>= bits;
    count -= bits;
    return value;
  };
}

/**
 * Pictures of bytes most of which are 0: a bit for each byte, the lowest first, that says whether it is
 * another number; then those numbers.
 * @param {string} text
 * @param {number} count bytes of all pictures
 * @returns {Uint8Array}
 */
export function unpackBytes(text, count) {
  const packed = bytesOf(text);
  const bytes = new Uint8Array(count);
  let at = Math.ceil(count / 8);
  for (let place = 0; place < count; place++) {
    if ((packed[place >> 3] >> (place & 7)) & 1) bytes[place] = packed[at++];
  }
  return bytes;
}

/** @param {number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
