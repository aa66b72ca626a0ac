// @ts-check
/**
 * What analyses in a page ask of the model, and how they are written down.
 *
 * An analysis is a generator: it yields [steps done, steps in all] after each step, so that whoever runs it
 * can draw the page in between or stop, and returns a result.
 */

/** @import {Edit, JobResult, JobTable, Scene, Site, Values, Want} from "../types.js" */

/**
 * One input as the engine takes it; `target` is the right answer, if it is known.
 * @typedef {{tokens?: number[], pixels?: Values, name: string, labels: string[], truth: string | null,
 *   target?: number[]}} Given
 *
 * @typedef {object} Asked
 * @property {string} name of the run
 * @property {string} noun what an example is called
 * @property {Site[]} sites
 * @property {(count: number) => string[]} places names of the tokens of an answer of so many
 * @property {number} window how far a query sees; 0: everything
 * @property {{rows: number, columns: number, front: number} | null} patches
 * @property {boolean} ink whether 0 is a pixel that nothing is drawn on
 * @property {(given: Given, edits: Edit[], want?: Want) => Scene} look
 * @property {(given: Given, said: number[], edits: Edit[]) => Values} logits (T, V) of each token of an answer,
 *   while the tokens of `said` are fed
 * @property {(given: Given, edits: Edit[]) => number[]} answer
 * @property {(token: number) => string} label
 *
 * @typedef {Generator<[number, number], JobResult, void>} Analysis
 */

export const NOTHING = { patterns: false, guesses: false, neurons: null };

/** @param {Site[]} sites */
export function headNames(sites) {
  return sites.flatMap((site) => Array.from({ length: site.heads }, (_, head) => `${site.path}.${head}`));
}

/**
 * log p of each token of an answer.
 * @param {Values} logits (T, V)
 * @param {number[]} tokens
 */
export function logChances({ shape, data }, tokens) {
  const width = shape[shape.length - 1];
  return tokens.map((token, t) => data[t * width + token] - logSum(data, t * width, width, -1));
}

/**
 * What speaks for each token of an answer: log p / (1 - p).
 * @param {Values} logits (T, V)
 * @param {number[]} tokens
 */
export function evidence({ shape, data }, tokens) {
  const width = shape[shape.length - 1];
  return tokens.map((token, t) => data[t * width + token] - logSum(data, t * width, width, token));
}

/**
 * The logarithm of the sum of the exponentials of a row, one place left out.
 * @param {Float32Array | Uint8Array} data
 * @param {number} start
 * @param {number} width
 * @param {number} without
 */
function logSum(data, start, width, without) {
  let most = -Infinity;
  for (let i = 0; i < width; i++) if (i !== without) most = Math.max(most, data[start + i]);
  let sum = 0;
  for (let i = 0; i < width; i++) if (i !== without) sum += Math.exp(data[start + i] - most);
  return most + Math.log(sum);
}

/** @param {number[]} values */
export function mean(values) {
  return values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length);
}

/**
 * Half of the 95% interval of a mean, by the normal approximation.
 * @param {number[]} values
 */
export function half(values) {
  const middle = mean(values);
  const spread = mean(values.map((each) => (each - middle) ** 2));
  return 1.96 * Math.sqrt(spread / Math.max(1, values.length - 1));
}

/** A number with its sign, and no minus before zeros. @param {number} value @param {number} digits */
export function signed(value, digits) {
  const text = plain(value, digits);
  return text.startsWith("-") ? text : `+${text}`;
}

/** @param {number} value @param {number} digits */
export function plain(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** @param {number} share */
export function percent(share) {
  return `${plain(100 * share, share === 1 || share === 0 ? 0 : 2)}%`;
}

/**
 * @param {string} title
 * @param {JobTable[]} tables
 * @param {string[]} sentences
 * @param {string[]} [figures] SVG
 * @returns {JobResult}
 */
export function result(title, tables, sentences, figures = []) {
  return { title, sentences, tables, figures };
}
