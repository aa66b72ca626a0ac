// @ts-check
/**
 * The models that `attnlab.models.build_model` builds, from a description and weights.
 *
 *     classifier        x = encoder(embed(input));  logits = readout(pool(norm(x)))
 *     encoder-decoder   memory = bridge(encoder(embed(source)));  logits = readout(decoder(embed(fed), memory))
 *     MLP               relu(pixels W_1 + b_1) W_2 + b_2
 *     CNN               filters, ReLU, 2 x 2 max pooling, a linear map of all that is left
 */

import { convolution, maxPool } from "./convolution.js";
import { argmax, numbers, relu } from "./numbers.js";
import { buildPool } from "./pooling.js";
import { Positions } from "./positions.js";
import { behindFront, convStem, imageEmbed, imageLast, linearStem, placedPatches, scaled, tokenEmbed } from "./stems.js";
import { Parts, patchAttentionBlock } from "./parts.js";

/** @import {Attention, NoHeads} from "./attention.js" */
/** @import {DecoderBlock, EncoderBlock, FeedForward} from "./blocks.js" */
/** @import {Pool} from "./pooling.js" */
/** @import {Embed} from "./stems.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Description, EngineInput, Numbers} from "./types.js" */
/** @import {Layer, Weights} from "./weights.js" */

/**
 * What a scene asks of a model. `fed` are the tokens that a decoder is given, the start token first; a class
 * has none.
 * @typedef {object} Net
 * @property {(EncoderBlock | DecoderBlock)[]} blocks in the order of computation
 * @property {boolean} decodes
 * @property {(input: EngineInput, taps: Taps) => Reading} read
 * @property {(x: Numbers, taps: Taps) => Numbers} early logits of a value of the stream, as if no layer
 *   came behind it
 */

/**
 * One input, read: what all answers to it share is computed once.
 * @typedef {object} Reading
 * @property {(fed: number[], taps: Taps) => Numbers} logits (T, V), or (1, V) of a class
 * @property {(start: number, length: number, taps: Taps) => number[]} greedy the likeliest next token,
 *   `length` times
 */

/**
 * @param {Description} description
 * @param {Weights} weights
 * @returns {Net}
 */
export function buildNet(description, weights) {
  switch (description.model.kind) {
    case "seq2seq":
      return buildSeq2Seq(description, weights);
    case "patch-seq2seq":
      return buildPatchSeq2Seq(description, weights);
    case "tokens":
      return buildTokens(description, weights);
    case "vit":
      return buildVit(description, weights);
    case "patch-attention":
      return buildPatchAttention(description, weights);
    case "mlp":
      return buildMlp(description, weights);
    case "cnn":
      return buildCnn(description, weights);
    default:
      throw new Error(`a model of kind ${description.model.kind} is unknown`);
  }
}

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
   */
  constructor({ embed, positions, encoder, norm, pool, readout }) {
    this.embed = embed;
    this.positions = positions;
    this.blocks = encoder;
    this.norm = norm;
    this.pool = pool;
    this.readout = readout;
  }

  /** @type {Net["read"]} */
  read(input, taps) {
    const logits = this.early(encoded(this.embed(input, taps), this.positions, this.blocks, taps), taps);
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

/** @implements {Net} */
class Seq2Seq {
  decodes = true;

  /**
   * @param {object} parts
   * @param {Embed} parts.sourceEmbed
   * @param {Positions} parts.sourcePositions
   * @param {EncoderBlock[]} parts.encoder
   * @param {Layer} parts.encoderNorm
   * @param {Layer} parts.bridge
   * @param {(tokens: number[]) => Numbers} parts.targetEmbed
   * @param {Positions} parts.targetPositions
   * @param {DecoderBlock[]} parts.decoder
   * @param {Layer} parts.decoderNorm
   * @param {Layer} parts.readout
   */
  constructor(parts) {
    this.parts = parts;
    this.blocks = [...parts.encoder, ...parts.decoder];
  }

  /** @type {Net["read"]} */
  read(input, taps) {
    const memory = this.encode(input, taps);
    return {
      logits: (fed, taps) => this.decode(memory, fed, taps),
      greedy: (start, length, taps) => this.greedy(memory, start, length, taps),
    };
  }

  /**
   * The memory that the decoder reads.
   * @param {EngineInput} input
   * @param {Taps} taps
   * @returns {Numbers} (S, D)
   */
  encode(input, taps) {
    const { sourceEmbed, sourcePositions, encoder, encoderNorm, bridge } = this.parts;
    return bridge(encoderNorm(encoded(sourceEmbed(input, taps), sourcePositions, encoder, taps)));
  }

  /**
   * Logits of every next token, given the tokens before it.
   * @param {Numbers} memory
   * @param {number[]} fed
   * @param {Taps} taps
   * @returns {Numbers} (T, V)
   */
  decode(memory, fed, taps) {
    const placed = this.parts.targetPositions.at(fed.length);
    let x = placed.embed(this.parts.targetEmbed(fed));
    for (const block of this.parts.decoder) x = block.forward(x, memory, { taps, placed });
    return this.early(x);
  }

  /**
   * Greedy decoding with cached keys and values.
   * @param {Numbers} memory
   * @param {number} start
   * @param {number} length
   * @param {Taps} taps
   * @returns {number[]}
   */
  greedy(memory, start, length, taps) {
    const { targetEmbed, targetPositions, decoder } = this.parts;
    const caches = decoder.map((block) => block.openCache(memory, length, taps));
    const placed = targetPositions.at(length);
    const said = [];
    for (let place = 0; place < length; place++) {
      let x = placed.embed(targetEmbed([place ? said[place - 1] : start]), place);
      decoder.forEach((block, n) => {
        x = block.step(x, caches[n], { taps, placed, start: place });
      });
      const logits = this.early(x);
      said.push(argmax(logits.data, 0, logits.data.length));
    }
    return said;
  }

  /** @type {(x: Numbers) => Numbers} */
  early(x) {
    return this.parts.readout(this.parts.decoderNorm(x));
  }
}

/**
 * Tokens behind all blocks of an encoder.
 * @param {Numbers} x
 * @param {Positions} positions
 * @param {EncoderBlock[]} encoder
 * @param {Taps} taps
 * @returns {Numbers}
 */
function encoded(x, positions, encoder, taps) {
  const placed = positions.at(x.shape[0]);
  x = placed.embed(x);
  for (const block of encoder) x = block.forward(x, { taps, placed });
  return x;
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildTokens({ model, tokens }, weights) {
  const parts = new Parts(model, weights);
  const front = model.pooling === "cls" && tokens ? tokens.front : null;
  return new Classifier({
    embed: tokenEmbed(weights, "embed.table", { padding: tokens?.padding ?? null, front }),
    positions: parts.positions("positions"),
    encoder: parts.encoder(model.layers),
    norm: weights.norm("norm"),
    pool: buildPool(model.pooling, weights),
    readout: model.pooling === "lowest" ? evidence : weights.readout("readout"),
  });
}

/** Logits (-s, s) of the number s that speaks for the second class. @type {Layer} */
function evidence(s) {
  return numbers([1, 2], Float32Array.of(-s.data[0], s.data[0]));
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildVit({ model, image, scaling }, weights) {
  const parts = new Parts(model, weights);
  const front = model.pooling === "cls" ? weights.get("embed.front") : null;
  const grid = { columns: across(image, model.patch), front: front ? front.shape[0] : 0 };
  return new Classifier({
    embed: imageEmbed(behindFront(stem(model, weights, "embed.stem"), front), scaling ?? [0, 1]),
    positions: parts.positions("positions", grid),
    encoder: parts.encoder(model.layers),
    norm: weights.norm("norm"),
    pool: buildPool(model.pooling, weights),
    readout: weights.linear("readout"),
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildPatchAttention({ model, scaling }, weights) {
  return new Classifier({
    embed: imageEmbed(placedPatches(weights, model.patch), scaling ?? [0, 1]),
    positions: new Positions(),
    encoder: [patchAttentionBlock(model, weights)],
    norm: weights.norm("norm"),
    pool: buildPool("mean", weights),
    readout: weights.linear("readout"),
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildSeq2Seq({ model, tokens, choices }, weights) {
  const parts = new Parts(model, weights);
  return new Seq2Seq({
    sourceEmbed: tokenEmbed(weights, "source_embed", { padding: tokens?.padding ?? null, front: null }),
    sourcePositions: parts.positions("source_positions"),
    bridge: (memory) => memory,
    targetPositions: parts.positions("target_positions"),
    ...coders(parts, weights, choices),
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildPatchSeq2Seq({ model, image, scaling, choices }, weights) {
  const parts = new Parts(model, weights);
  const columns = across(image, model.patch);
  const learned = { ...model.positions, kind: "learned" };
  return new Seq2Seq({
    sourceEmbed: imageEmbed(stem(model, weights, "source_embed.stem"), scaling ?? [0, 1]),
    sourcePositions: parts.positions("source_positions", { columns: model.columns * columns, front: 0 }),
    bridge: model.bridge === "memory" ? (memory) => memory : cellMeans(model.rows, model.columns, columns),
    targetPositions: parts.positions("target_positions", undefined, learned),
    ...coders(parts, weights, choices),
  });
}

/** What both encoder-decoders have. @param {Parts} parts @param {Weights} weights @param {number} choices */
function coders(parts, weights, choices) {
  const { encoder_layers, decoder_layers } = parts.spec;
  return {
    encoder: parts.encoder(encoder_layers),
    encoderNorm: weights.norm("encoder_norm"),
    targetEmbed: weights.table("target_embed"),
    decoder: parts.decoder(decoder_layers),
    decoderNorm: weights.norm("decoder_norm"),
    readout: weights.linear("readout", choices || Infinity),
  };
}

/** @param {import("./types.js").ModelSpec} model @param {Weights} weights @param {string} name */
function stem(model, weights, name) {
  return (model.stem === "linear" ? linearStem : convStem)(weights, name, model.patch);
}

/** Patches in a row of an image or cell. @param {Description["image"]} image @param {number} patch */
function across(image, patch) {
  if (!image) throw new Error("a model of images needs the description's image");
  return Math.floor(image[2] / patch);
}

/**
 * The mean over the patches of each cell, `across` in a row of them: one vector a cell.
 * @param {number} rows
 * @param {number} columns
 * @param {number} across
 * @returns {Layer}
 */
function cellMeans(rows, columns, across) {
  return (memory) => {
    const [patches, width] = memory.shape;
    const down = patches / (rows * columns * across);
    const cells = numbers([rows * columns, width]);
    for (let p = 0; p < patches; p++) {
      const [y, x] = [Math.floor(p / (columns * across)), p % (columns * across)];
      const cell = Math.floor(y / down) * columns + Math.floor(x / across);
      for (let i = 0; i < width; i++) {
        cells.data[cell * width + i] += memory.data[p * width + i] / (down * across);
      }
    }
    return cells;
  };
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildMlp({ scaling }, weights) {
  const [up, readout] = [weights.linear("up"), weights.linear("readout")];
  return plain((input) => {
    const image = scaled(input.pixels, scaling ?? [0, 1]);
    return readout(relu(up(numbers([1, image.data.length], image.data))));
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
function buildCnn({ model, scaling }, weights) {
  const filters = convolution(weights, "filters", { stride: 1, around: Math.floor(model.kernel / 2) });
  const readout = weights.linear("readout");
  return plain((input) => {
    const found = maxPool(relu(filters(imageLast(scaled(input.pixels, scaling ?? [0, 1])))));
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
