// @ts-check
/**
 * What the engine is given and what it gives; `description.py` writes the description.
 *
 * @import {Edit, Values, Want} from "../types.js"
 *
 * @typedef {{shape: number[], data: Float32Array}} Numbers
 * @typedef {Record<string, Numbers>} Tensors by name: a model's weights by torch's names, values by taps
 *
 * The model's spec as JSON. Which of the keys are there depends on its kind.
 * @typedef {{kind: string, base: number, length: number, buckets: number, distance: number, inner: string,
 *   limit: number, trained: number, window: number}} PositionSpec
 * @typedef {object} ModelSpec
 * @property {string} kind
 * @property {number} width
 * @property {number} heads
 * @property {number} hidden
 * @property {number} layers
 * @property {number} encoder_layers
 * @property {number} decoder_layers
 * @property {"relu" | "gelu"} activation
 * @property {"pre" | "post" | boolean} norm
 * @property {PositionSpec} positions
 * @property {number[]} [head_counts]
 * @property {number[]} [head_indices]
 * @property {string} pooling
 * @property {string} readout
 * @property {number} window
 * @property {number} log_scale
 * @property {number} patch
 * @property {string} stem
 * @property {string} bridge
 * @property {number} rows
 * @property {number} columns
 * @property {boolean} projection
 * @property {boolean} residual
 * @property {number} kernel
 *
 * @typedef {object} Description
 * @property {ModelSpec} model
 * @property {number} vocabulary
 * @property {{count: number, padding: number, front: number} | null} tokens
 * @property {{breaks: number[], lead: number}} columns how the columns are counted that tokens stand in
 * @property {[number, number, number] | null} image channels, height and width of an image, or of each cell
 * @property {[number, number] | null} scaling what is subtracted from pixels of 0 to 1, and what
 *   they are divided by
 * @property {number | null} start the token before an answer; null: the answer is a class
 * @property {number | null} end the token that closes an answer, and fills up shorter ones
 * @property {number} target_length tokens of an answer, unless the input says what is right
 * @property {number} choices logits that can be said, the first of them; 0: all
 * @property {number} temperature what logits are divided by before probabilities are made of them
 *
 * One input as the model takes it, and how people call it.
 * @typedef {object} EngineInput
 * @property {number[]} [tokens]
 * @property {Values | null} [pixels] 0 to 255, (channels, height, width)
 * @property {string} [name]
 * @property {string[]} [labels] a sign for each token
 * @property {number[]} [target] the right answer, if it is known
 * @property {string | null} [truth] the same as people read it
 *
 * What only the task knows.
 * @typedef {object} Words
 * @property {string[]} symbols a sign for each token of an answer
 * @property {(count: number) => string[]} places names of the tokens of an answer of so many
 * @property {(tokens: number[]) => string} answer tokens as people read them
 *
 * What takes the place of values that are switched off.
 * @typedef {object} Baselines
 * @property {Tensors} [means] of training examples: `encoder.0.self.z` (H, T, K), `encoder.0.feed.hidden`
 *   (T, N)
 * @property {(EngineInput & {answer?: number[]})[]} [examples] to resample from: that of the nearest length
 *   is taken; `answer` is what a decoder is fed for it, by default what it says
 *
 * @typedef {object} EngineQuestion
 * @property {EngineInput} input
 * @property {EngineInput | null} [other]
 * @property {Edit[]} [edits]
 * @property {Partial<Want>} [want] by default all patterns and guesses
 */

export {};
