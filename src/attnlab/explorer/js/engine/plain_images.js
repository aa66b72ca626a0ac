// @ts-check
/**
 * Models that read images without attention.
 *
 *     MLP   relu(pixels W_1 + b_1) W_2 + b_2
 *     CNN   filters, ReLU, 2 x 2 max pooling, and a linear map of all that is left
 */

import { convolution, maxPool } from "./convolution.js";
import { imageReader } from "./inputs.js";
import { argmax, numbers, relu } from "./numbers.js";
import { imageLast } from "./stems.js";

/** @import {Net} from "./models.js" */
/** @import {Description, EngineInput, Numbers} from "./types.js" */
/** @import {Weights} from "./weights.js" */

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildMlp(description, weights) {
  const read = imageReader(description);
  const [up, readout] = [weights.linear("up"), weights.linear("readout")];
  return plain((input) => {
    const image = read(input);
    return readout(relu(up(numbers([1, image.data.length], image.data))));
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildCnn(description, weights) {
  const { model } = description;
  const read = imageReader(description);
  const filters = convolution(weights, "filters", { stride: 1, around: Math.floor(model.kernel / 2) });
  const readout = weights.linear("readout");
  return plain((input) => {
    const found = maxPool(relu(filters(imageLast(read(input)))));
    return readout(channelsFirst(found));
  });
}

/** (height, width, channels) as one row, channel by channel. @param {Numbers} image @returns {Numbers} */
function channelsFirst({ shape, data }) {
  const [height, width, channels] = shape;
  const found = numbers([1, data.length]);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < channels; c++) found.data[c * height * width + i] = data[i * channels + c];
  }
  return found;
}

/** A model without attention. @param {(input: EngineInput) => Numbers} forward @returns {Net} */
function plain(forward) {
  return {
    blocks: [],
    decodes: false,
    early: (x) => x,
    read(input) {
      const logits = forward(input);
      return { logits: () => logits, greedy: () => [argmax(logits.data, 0, logits.data.length)] };
    },
  };
}
