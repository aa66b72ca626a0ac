// @ts-check
/** The models that `attnlab.models.build_model` builds, from a description and weights. */

import { buildPatchAttention, buildTokens, buildVit } from "./classifier.js";
import { buildCnn, buildMlp } from "./plain_images.js";
import { buildPatchSeq2Seq, buildSeq2Seq } from "./seq2seq.js";

/** @import {DecoderBlock, EncoderBlock} from "./blocks.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Description, EngineInput, Numbers} from "./types.js" */
/** @import {Weights} from "./weights.js" */

/**
 * What a scene asks of a model. `fed` are the tokens that a decoder is given, the start token first; a
 * class has none.
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
