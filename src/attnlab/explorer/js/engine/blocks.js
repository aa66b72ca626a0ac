// @ts-check
/**
 * Encoder and decoder blocks: sublayers, each with its residual connection and layer norm.
 *
 *     pre-norm    x <- x + f(norm(x))
 *     post-norm   x <- norm(x + f(x))
 *     no sum      x <- f(norm(x))
 */

import { Attention } from "./attention.js";
import { add, gelu, numbers, relu } from "./numbers.js";

/** @import {NoHeads, Pass} from "./attention.js" */
/** @import {Placed, Positions} from "./positions.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Numbers} from "./types.js" */
/** @import {Layer} from "./weights.js" */
/** @typedef {"pre" | "post" | "none"} Joining */

/** One way to add a sublayer to the residual stream, which its tap `out` shows. */
export class Residual {
  /**
   * @param {string} path
   * @param {Joining} joining
   * @param {Layer} norm
   */
  constructor(path, joining, norm) {
    this.path = path;
    this.joining = joining;
    this.norm = norm;
  }

  /**
   * @param {Numbers} x
   * @param {Layer} sublayer
   * @param {Taps} taps
   * @param {number} [start]
   * @returns {Numbers}
   */
  forward(x, sublayer, taps, start) {
    return taps.at(`${this.path}.out`, this.joined(x, sublayer), start);
  }

  /**
   * @param {Numbers} x
   * @param {Layer} f
   * @returns {Numbers}
   */
  joined(x, f) {
    switch (this.joining) {
      case "pre":
        return add(x, f(this.norm(x)));
      case "post":
        return this.norm(add(x, f(x)));
      case "none":
        return f(this.norm(x));
    }
  }
}

/** W_2 f(W_1 x + b_1) + b_2, with a tap at the hidden values. */
export class FeedForward {
  /**
   * @param {string} path
   * @param {number} hidden
   * @param {{up: Layer, activation: "relu" | "gelu", down: Layer}} parts
   */
  constructor(path, hidden, { up, activation, down }) {
    this.path = path;
    this.hidden = hidden;
    this.up = up;
    this.activation = activation === "relu" ? relu : gelu;
    this.down = down;
  }

  /**
   * @param {Numbers} x
   * @param {Taps} taps
   * @param {number} [start]
   * @returns {Numbers}
   */
  forward(x, taps, start) {
    return this.down(taps.at(`${this.path}.hidden`, this.activation(this.up(x)), start));
  }
}

/**
 * Tokens behind all blocks of an encoder.
 * @param {Numbers} x
 * @param {Positions} positions
 * @param {EncoderBlock[]} encoder
 * @param {Taps} taps
 * @param {number[]} [tokens] what is embedded, where it is tokens
 * @returns {{x: Numbers, placed: Placed}}
 */
export function encoded(x, positions, encoder, taps, tokens) {
  const placed = positions.at(x.shape[0], tokens);
  x = placed.embed(x);
  for (const block of encoder) x = block.forward(x, { taps, placed });
  return { x, placed };
}

/** Self attention, then feed-forward. */
export class EncoderBlock {
  /**
   * @param {string} path
   * @param {object} parts
   * @param {Attention | NoHeads} parts.self
   * @param {Residual} parts.selfResidual
   * @param {FeedForward} parts.feed
   * @param {Residual} parts.feedResidual
   */
  constructor(path, { self, selfResidual, feed, feedResidual }) {
    this.path = path;
    this.self = self;
    this.selfResidual = selfResidual;
    this.feed = feed;
    this.feedResidual = feedResidual;
  }

  /** @returns {(Attention | NoHeads)[]} */
  get attentions() {
    return [this.self];
  }

  /**
   * @param {Numbers} x
   * @param {Pass} pass
   * @returns {Numbers}
   */
  forward(x, pass) {
    const { taps } = pass;
    x = this.selfResidual.forward(x, (x) => this.self.forward(x, x, pass), taps);
    return this.feedResidual.forward(x, (x) => this.feed.forward(x, taps), taps);
  }
}

/** Causal self attention, cross attention to the memory, then feed-forward. */
export class DecoderBlock {
  /**
   * @param {string} path
   * @param {object} parts
   * @param {Attention | NoHeads} parts.self
   * @param {Residual} parts.selfResidual
   * @param {Attention | NoHeads} parts.cross
   * @param {Residual} parts.crossResidual
   * @param {FeedForward} parts.feed
   * @param {Residual} parts.feedResidual
   */
  constructor(path, { self, selfResidual, cross, crossResidual, feed, feedResidual }) {
    this.path = path;
    this.self = self;
    this.selfResidual = selfResidual;
    this.cross = cross;
    this.crossResidual = crossResidual;
    this.feed = feed;
    this.feedResidual = feedResidual;
  }

  /** @returns {(Attention | NoHeads)[]} */
  get attentions() {
    return [this.self, this.cross];
  }

  /**
   * @param {Numbers} x
   * @param {Numbers} memory
   * @param {Pass & {across?: Placed}} pass `across`: where queries stand beside the memory
   * @returns {Numbers}
   */
  forward(x, memory, { taps, placed, across }) {
    const look = (/** @type {Numbers} */ x) => this.cross.forward(x, memory, { taps, placed: across });
    const own = { taps, placed, causal: true };
    x = this.selfResidual.forward(x, (x) => this.self.forward(x, x, own), taps);
    x = this.crossResidual.forward(x, look, taps);
    return this.feedResidual.forward(x, (x) => this.feed.forward(x, taps), taps);
  }

  /**
   * Keys and values of the memory, and room for those of `length` tokens to come.
   * @param {Numbers} memory
   * @param {number} length
   * @param {Taps} taps
   * @param {Placed} [across]
   * @returns {BlockCache}
   */
  openCache(memory, length, taps, across) {
    const { self, cross } = this;
    return {
      own: self instanceof Attention ? new GrowingKeys(self.heads, length, self.headWidth) : null,
      memory: cross instanceof Attention ? cross.keysValues(memory, { taps, placed: across }) : null,
    };
  }

  /**
   * `forward` for one further token, reading and extending the cache.
   * @param {Numbers} x (1, D)
   * @param {BlockCache} cache
   * @param {Pass & {start: number, across?: Placed}} pass
   * @returns {Numbers}
   */
  step(x, cache, { taps, placed, start, across }) {
    const { self, cross } = this;
    const own = { taps, placed, start };
    const attend = (/** @type {Numbers} */ x) => {
      if (!(self instanceof Attention) || !cache.own) return self.forward(x, x, own);
      const q = self.queries(x, own);
      return self.attend(q, cache.own.extended(self.keysValues(x, own)), own);
    };
    const look = (/** @type {Numbers} */ x) => {
      if (!(cross instanceof Attention) || !cache.memory) return cross.forward(x, x, { taps, start });
      const beside = { taps, start, placed: across };
      return cross.attend(cross.queries(x, beside), cache.memory, beside);
    };
    x = this.selfResidual.forward(x, attend, taps, start);
    x = this.crossResidual.forward(x, look, taps, start);
    return this.feedResidual.forward(x, (x) => this.feed.forward(x, taps, start), taps, start);
  }
}

/** @typedef {{own: GrowingKeys | null, memory: {k: Numbers, v: Numbers} | null}} BlockCache */

/** Keys and values (H, length, K) of the tokens so far, with room for a few more. */
class GrowingKeys {
  #length = 0;
  #heads;
  #room;
  #width;

  /**
   * @param {number} heads
   * @param {number} room
   * @param {number} width
   */
  constructor(heads, room, width) {
    this.#heads = heads;
    this.#room = room;
    this.#width = width;
    this.k = new Float32Array(heads * room * width);
    this.v = new Float32Array(heads * room * width);
  }

  /**
   * Append those of one token (H, 1, K) and return all there are.
   * @param {{k: Numbers, v: Numbers}} token
   * @returns {{k: Numbers, v: Numbers}}
   */
  extended({ k, v }) {
    const width = this.#width;
    for (let h = 0; h < this.#heads; h++) {
      const [from, to] = [h * width, (h * this.#room + this.#length) * width];
      this.k.set(k.data.subarray(from, from + width), to);
      this.v.set(v.data.subarray(from, from + width), to);
    }
    this.#length += 1;
    return { k: this.#filled(this.k), v: this.#filled(this.v) };
  }

  /** @param {Float32Array} data @returns {Numbers} */
  #filled(data) {
    const filled = numbers([this.#heads, this.#length, this.#width]);
    const size = this.#length * this.#width;
    for (let h = 0; h < this.#heads; h++) {
      const from = h * this.#room * this.#width;
      filled.data.set(data.subarray(from, from + size), h * size);
    }
    return filled;
  }
}
