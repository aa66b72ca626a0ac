// @ts-check
/** One answer, seen whole: its tokens and probabilities, patterns, early guesses, hidden values. */

import { softmaxRows } from "./numbers.js";

/** @import {AnswerToken, Scene} from "../types.js" */
/** @import {Net} from "./models.js" */
/** @import {Taps} from "./taps.js" */
/** @import {Description, EngineInput, Numbers, Words} from "./types.js" */

const TOP = 5; // likeliest tokens that are named

/**
 * What the model said, and one pass that was fed it.
 * @typedef {object} Looked
 * @property {number[]} said
 * @property {number[]} fed the same with the start token in front, without the last; of a class nothing
 * @property {Numbers} logits (T, V)
 * @property {Taps} taps what was seen
 */

/**
 * @param {Description} description
 * @param {EngineInput} input
 * @param {Looked} looked
 * @param {Words} words
 * @returns {Scene["answer"]}
 */
export function describeAnswer({ temperature, end }, { target }, { said, logits }, words) {
  const chances = softmaxRows(logits, temperature);
  const width = chances.shape[1];
  const places = words.places(said.length);
  const tokens = said.map((token, place) => {
    const row = chances.data.subarray(place * width, (place + 1) * width);
    return {
      label: words.symbols[token] ?? String(token),
      place: places[place],
      probability: row[token],
      top: likeliest(row, words.symbols),
    };
  });
  return {
    text: words.answer(said),
    probability: tokens.reduce((product, { probability }) => product * probability, 1),
    correct: target ? String(ended(target, end)) === String(said) : null,
    tokens,
  };
}

/**
 * An answer without what fills it up: of several ends at its end, the first.
 * @param {number[]} said
 * @param {number | null} end
 */
export function ended(said, end) {
  let count = said.length;
  while (count > 1 && said[count - 1] === end && said[count - 2] === end) count -= 1;
  return said.slice(0, count);
}

/** @param {Float32Array} chances @param {string[]} symbols @returns {AnswerToken["top"]} */
function likeliest(chances, symbols) {
  const order = [...chances.keys()].sort((a, b) => chances[b] - chances[a]);
  return order.slice(0, TOP).map((token) => [symbols[token] ?? String(token), chances[token]]);
}

/**
 * Names of queries and keys. A patch is named by its row and column, a token in front `cls`.
 * @param {Description} description
 * @param {EngineInput} input
 * @param {Looked} looked
 * @param {Words} words
 * @returns {Scene["labels"]}
 */
export function describeLabels({ model }, input, { said, fed }, words) {
  const front = model.pooling === "cls" ? ["cls"] : [];
  const { pixels, labels = [] } = input;
  const own = pixels && model.patch ? patchNames(pixels.shape, model.patch) : labels;
  return {
    input: own.length ? [...front, ...own] : [],
    answer: fed.map((token) => words.symbols[token] ?? START),
    places: words.places(said.length),
  };
}

const START = "⊢"; // the sign of a start token that has none

/** @param {number[]} image @param {number} patch */
function patchNames(image, patch) {
  const [rows, columns] = image.slice(-2).map((side) => Math.floor(side / patch));
  return [...Array(rows * columns).keys()].map((p) => `${Math.floor(p / columns)},${p % columns}`);
}

/**
 * The softmax of the early readout after each layer from which the answer is read; the last is the model's.
 * @param {Description} description
 * @param {Net} net
 * @param {Looked} looked
 * @returns {Scene["guesses"]}
 */
export function describeGuesses({ temperature }, net, { taps }) {
  return guessTaps(net).map((path) => {
    const stream = /** @type {Numbers} */ (taps.seen.get(path));
    return { path, values: softmaxRows(net.early(stream, taps.unseen()), temperature) };
  });
}

/** The stream after each layer of the stack that is read. @param {Net} net */
export function guessTaps(net) {
  const stack = net.decodes ? "decoder." : "encoder.";
  const read = net.blocks.filter(({ path }) => path.startsWith(stack));
  return read.map((block) => `${block.feedResidual.path}.out`);
}

/** Attentions whose patterns are wanted. @param {Net} net @param {boolean | string[]} wanted */
export function patternSites(net, wanted) {
  const every = net.blocks.flatMap((block) => block.attentions).filter(({ heads }) => heads > 0);
  const paths = every.map(({ path }) => path);
  if (typeof wanted === "boolean") return wanted ? paths : [];
  const unknown = wanted.find((path) => !paths.includes(path));
  if (unknown !== undefined) throw new Error(`there is no site '${unknown}'`);
  return wanted;
}

/** Where hidden values are seen. @param {Net} net @param {string} path */
export function feedTap(net, path) {
  if (net.blocks.some(({ feed }) => feed.path === path)) return `${path}.hidden`;
  throw new Error(`there is no feed-forward part '${path}'`);
}
