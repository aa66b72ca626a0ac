// @ts-check
/** The examples that a hand-out carries, some of each stratum of a split, by the numbers they have there. */

import { unpackBytes } from "../packed.js";

/** @import {Example, ExamplesWanted, Values} from "../types.js" */
/** @import {Given} from "./asked.js" */

/**
 * @typedef {object} Stored examples of one split, a row each; `explorer/stored.py` writes them
 * @property {number} count how many examples the split has in all
 * @property {number[]} indices
 * @property {string[]} names
 * @property {(string | null)[]} truths
 * @property {(number[] | null)[]} targets
 * @property {number[][] | null} tokens null for images
 * @property {string[][] | null} labels
 * @property {string | null} pixels of all images, as `unpackBytes` takes them
 * @property {[string, number[]][]} strata rows of each stratum
 */

/** Examples of one split. */
export class StoredExamples {
  #stored;
  #split;
  #pixels;
  #shape;

  /**
   * @param {string} split
   * @param {Stored} stored
   * @param {number[]} shape of an image
   */
  constructor(split, stored, shape) {
    this.#split = split;
    this.#stored = stored;
    this.#shape = shape;
    const size = shape.reduce((product, side) => product * side, 1);
    this.#pixels = stored.pixels === null ? null : unpackBytes(stored.pixels, stored.indices.length * size);
  }

  /** The first `count` of them. @param {number} [count] @returns {Given[]} */
  all(count = Infinity) {
    return this.#stored.indices.slice(0, count).map((_, row) => this.#given(row));
  }

  /** The example with the number `index` in its split. @param {number} index @returns {Given} */
  at(index) {
    const { indices, count } = this.#stored;
    const row = indices.indexOf(index);
    if (row >= 0) return this.#given(row);
    throw new Error(
      `this file carries ${indices.length} of the ${count} ${this.#split} examples; number ${index} is not one of them`,
    );
  }

  /**
   * @param {Pick<ExamplesWanted, "stratum" | "start" | "count">} wanted
   * @returns {{total: number, items: Example[]}}
   */
  page({ stratum, start, count }) {
    const rows = new Map(this.#stored.strata).get(stratum);
    if (!rows) {
      throw new Error(`there is no stratum '${stratum}'; known: ${this.#stored.strata.map(([name]) => name).join(", ")}`);
    }
    return { total: rows.length, items: rows.slice(start, start + count).map((row) => this.#item(row)) };
  }

  /** @param {number} row @returns {Example} */
  #item(row) {
    const { indices, names, truths } = this.#stored;
    return { index: indices[row], name: names[row], truth: truths[row], pixels: this.#image(row) };
  }

  /** @param {number} row @returns {Given} */
  #given(row) {
    const { names, truths, targets, tokens, labels } = this.#stored;
    const shown = { name: names[row], truth: truths[row], target: targets[row] ?? undefined, labels: labels?.[row] ?? [] };
    const pixels = this.#image(row);
    return pixels ? { ...shown, pixels } : { ...shown, tokens: tokens?.[row] ?? [] };
  }

  /** @param {number} row @returns {Values | null} */
  #image(row) {
    if (!this.#pixels) return null;
    const size = this.#pixels.length / this.#stored.indices.length;
    return { shape: this.#shape, data: this.#pixels.subarray(row * size, (row + 1) * size) };
  }
}
