// @ts-check
/**
 * Convolutions as products of matrices. An image is (height, width, channels), channels beside each other,
 * so that what a filter sees of a row is one piece of memory.
 *
 *     out[y, x] = W . (the numbers of the square at (stride y - around, stride x - around)) + b
 */

import { numbers } from "./numbers.js";

/** @import {Numbers} from "./types.js" */
/** @import {Weights} from "./weights.js" */
/** @typedef {(image: Numbers) => Numbers} ImageLayer */

/**
 * @param {Weights} weights
 * @param {string} name
 * @param {{stride: number, around: number}} how
 * @returns {ImageLayer}
 */
export function convolution(weights, name, { stride, around }) {
  const { kernels } = weights;
  const { shape, data } = weights.get(`${name}.weight`); // (filters, channels, side, side)
  const [filters, channels, side] = shape;
  const laid = kernels.lay(channelsLast(data, shape), filters, weights.get(`${name}.bias`).data);
  return (image) => {
    const framed = frame(image, around);
    const [height, width] = framed.shape.slice(0, 2).map((size) => Math.floor((size - side) / stride) + 1);
    const squares = kernels.room(height * width, laid);
    const run = side * channels;
    let at = 0;
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        for (let dy = 0; dy < side; dy++) {
          const from = ((stride * y + dy) * framed.shape[1] + stride * x) * channels;
          for (let i = 0; i < run; i++) squares[at + i] = framed.data[from + i];
          at += run;
        }
      }
    }
    return numbers([height, width, filters], kernels.product(squares, height * width, laid));
  };
}

/**
 * The largest number of each square of 2 x 2, channel by channel.
 * @type {ImageLayer}
 */
export function maxPool(image) {
  const [height, width, channels] = image.shape;
  const [rows, columns] = [Math.floor(height / 2), Math.floor(width / 2)];
  const found = numbers([rows, columns, channels]);
  found.data.fill(-Infinity);
  for (let y = 0; y < 2 * rows; y++) {
    for (let x = 0; x < 2 * columns; x++) {
      for (let c = 0; c < channels; c++) {
        const at = ((y >> 1) * columns + (x >> 1)) * channels + c;
        found.data[at] = Math.max(found.data[at], image.data[(y * width + x) * channels + c]);
      }
    }
  }
  return found;
}

/** Zeros around an image. @param {Numbers} image @param {number} around @returns {Numbers} */
function frame(image, around) {
  if (around === 0) return image;
  const [height, width, channels] = image.shape;
  const wide = width + 2 * around;
  const framed = numbers([height + 2 * around, wide, channels]);
  for (let y = 0; y < height; y++) {
    const row = image.data.subarray(y * width * channels, (y + 1) * width * channels);
    framed.data.set(row, ((y + around) * wide + around) * channels);
  }
  return framed;
}

/** (N, C, Y, X) as (N, Y, X, C). @param {Float32Array} data @param {number[]} shape */
export function channelsLast(data, [count, channels, height, width]) {
  const found = new Float32Array(data.length);
  const area = height * width;
  for (let n = 0; n < count; n++) {
    for (let c = 0; c < channels; c++) {
      for (let i = 0; i < area; i++) {
        found[(n * area + i) * channels + c] = data[(n * channels + c) * area + i];
      }
    }
  }
  return found;
}
