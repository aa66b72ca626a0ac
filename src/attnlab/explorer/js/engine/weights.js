// @ts-check
/** Weights by torch's names, as the maps that they are of. */

import { layerNorm, numbers, relu } from "./numbers.js";

/** @import {Kernels} from "./kernels.js" */
/** @import {Numbers, Tensors} from "./types.js" */
/** @typedef {(x: Numbers) => Numbers} Layer from (T, D) to (T, E) */

/** The weights of one model, laid out for a kernel as they are asked for. */
export class Weights {
  #tensors;

  /**
   * @param {Tensors} tensors
   * @param {Kernels} kernels
   */
  constructor(tensors, kernels) {
    this.#tensors = tensors;
    this.kernels = kernels;
  }

  /** @param {string} name */
  has(name) {
    return name in this.#tensors;
  }

  /**
   * @param {string} name
   * @returns {Numbers}
   */
  get(name) {
    const found = this.#tensors[name];
    if (!found) throw new Error(`the weights have no ${name}, which the model needs`);
    return found;
  }

  /**
   * x W^T + b
   * @param {string} name
   * @param {number} [first] so many of its outputs
   * @returns {Layer}
   */
  linear(name, first = Infinity) {
    const { shape, data } = this.get(`${name}.weight`);
    const [columns, inner] = [Math.min(first, shape[0]), shape[1]];
    const bias = this.has(`${name}.bias`) ? this.get(`${name}.bias`).data : undefined;
    const { kernels } = this;
    const laid = kernels.lay(data.subarray(0, columns * inner), columns, bias?.subarray(0, columns));
    return (x) => numbers([x.shape[0], columns], kernels.product(x.data, x.shape[0], laid));
  }

  /**
   * One linear map, or two with a ReLU between them, as torch's Sequential numbers them.
   * @param {string} name
   * @returns {Layer}
   */
  readout(name) {
    if (this.has(`${name}.weight`)) return this.linear(name);
    const [first, last] = [this.linear(`${name}.0`), this.linear(`${name}.2`)];
    return (x) => last(relu(first(x)));
  }

  /**
   * Layer norm; nothing where the model has none.
   * @param {string} name
   * @returns {Layer}
   */
  norm(name) {
    if (!this.has(`${name}.weight`)) return (x) => x;
    const [weight, bias] = [this.get(`${name}.weight`).data, this.get(`${name}.bias`).data];
    return (x) => layerNorm(x, weight, bias);
  }

  /**
   * A row for each token.
   * @param {string} name
   * @returns {(tokens: number[]) => Numbers}
   */
  table(name) {
    const { shape, data } = this.get(`${name}.weight`);
    const [count, width] = shape;
    return (tokens) => {
      const x = numbers([tokens.length, width]);
      tokens.forEach((token, t) => {
        if (!(Number.isInteger(token) && token >= 0 && token < count)) {
          throw new Error(`there is no token ${token}; tokens go from 0 to ${count - 1}`);
        }
        x.data.set(data.subarray(token * width, (token + 1) * width), t * width);
      });
      return x;
    };
  }
}
