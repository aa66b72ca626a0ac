// @ts-check
/**
 * Which parts of an input an answer is attributed to, by occlusion: one part at a time is taken away, and a
 * part's score is the evidence log p / (1 - p) for the answer that goes with it. What takes its place:
 *
 *     of a picture of ink    paper
 *     of anything else       what other examples have at the same place, the mean over several of them
 */

import { evidence, mean, result, signed } from "./asked.js";
import { map, overPixels } from "./figures.js";

/** @import {Edit} from "../types.js" */
/** @import {Analysis, Asked, Given} from "./asked.js" */

const OTHERS = 8;

/**
 * @param {Asked} asked
 * @param {Given} given
 * @param {Edit[]} edits
 * @param {Given[]} others examples to take parts from
 * @returns {Analysis}
 */
export function* explainOne(asked, given, edits, others) {
  const said = asked.answer(given, edits);
  const whole = evidence(asked.logits(given, said, edits), said);
  const parts = partsOf(asked, given);
  /** @type {number[][]} */
  const scores = [];
  for (const [at, part] of parts.entries()) {
    const tried = part.without(others).map((each) => evidence(asked.logits(each, said, edits), said));
    scores.push(whole.map((before, place) => before - mean(tried.map((after) => after[place]))));
    yield [at + 1, parts.length];
  }
  const text = asked.look(given, edits).answer.text;
  const places = asked.places(said.length);
  const rows = parts.map(({ label }, at) => [label, ...scores[at].map((score) => signed(score, 2))]);
  const what = given.pixels ? "patch" : "token";
  const columns = [what, ...places.map((place, at) => (said.length > 1 ? `${place}: ${asked.label(said[at])}` : "evidence"))];
  const place = given.pixels && asked.ink ? "paper" : "what other examples have there";
  return result(
    "Why this answer",
    [{ title: `${given.name} → ${text}: evidence lost without each ${what}`, columns, rows }],
    [
      `Occlusion: each ${what} is replaced by ${place}. Above 0 it speaks for the answer.`,
      "Evidence is log p / (1 - p) of what the model said, in nats.",
    ],
    [figureOf(asked, given, `Evidence lost without each ${what}`, columns.slice(1), scores)],
  );
}

/** Tokens as columns; patches over their picture. @param {Asked} asked @param {Given} given @param {string} title @param {string[]} names @param {number[][]} scores */
function figureOf({ patches }, given, title, names, scores) {
  if (given.pixels && patches) return overPixels(title, given.pixels, patches, names, scores);
  return map(title, names, given.labels, names.map((_, place) => scores.map((each) => each[place])));
}

/** @typedef {{label: string, without: (others: Given[]) => Given[]}} Part */

/** @param {Asked} asked @param {Given} given @returns {Part[]} */
function partsOf(asked, given) {
  if (given.tokens) return given.tokens.map((_, at) => tokenOf(given, at));
  const { rows, columns } = asked.patches ?? { rows: 1, columns: 1 };
  const places = Array.from({ length: rows * columns }, (_, at) => [Math.floor(at / columns), at % columns]);
  return places.map(([row, column]) => patchOf(given, row, column, { rows, columns }, asked.ink));
}

/** @param {Given} given @param {number} at @returns {Part} */
function tokenOf(given, at) {
  const own = given.tokens ?? [];
  return {
    label: `${given.labels[at]} (at ${at + 1})`,
    without(others) {
      const known = others.flatMap(({ tokens }) => (tokens && tokens.length > at ? [tokens[at]] : []));
      const taken = known.filter((token) => token !== own[at]).slice(0, OTHERS);
      return (taken.length ? taken : [own[at]]).map((token) => {
        return { ...given, tokens: own.map((each, place) => (place === at ? token : each)) };
      });
    },
  };
}

/**
 * @param {Given} given
 * @param {number} row
 * @param {number} column
 * @param {{rows: number, columns: number}} grid
 * @param {boolean} ink
 * @returns {Part}
 */
function patchOf(given, row, column, grid, ink) {
  return {
    label: `${row},${column}`,
    without(others) {
      if (ink) return [covered(given, row, column, grid, null)];
      return others.slice(0, OTHERS).map((other) => covered(given, row, column, grid, other));
    },
  };
}

/**
 * The image with one patch taken from another one, or empty.
 * @param {Given} given
 * @param {number} row
 * @param {number} column
 * @param {{rows: number, columns: number}} grid
 * @param {Given | null} other
 * @returns {Given}
 */
function covered(given, row, column, grid, other) {
  if (!given.pixels) return given;
  const { shape, data } = given.pixels;
  const [channels, height, width] = shape;
  const [tall, wide] = [height / grid.rows, width / grid.columns];
  const copy = Uint8Array.from(data);
  for (let channel = 0; channel < channels; channel++) {
    for (let y = row * tall; y < (row + 1) * tall; y++) {
      for (let x = column * wide; x < (column + 1) * wide; x++) {
        const at = (channel * height + y) * width + x;
        copy[at] = other?.pixels?.data[at] ?? 0;
      }
    }
  }
  return { ...given, pixels: { shape, data: copy } };
}
