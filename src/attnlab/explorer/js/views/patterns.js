// @ts-check
/** Which numbers a head's picture shows: as it is, edited, or the change; and on which scale. */

import { changeScale, weightScale } from "../colours.js";
import { headOf, largest, minus } from "../draw.js";
import { indexOf, parentOf } from "../edits.js";

/** @import {Scale} from "../colours.js" */
/** @import {Matrix} from "../draw.js" */
/** @import {Model, Scene, Side, Site} from "../types.js" */

/** With more keys than this a scale up to 1 would show nothing. */
const MANY_KEYS = 16;

/** The scene whose patterns are shown. @param {Model} model */
export function shownScene({ clean, edited, state }) {
  return edited && state.show !== "clean" ? edited : clean;
}

/** @param {Scene | null} scene @param {string} head @returns {Matrix | null} */
export function patternOf(scene, head) {
  const values = scene?.patterns[parentOf(head)];
  return values ? headOf(values, indexOf(head)) : null;
}

/** @param {Model} model @param {string} head @returns {{matrix: Matrix, scale: Scale} | null} */
export function shownPattern(model, head) {
  const matrix = patternOf(shownScene(model), head);
  if (!matrix) return null;
  const before = model.edited && model.state.show === "change" ? patternOf(model.clean, head) : null;
  if (before && before.rows === matrix.rows && before.columns === matrix.columns) {
    const change = minus(matrix, before);
    return { matrix: change, scale: changeScale(largest(change)) };
  }
  return { matrix, scale: scaleOf(matrix) };
}

/** @param {Matrix} matrix */
export function scaleOf(matrix) {
  return weightScale(matrix.columns > MANY_KEYS ? largest(matrix) : 1);
}

/** How many rows are there yet: queries of an answer come one by one. @param {Model} model @param {Site} site @param {number} rows */
export function rowsSaid({ state }, site, rows) {
  return site.queries === "answer" && state.step !== null ? Math.min(state.step, rows) : rows;
}

/** What stands for a token that is not said yet. */
const UNSAID = "·";

/** Labels of a side while the answer forms: the decoder is fed what was said before. @param {Model} model @param {Side} side @param {string[]} labels */
export function labelsSaid({ state }, side, labels) {
  const { step } = state;
  return side !== "answer" || step === null ? labels : labels.map((label, index) => (index > step ? UNSAID : label));
}

/** Whether a token is the one pointed at: places of the answer stand for its tokens. @param {Model} model @param {Side} side @param {number} index */
export function isHovered({ hover }, side, index) {
  return hover !== null && hover.index === index && (hover.side === "input") === (side === "input");
}
