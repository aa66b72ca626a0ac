// @ts-check
/** Stems: from an image (channels, height, width) to tokens (T, D), one a patch. */

import { channelsLast, convolution } from "./convolution.js";
import { add, numbers, relu } from "./numbers.js";

/** @import {ModelSpec, Numbers} from "./types.js" */
/** @import {Weights} from "./weights.js" */
/** @typedef {(image: Numbers) => Numbers} Stem */

/**
 * The stem that a spec names.
 * @param {ModelSpec} spec
 * @param {Weights} weights
 * @param {string} name
 * @returns {Stem}
 */
export function buildStem({ stem, patch }, weights, name) {
  return (stem === "linear" ? linearStem : convStem)(weights, name, patch);
}

/**
 * patch W + b
 * @param {Weights} weights
 * @param {string} name
 * @param {number} patch pixels along a side
 * @returns {Stem}
 */
function linearStem(weights, name, patch) {
  const linear = weights.linear(`${name}.linear`);
  return (image) => linear(cutPatches(image, patch));
}

/**
 * Squares of patch x patch pixels, row by row, each flattened by channel and row by row.
 * @param {Numbers} image (channels, height, width)
 * @param {number} patch
 * @returns {Numbers} (T, channels patch patch)
 */
export function cutPatches(image, patch) {
  const [channels, height, width] = image.shape;
  const [rows, columns] = [Math.floor(height / patch), Math.floor(width / patch)];
  const found = numbers([rows * columns, channels * patch * patch]);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      for (let c = 0; c < channels; c++) {
        for (let y = 0; y < patch; y++) {
          const from = (c * height + row * patch + y) * width + column * patch;
          found.data.set(image.data.subarray(from, from + patch), at);
          at += patch;
        }
      }
    }
  }
  return found;
}

/**
 * Convolutions with ReLU, whose strides multiply to the patch's side, then a linear map of each token (Xiao
 * et al., 2021).
 * @param {Weights} weights
 * @param {string} name
 * @param {number} patch
 * @returns {Stem}
 */
function convStem(weights, name, patch) {
  const layers = stemStrides(patch).map((stride, place) => {
    const path = `${name}.convolutions.${2 * place}`; // torch counts the ReLUs too
    const side = weights.get(`${path}.weight`).shape[2];
    return convolution(weights, path, { stride, around: Math.floor((side - stride + 1) / 2) });
  });
  const linear = weights.linear(`${name}.linear`);
  return (image) => {
    let x = imageLast(image);
    for (const layer of layers) x = relu(layer(x));
    const [height, width, channels] = x.shape;
    return linear(numbers([height * width, channels], x.data));
  };
}

/** Convolutions of a stem that keep the size, behind those that halve the image. */
const KEEPING = 3;

/**
 * Strides that multiply to the side of a patch: 4 is 2 x 1 x 1 x 2 x 1, 14 is 2 x 1 x 1 x 1 x 7.
 * @param {number} patch
 * @returns {number[]}
 */
export function stemStrides(patch) {
  let halvings = 0;
  for (; patch % 2 === 0; patch /= 2) halvings += 1;
  /** @type {number[]} */
  const strides = halvings ? [] : [1];
  for (let place = 0; place < halvings; place++) {
    strides.push(2);
    for (let keeping = place; keeping < KEEPING; keeping += halvings) strides.push(1);
  }
  return patch > 1 ? [...strides, patch] : strides;
}

/** (channels, height, width) as (height, width, channels). @param {Numbers} image @returns {Numbers} */
export function imageLast({ shape, data }) {
  const [channels, height, width] = shape;
  return numbers([height, width, channels], channelsLast(data, [1, ...shape]));
}

/**
 * Patches behind `front` trained tokens.
 * @param {Stem} stem
 * @param {Numbers | null} front (F, D)
 * @returns {Stem}
 */
export function behindFront(stem, front) {
  if (!front) return stem;
  return (image) => {
    const patches = stem(image);
    const x = numbers([front.shape[0] + patches.shape[0], patches.shape[1]]);
    x.data.set(front.data);
    x.data.set(patches.data, front.data.length);
    return x;
  };
}

/**
 * relu(patch W + b + pos): the tokens of patch attention.
 * @param {Weights} weights
 * @param {number} patch
 * @returns {Stem}
 */
export function placedPatches(weights, patch) {
  const stem = linearStem(weights, "embed", patch);
  const places = weights.get("embed.positions");
  return (image) => relu(add(stem(image), places));
}
