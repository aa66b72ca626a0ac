// @ts-check
/**
 * The classifier: tokens in, one class out.
 *
 *     x      = encoder(embed(input))      (T, D)
 *     logits = readout(pool(norm(x)))     (1, V)
 */

import { encoded } from "./blocks.js";
import { imageEmbed, tokenEmbed } from "./inputs.js";
import { argmax, numbers } from "./numbers.js";
import { Parts, patchAttentionBlock } from "./parts.js";
import { buildPool } from "./pooling.js";
import { Positions } from "./positions.js";
import { behindFront, buildStem, placedPatches } from "./stems.js";

/** @import {EncoderBlock} from "./blocks.js" */
/** @import {Net} from "./models.js" */
/** @import {Pool} from "./pooling.js" */
/** @import {Embed} from "./inputs.js" */
/** @import {Description} from "./types.js" */
/** @import {Layer, Weights} from "./weights.js" */

/**
 * @implements {Net}
 */
class Classifier {
  decodes = false;

  /**
   * @param {object} parts
   * @param {Embed} parts.embed
   * @param {Positions} parts.positions
   * @param {EncoderBlock[]} parts.encoder
   * @param {Layer} parts.norm
   * @param {Pool} parts.pool
   * @param {Layer} parts.readout
   * @param {number | null} [parts.front] the token before all others
   */
  constructor({ embed, positions, encoder, norm, pool, readout, front = null }) {
    this.embed = embed;
    this.positions = positions;
    this.blocks = encoder;
    this.norm = norm;
    this.pool = pool;
    this.readout = readout;
    this.front = front === null ? [] : [front];
  }

  /** @type {Net["read"]} */
  read(input, taps) {
    const tokens = input.tokens && [...this.front, ...input.tokens];
    const { x } = encoded(this.embed(input), this.positions, this.blocks, taps, tokens);
    const logits = this.early(x, taps);
    return {
      logits: () => logits,
      greedy: () => [argmax(logits.data, 0, logits.data.length)],
    };
  }

  /** @type {Net["early"]} */
  early(x, taps) {
    return this.readout(this.pool(this.norm(x), taps));
  }
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildTokens({ model, tokens, columns }, weights) {
  const front = model.pooling === "cls" && tokens ? tokens.front : null;
  const counted = columns && front !== null ? { ...columns, breaks: [...columns.breaks, front] } : columns;
  const parts = new Parts(model, weights, counted);
  return new Classifier({
    embed: tokenEmbed(weights, "embed.table", { padding: tokens?.padding ?? null, front }),
    positions: parts.positions("positions"),
    encoder: parts.encoder(model.layers),
    norm: weights.norm("norm"),
    pool: buildPool(model.pooling, weights),
    readout: model.pooling === "lowest" ? evidence : weights.readout("readout"),
    front,
  });
}

/** Logits (-s, s) of the number s that speaks for the second class. @type {Layer} */
function evidence(s) {
  return numbers([1, 2], Float32Array.of(-s.data[0], s.data[0]));
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildVit(description, weights) {
  const { model, image } = description;
  const parts = new Parts(model, weights);
  const front = model.pooling === "cls" ? weights.get("embed.front") : null;
  const grid = { columns: (image?.[2] ?? 0) / model.patch, front: front ? front.shape[0] : 0 };
  return new Classifier({
    embed: imageEmbed(behindFront(buildStem(model, weights, "embed.stem"), front), description),
    positions: parts.positions("positions", grid),
    encoder: parts.encoder(model.layers),
    norm: weights.norm("norm"),
    pool: buildPool(model.pooling, weights),
    readout: weights.linear("readout"),
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildPatchAttention(description, weights) {
  const { model } = description;
  return new Classifier({
    embed: imageEmbed(placedPatches(weights, model.patch), description),
    positions: new Positions(),
    encoder: [patchAttentionBlock(model, weights)],
    norm: weights.norm("norm"),
    pool: buildPool("mean", weights),
    readout: weights.linear("readout"),
  });
}
