// @ts-check
/** Heat maps and pictures on small canvases, a pixel a value; CSS makes them large. */

import { pixelOf } from "./colours.js";

/** @import {Scale} from "./colours.js" */
/** @import {Values} from "./types.js" */

/** @typedef {{data: Float32Array | Uint8Array, offset: number, rows: number, columns: number}} Matrix  a part of Values, row by row */

/** @type {WeakMap<HTMLCanvasElement, ImageData>} */
const buffers = new WeakMap();

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function buffer(canvas, width, height) {
  let image = buffers.get(canvas);
  if (!image || image.width !== width || image.height !== height) {
    image = new ImageData(width, height);
    canvas.width = width;
    canvas.height = height;
    buffers.set(canvas, image);
  }
  return image;
}

/** Head `index` of patterns (H, T, S). @param {Values} values @param {number} index @returns {Matrix} */
export function headOf({ shape, data }, index) {
  const [, rows = 0, columns = 0] = shape;
  return { data, offset: index * rows * columns, rows, columns };
}

/** @param {Matrix} matrix @param {number} row @param {number} column */
export function at({ data, offset, columns }, row, column) {
  return Number(data[offset + row * columns + column]);
}

/** @param {Matrix} matrix @param {number} row @returns {number[]} */
export function rowOf({ data, offset, columns }, row) {
  return Array.from(data.subarray(offset + row * columns, offset + (row + 1) * columns));
}

/** The largest absolute value. @param {Matrix} matrix */
export function largest({ data, offset, rows, columns }) {
  let most = 0;
  for (let i = offset; i < offset + rows * columns; i += 1) most = Math.max(most, Math.abs(Number(data[i])));
  return most;
}

/** `a` minus `b`, of the same size. @param {Matrix} a @param {Matrix} b @returns {Matrix} */
export function minus(a, b) {
  const size = a.rows * a.columns;
  const data = Float32Array.from({ length: size }, (_, i) => Number(a.data[a.offset + i]) - Number(b.data[b.offset + i]));
  return { data, offset: 0, rows: a.rows, columns: a.columns };
}

/** What each key gets on average over queries. @param {Matrix} matrix @returns {Float32Array} */
export function received(matrix) {
  const sums = new Float32Array(matrix.columns);
  for (let row = 0; row < matrix.rows; row += 1)
    for (let column = 0; column < matrix.columns; column += 1) sums[column] = Number(sums[column]) + at(matrix, row, column) / matrix.rows;
  return sums;
}

/**
 * Draw a matrix, rows from `until` on left empty.
 * @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {Scale} scale @param {number} [until]
 */
export function drawMatrix(canvas, matrix, scale, until = matrix.rows) {
  if (!matrix.rows || !matrix.columns) return;
  const image = buffer(canvas, matrix.columns, matrix.rows);
  const pixels = new Uint32Array(image.data.buffer);
  const shown = Math.min(until, matrix.rows) * matrix.columns;
  for (let i = 0; i < shown; i += 1) pixels[i] = pixelOf(scale, Number(matrix.data[matrix.offset + i]));
  pixels.fill(0, shown);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/** Draw pixels (C, H, W), grey or coloured. @param {HTMLCanvasElement} canvas @param {Values} pixels */
export function drawPixels(canvas, { shape, data }) {
  const [channels = 1, height = 1, width = 1] = shape;
  const image = buffer(canvas, width, height);
  const plane = height * width;
  for (let i = 0; i < plane; i += 1) {
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = Number(data[(channels === 3 ? c : 0) * plane + i]);
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}

/**
 * Calls `onSeen` when an element comes on the screen and says whether it is there.
 * @param {() => void} onSeen
 */
export function watcher(onSeen) {
  /** @type {Set<Element>} */
  const seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    let more = false;
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && !seen.has(target)) more = true;
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
    }
    if (more) onSeen();
  }, { rootMargin: "100px" });
  return {
    watch: (/** @type {Element} */ element) => observer.observe(element),
    sees: (/** @type {Element} */ element) => seen.has(element),
    stop: () => observer.disconnect(),
  };
}
