// @ts-check
/** From an input to the tokens x (T, D) of a model. */

import { numbers } from "./numbers.js";

/** @import {Values} from "../types.js" */
/** @import {Stem} from "./stems.js" */
/** @import {Description, EngineInput, Numbers} from "./types.js" */
/** @import {Weights} from "./weights.js" */
/** @typedef {(input: EngineInput) => Numbers} Embed */

/**
 * A trained vector for each token; `front`, if there is one, stands before all others. Padding at the end
 * is left out.
 * @param {Weights} weights
 * @param {string} name
 * @param {{padding: number | null, front: number | null}} special
 * @returns {Embed}
 */
export function tokenEmbed(weights, name, { padding, front }) {
  const table = weights.table(name);
  return ({ tokens }) => {
    if (!tokens) throw new Error("the model reads tokens, and the input has none");
    let count = tokens.length;
    while (padding !== null && count > 0 && tokens[count - 1] === padding) count -= 1;
    if (count === 0) throw new Error("the input is empty");
    const own = tokens.slice(0, count);
    return table(front === null ? own : [front, ...own]);
  };
}

/**
 * Tokens of an image, kept for the next time: an edit changes nothing here.
 * @param {Stem} stem
 * @param {Description} description
 * @returns {Embed}
 */
export function imageEmbed(stem, description) {
  const read = imageReader(description);
  /** @type {{pixels: Values["data"], x: Numbers} | null} */
  let last = null;
  return (input) => {
    const pixels = input.pixels?.data ?? new Uint8Array(0);
    if (!last || !same(last.pixels, pixels)) last = { pixels: pixels.slice(), x: stem(read(input)) };
    return last.x;
  };
}

/** @param {Values["data"]} a @param {Values["data"]} b */
const same = (a, b) => a.length === b.length && a.every((each, i) => each === b[i]);

/**
 * (pixels / 255 - mean) / deviation
 * @param {Description} description
 * @returns {Embed} to (channels, height, width)
 */
export function imageReader(description) {
  const shape = imageShape(description);
  const [mean, deviation] = description.scaling ?? [0, 1];
  return ({ pixels }) => {
    if (!pixels) throw new Error("the model reads an image, and the input has none");
    const image = numbers(shape);
    if (pixels.data.length !== image.data.length) {
      throw new Error(`the image is ${pixels.shape.join(" x ")}; it must be ${shape.join(" x ")}`);
    }
    for (let i = 0; i < image.data.length; i++) {
      image.data[i] = (Math.fround(pixels.data[i] / 255) - mean) / deviation;
    }
    return image;
  };
}

/** Channels, height and width of the whole image. @param {Description} description */
function imageShape({ model, image }) {
  if (!image) throw new Error("a model of images needs the description's image");
  const [channels, height, width] = image;
  const [rows, columns] = model.kind === "patch-seq2seq" ? [model.rows, model.columns] : [1, 1];
  return [channels, height * rows, width * columns];
}
