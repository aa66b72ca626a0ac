// @ts-check
/**
 * Taps: named points in a model where values are edited and recorded, in this order. A tap's name is the
 * module's path and its own: `encoder.1.self.pattern`.
 */

/** @import {Numbers} from "./types.js" */
/**
 * Changes a value in place. `start` is the place of its first query or token, since a decoder may be given
 * one token at a time.
 * @typedef {(value: Numbers, start: number) => void} Change
 */

/** What is changed and recorded in one pass. */
export class Taps {
  #changes;
  #wanted;
  /** @type {Map<string, Numbers>} */
  seen = new Map();

  /**
   * @param {Map<string, Change[]>} [changes] by tap
   * @param {(name: string) => boolean} [wanted] which taps are recorded
   */
  constructor(changes = new Map(), wanted = () => false) {
    this.#changes = changes;
    this.#wanted = wanted;
  }

  /** The same changes, recording nothing. */
  unseen() {
    return new Taps(this.#changes);
  }

  /**
   * @param {string} name
   * @param {Numbers} value
   * @param {number} [start]
   * @returns {Numbers}
   */
  at(name, value, start = 0) {
    for (const change of this.#changes.get(name) ?? []) change(value, start);
    if (this.#wanted(name)) this.seen.set(name, value);
    return value;
  }
}
