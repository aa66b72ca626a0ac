// @ts-check
/** What has been drawn into the cells of a picture: strokes, and under them the picture as it was. */

import { SIDE } from "./ink.js";
import { paste } from "./paper.js";
import { digit, extended } from "./strokes.js";

/** @import {ImageForm, Values} from "../types.js" */
/** @import {Point, Stroke} from "./strokes.js" */

/**
 * Strokes in the order in which they were drawn. A cell with strokes shows them alone. `cleared` is what was
 * there before all was wiped away.
 * @typedef {{base: Values | null, strokes: {cell: number, stroke: Stroke}[], cleared: Drawing | null}} Drawing
 */

/** @type {(base: Values | null) => Drawing} */
export function emptyDrawing(base) {
  return { base, strokes: [], cleared: null };
}

/** Nothing but paper. @type {(drawing: Drawing) => Drawing} */
export function wiped(drawing) {
  return { base: null, strokes: [], cleared: drawing };
}

/** @type {(drawing: Drawing, cell: number, point: Point) => Drawing} */
export function begun(drawing, cell, point) {
  return { ...drawing, strokes: [...drawing.strokes, { cell, stroke: [point] }] };
}

/** @type {(drawing: Drawing, point: Point) => Drawing} */
export function continued(drawing, point) {
  const last = drawing.strokes.at(-1);
  if (!last) return drawing;
  return { ...drawing, strokes: [...drawing.strokes.slice(0, -1), { ...last, stroke: extended(last.stroke, point) }] };
}

/** Without the last stroke; where there is none, what was wiped away. @type {(drawing: Drawing) => Drawing} */
export function undone(drawing) {
  if (drawing.strokes.length) return { ...drawing, strokes: drawing.strokes.slice(0, -1) };
  return drawing.cleared ?? drawing;
}

/** Whether there is anything to undo. @type {(drawing: Drawing) => boolean} */
export function undoable({ strokes, cleared }) {
  return strokes.length > 0 || cleared !== null;
}

/** @type {(drawing: Drawing, cell: number) => Stroke[]} */
export function strokesIn({ strokes }, cell) {
  return strokes.filter((each) => each.cell === cell).map(({ stroke }) => stroke);
}

/**
 * The picture that the model is given.
 * @type {(drawing: Drawing, form: ImageForm) => Values}
 */
export function rendered(drawing, form) {
  const data = new Uint8Array(form.height * form.width);
  if (drawing.base) data.set(drawing.base.data);
  for (let cell = 0; cell < form.rows * form.columns; cell++) {
    const drawn = digit(strokesIn(drawing, cell));
    if (drawn) paste(data, drawn, Math.floor(cell / form.columns), cell % form.columns, form.columns);
  }
  return { shape: [1, form.height, form.width], data };
}

/** Whether the cells are as large as MNIST's digits, so that strokes can be placed in them. @type {(form: ImageForm) => boolean} */
export function drawable({ ink, channels, height, width, rows, columns }) {
  return ink && channels === 1 && height === rows * SIDE && width === columns * SIDE;
}
