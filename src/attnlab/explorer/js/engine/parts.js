// @ts-check
/** Blocks as model specs describe them, with their weights. */

import { Attention, NoHeads } from "./attention.js";
import { DecoderBlock, EncoderBlock, FeedForward, Residual } from "./blocks.js";
import { buildPositions } from "./positions.js";

/** @import {Joining} from "./blocks.js" */
/** @import {Columns, Grid} from "./positions.js" */
/** @import {ModelSpec, PositionSpec} from "./types.js" */
/** @import {Layer, Weights} from "./weights.js" */

/** Makes the parts of one model in the order of computation. */
export class Parts {
  #weights;
  #joining;
  #counted;
  #number = 0; // of the next attention
  #own = 0; // of the next head

  /**
   * @param {ModelSpec} spec
   * @param {Weights} weights
   * @param {Columns} [counted] how the task counts columns
   */
  constructor(spec, weights, counted) {
    this.spec = spec;
    this.#counted = counted;
    this.#weights = weights;
    this.#joining = /** @type {Joining} */ (spec.norm);
  }

  /** @param {number} layers */
  encoder(layers) {
    return [...Array(layers).keys()].map((layer) => {
      const path = `encoder.${layer}`;
      return new EncoderBlock(path, { ...this.#self(path), ...this.#feed(path) });
    });
  }

  /** @param {number} layers */
  decoder(layers) {
    return [...Array(layers).keys()].map((layer) => {
      const path = `decoder.${layer}`;
      const self = this.#self(path);
      const cross = this.attention(`${path}.cross`);
      const crossResidual = this.#residual(`${path}.cross_residual`);
      return new DecoderBlock(path, { ...self, cross, crossResidual, ...this.#feed(path) });
    });
  }

  /**
   * @param {string} path
   * @param {Grid} [grid]
   * @param {PositionSpec} [spec]
   */
  positions(path, grid, spec = this.spec.positions) {
    const { width, heads } = this.spec;
    const about = { weights: this.#weights, path, width, headWidth: width / heads };
    return buildPositions(spec, { ...about, grid, counted: this.#counted });
  }

  /**
   * The next attention, with as many heads as are left of it.
   * @param {string} path
   * @returns {Attention | NoHeads}
   */
  attention(path) {
    const { spec } = this;
    const count = spec.head_counts?.length ? spec.head_counts[this.#number] : spec.heads;
    const own = spec.head_indices?.length ? spec.head_indices.slice(this.#own, this.#own + count) : null;
    this.#number += 1;
    this.#own += count;
    const { window, log_scale: logScale } = spec;
    const output = (/** @type {string} */ name) => this.#weights.linear(name);
    return buildAttention(path, count, spec, this.#weights, { window, logScale, own, output });
  }

  /** @param {string} path */
  #self(path) {
    return { self: this.attention(`${path}.self`), selfResidual: this.#residual(`${path}.self_residual`) };
  }

  /** @param {string} path */
  #feed(path) {
    const feed = buildFeed(`${path}.feed`, this.spec, this.#weights);
    return { feed, feedResidual: this.#residual(`${path}.feed_residual`) };
  }

  /** @param {string} path */
  #residual(path) {
    return new Residual(path, this.#joining, this.#weights.norm(`${path}.norm`));
  }
}

/**
 * The one block of patch attention, whose sums, norms and output projection may be missing.
 * @param {ModelSpec} spec
 * @param {Weights} weights
 */
export function patchAttentionBlock(spec, weights) {
  const count = spec.head_counts?.length ? spec.head_counts[0] : spec.heads;
  const output = (/** @type {string} */ name) =>
    spec.projection ? weights.linear(name) : (/** @type {import("./types.js").Numbers} */ z) => z;
  const residual = (/** @type {string} */ path) =>
    new Residual(path, spec.residual ? "pre" : "none", weights.norm(`${path}.norm`));
  return new EncoderBlock("encoder.0", {
    self: buildAttention("encoder.0.self", count, spec, weights, { output }),
    selfResidual: residual("encoder.0.self_residual"),
    feed: buildFeed("encoder.0.feed", { ...spec, activation: "relu" }, weights),
    feedResidual: residual("encoder.0.feed_residual"),
  });
}

/**
 * @param {string} path
 * @param {number} heads
 * @param {ModelSpec} spec
 * @param {Weights} weights
 * @param {{output: (name: string) => Layer, window?: number, logScale?: number,
 *   own?: number[] | null}} rest
 * @returns {Attention | NoHeads}
 */
function buildAttention(path, heads, spec, weights, { output, ...rest }) {
  if (heads === 0) return new NoHeads(path, weights.get(`${path}.bias`).data);
  return new Attention({
    path,
    heads,
    headWidth: spec.width / spec.heads,
    query: weights.linear(`${path}.query`),
    key: weights.linear(`${path}.key`),
    value: weights.linear(`${path}.value`),
    output: output(`${path}.output`),
    kernels: weights.kernels,
    ...rest,
  });
}

/** @param {string} path @param {ModelSpec} spec @param {Weights} weights */
function buildFeed(path, { hidden, activation }, weights) {
  const [up, down] = [weights.linear(`${path}.up`), weights.linear(`${path}.down`)];
  return new FeedForward(path, hidden, { up, activation, down });
}
