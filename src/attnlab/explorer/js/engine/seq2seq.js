// @ts-check
/**
 * The encoder-decoder (Vaswani et al., 2017): source in, target tokens out.
 *
 *     memory = bridge(encoder(embed(source)))                    (S, D)
 *     logits = readout(decoder(embed(target so far), memory))    (T, V)
 */

import { encoded } from "./blocks.js";
import { imageEmbed, tokenEmbed } from "./inputs.js";
import { argmax, numbers } from "./numbers.js";
import { Parts } from "./parts.js";
import { across } from "./positions.js";
import { buildStem } from "./stems.js";

/** @import {DecoderBlock, EncoderBlock} from "./blocks.js" */
/** @import {Net} from "./models.js" */
/** @import {Placed, Positions} from "./positions.js" */
/** @import {Embed} from "./inputs.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Description, EngineInput, Numbers} from "./types.js" */
/** @import {Layer, Weights} from "./weights.js" */

/** @typedef {{memory: Numbers, where: Placed}} Encoded */

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
    const read = this.encode(input, taps);
    return {
      logits: (fed, taps) => this.decode(read, fed, taps),
      greedy: (start, length, taps) => this.greedy(read, start, length, taps),
    };
  }

  /**
   * The memory (S, D) that the decoder reads, and where its tokens stand.
   * @param {EngineInput} input
   * @param {Taps} taps
   * @returns {Encoded}
   */
  encode(input, taps) {
    const { sourceEmbed, sourcePositions, encoder, encoderNorm, bridge } = this.parts;
    const { x, placed } = encoded(sourceEmbed(input), sourcePositions, encoder, taps, input.tokens);
    return { memory: bridge(encoderNorm(x)), where: placed };
  }

  /**
   * Logits of every next token, given the tokens before it.
   * @param {Encoded} read
   * @param {number[]} fed
   * @param {Taps} taps
   * @returns {Numbers} (T, V)
   */
  decode({ memory, where }, fed, taps) {
    const placed = this.parts.targetPositions.at(fed.length);
    const pass = { taps, placed, across: across(placed, where) };
    let x = placed.embed(this.parts.targetEmbed(fed));
    for (const block of this.parts.decoder) x = block.forward(x, memory, pass);
    return this.early(x);
  }

  /**
   * Greedy decoding with cached keys and values.
   * @param {Encoded} read
   * @param {number} start
   * @param {number} length
   * @param {Taps} taps
   * @returns {number[]}
   */
  greedy({ memory, where }, start, length, taps) {
    const { targetEmbed, targetPositions, decoder } = this.parts;
    const placed = targetPositions.at(length);
    const pass = { taps, placed, across: across(placed, where) };
    const caches = decoder.map((block) => block.openCache(memory, length, taps, pass.across));
    const said = [];
    for (let place = 0; place < length; place++) {
      let x = placed.embed(targetEmbed([place ? said[place - 1] : start]), place);
      decoder.forEach((block, n) => {
        x = block.step(x, caches[n], { ...pass, start: place });
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

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildSeq2Seq({ model, tokens, columns, choices }, weights) {
  const parts = new Parts(model, weights, columns);
  return new Seq2Seq({
    sourceEmbed: tokenEmbed(weights, "source_embed", { padding: tokens?.padding ?? null, front: null }),
    sourcePositions: parts.positions("source_positions"),
    bridge: (memory) => memory,
    targetPositions: parts.positions("target_positions"),
    ...coders(parts, weights, choices),
  });
}

/** @param {Description} description @param {Weights} weights @returns {Net} */
export function buildPatchSeq2Seq(description, weights) {
  const { model, image, choices } = description;
  const parts = new Parts(model, weights);
  const across = (image?.[2] ?? 0) / model.patch; // patches in a row of a cell
  const learned = { ...model.positions, kind: "learned" };
  return new Seq2Seq({
    sourceEmbed: imageEmbed(buildStem(model, weights, "source_embed.stem"), description),
    sourcePositions: parts.positions("source_positions", { columns: model.columns * across, front: 0 }),
    bridge: model.bridge === "memory" ? (memory) => memory : cellMeans(model.rows, model.columns, across),
    targetPositions: parts.positions("target_positions", undefined, learned),
    ...coders(parts, weights, choices),
  });
}

/**
 * What both encoder-decoders have.
 * @param {Parts} parts
 * @param {Weights} weights
 * @param {number} choices
 */
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
