// @ts-check
/**
 * A heat map with labels: pointed at or walked over with arrow keys it shows the number of a cell; painted on,
 * it says which cells of a row were touched.
 */

import { gradient } from "../colours.js";
import { at, drawMatrix } from "../draw.js";
import { each, h, setAttribute, setText } from "../html.js";

/** @import {Scale} from "../colours.js" */
/** @import {Matrix} from "../draw.js" */
/** @typedef {{row: number, column: number}} Cell */
/**
 * @typedef {object} Shown
 * @property {Matrix} matrix
 * @property {Scale} scale
 * @property {string[]} rows  labels
 * @property {string[]} columns
 * @property {string} label  of the whole
 * @property {number} until  how many rows are there yet
 * @property {(row: number) => boolean} rowHovered
 * @property {(column: number) => boolean} columnHovered
 * @property {boolean} painting
 */
/**
 * @typedef {object} Hooks
 * @property {(cell: Cell | null) => void} onPoint
 * @property {(axis: "row" | "column", index: number | null) => void} [onLabel]  a label is pointed at
 * @property {(row: number, columns: number[], gesture: number) => void} [onPaint]
 * @property {(cell: Cell, value: number) => string} words  of a cell
 */

/** Most labels that can be read beside each other. */
const MOST_LABELS = 36;
/** Most columns whose labels of two letters stand upright. */
const MOST_WIDE = 16;
let gestures = 0;

/** @param {Hooks} hooks */
export function createMatrix(hooks) {
  const canvas = h("canvas", { width: 1, height: 1, "aria-hidden": "true" });
  const row = h("div", { class: "row-mark", hidden: true });
  const column = h("div", { class: "column-mark", hidden: true });
  const mark = h("div", { class: "cell-mark", hidden: true });
  const box = h("div", {
    class: "map", tabindex: 0, role: "application", "aria-roledescription": "heat map", onkeydown: onKey,
    onpointermove: onMove, onpointerdown: onDown, onpointerup: endStroke, onpointercancel: endStroke,
    onpointerleave: () => { if (!stroke) point(null); }, onfocus: () => point(cell ?? { row: 0, column: 0 }), onblur: () => point(null),
  }, canvas, row, column, mark);
  const top = h("div", { class: "column-labels", "aria-hidden": "true", onpointerover: (/** @type {PointerEvent} */ event) => onLabel("column", event.target), onpointerleave: () => onLabel("column", null) });
  const side = h("div", { class: "row-labels", "aria-hidden": "true", onpointerover: (/** @type {PointerEvent} */ event) => onLabel("row", event.target), onpointerleave: () => onLabel("row", null) });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const low = h("span", { class: "number" });
  const high = h("span", { class: "number" });
  const ramp = h("span", { class: "ramp" });
  const element = h("div", { class: "matrix" },
    h("div", { class: "matrix-scroll" }, h("div", { class: "matrix-grid" }, top, side, box)),
    h("div", { class: "below" }, readout, h("div", { class: "legend", "aria-hidden": "true" }, low, ramp, high)));
  /** @type {Shown | null} */
  let shown = null;
  /** @type {Cell | null} */
  let cell = null;
  /** @type {{row: number, columns: Set<number>, gesture: number} | null} */
  let stroke = null;
  /** @type {unknown[]} */
  let drawn = [];

  /** @param {PointerEvent} event @returns {Cell | null} */
  function under(event) {
    if (!shown) return null;
    const { left, top: above, width, height } = box.getBoundingClientRect();
    const { rows, columns } = shown.matrix;
    const found = { row: Math.floor(((event.clientY - above) / height) * rows), column: Math.floor(((event.clientX - left) / width) * columns) };
    return found.row >= 0 && found.row < rows && found.column >= 0 && found.column < columns ? found : null;
  }

  /** @param {"row" | "column"} axis @param {EventTarget | null} label */
  function onLabel(axis, label) {
    const index = label === null ? -1 : Array.prototype.indexOf.call((axis === "row" ? side : top).children, label);
    hooks.onLabel?.(axis, index < 0 ? null : index);
  }

  /** @param {Cell | null} next */
  function point(next) {
    if (next?.row === cell?.row && next?.column === cell?.column) return;
    cell = next;
    hooks.onPoint(next);
    showCell();
  }

  function showCell() {
    const inside = cell && shown && cell.row < shown.matrix.rows && cell.column < shown.matrix.columns ? cell : null;
    mark.hidden = !inside;
    setText(readout, inside && shown ? hooks.words(inside, at(shown.matrix, inside.row, inside.column)) : "");
    if (inside && shown) place(mark, inside.row, inside.column, shown.matrix);
  }

  /** @param {PointerEvent} event */
  function onMove(event) {
    const next = under(event);
    if (stroke) extend(next);
    else point(next);
  }

  /** @param {PointerEvent} event */
  function onDown(event) {
    const next = under(event);
    point(next);
    if (!shown?.painting || !hooks.onPaint || !next || event.button !== 0) return;
    event.preventDefault();
    box.setPointerCapture(event.pointerId);
    gestures += 1;
    stroke = { row: next.row, columns: new Set(), gesture: gestures };
    extend(next);
  }

  /** @param {Cell | null} next */
  function extend(next) {
    if (!stroke || !next || stroke.columns.has(next.column)) return;
    stroke.columns.add(next.column);
    point({ row: stroke.row, column: next.column });
    hooks.onPaint?.(stroke.row, [...stroke.columns], stroke.gesture);
  }

  function endStroke() {
    stroke = null;
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (!shown || event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, columns } = shown.matrix;
    const from = cell ?? { row: 0, column: 0 };
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (down || right) point({ row: clamp(from.row + down, rows), column: clamp(from.column + right, columns) });
    else if (event.key === " " && shown.painting && hooks.onPaint) hooks.onPaint(from.row, [from.column], (gestures += 1));
    else return;
    event.preventDefault();
  }

  /** @param {Shown} next */
  function render(next) {
    const old = shown;
    shown = next;
    const { matrix, scale, until } = next;
    const now = [matrix.data, matrix.offset, matrix.columns, scale.high, scale.low, until];
    if (now.some((each, index) => each !== drawn[index])) {
      drawn = now;
      drawMatrix(canvas, matrix, scale, until);
      layOut(matrix);
      setText(low, short(scale.low));
      setText(high, short(scale.high));
      ramp.style.background = gradient(scale);
      showCell();
    }
    setAttribute(box, "aria-label", next.label);
    box.classList.toggle("painting", next.painting);
    if (old?.rows !== next.rows || old.columns !== next.columns) relabel(next);
    let [hoveredRow, hoveredColumn] = [-1, -1];
    next.rows.forEach((_, index) => { if (next.rowHovered(index)) hoveredRow = index; });
    next.columns.forEach((_, index) => { if (next.columnHovered(index)) hoveredColumn = index; });
    light(side, row, hoveredRow, matrix.rows, "Y");
    light(top, column, hoveredColumn, matrix.columns, "X");
  }

  /** @param {Matrix} matrix */
  function layOut({ rows, columns }) {
    element.style.setProperty("--rows", String(rows));
    element.style.setProperty("--columns", String(columns));
    element.classList.toggle("fine", Math.max(rows, columns) > MOST_LABELS);
  }

  /** @param {Shown} next */
  function relabel({ rows, columns }) {
    label(side, rows);
    label(top, columns);
  }

  /** @param {HTMLElement} where @param {string[]} names */
  function label(where, names) {
    where.hidden = names.length > MOST_LABELS;
    each(where, names.length > MOST_LABELS ? [] : names, () => h("span"), (span, name) => {
      setText(span, name);
      span.classList.toggle("long", name.length > (names.length > MOST_WIDE ? 1 : 2));
    });
  }

  return { element, render, cell: () => cell };
}

/** @param {HTMLElement} labels @param {HTMLElement} bar @param {number} index @param {number} count @param {"X" | "Y"} axis */
function light(labels, bar, index, count, axis) {
  bar.hidden = index < 0 || index >= count;
  if (!bar.hidden) bar.style.transform = `translate${axis}(${100 * index}%)`;
  const old = labels.querySelector(".hovered");
  const now = index < 0 ? null : labels.children[index];
  if (old === now) return;
  old?.classList.remove("hovered");
  now?.classList.add("hovered");
}

/** @param {HTMLElement} mark @param {number} row @param {number} column @param {Matrix} matrix */
function place(mark, row, column, { rows, columns }) {
  mark.style.left = `${(100 * column) / columns}%`;
  mark.style.top = `${(100 * row) / rows}%`;
  mark.style.width = `${100 / columns}%`;
  mark.style.height = `${100 / rows}%`;
}

/** @param {number} value @param {number} count */
function clamp(value, count) {
  return Math.max(0, Math.min(count - 1, value));
}

/** @param {number} value */
export function short(value) {
  return Number.isInteger(value) ? String(value) : value.toPrecision(2);
}

/**
 * Numbers as a table, made when it is shown. @param {string} caption @param {string[]} rows @param {string[]} columns
 * @param {(row: number, column: number) => string} text
 */
export function numberTable(caption, rows, columns, text) {
  return h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", null,
    h("caption", null, caption),
    h("thead", null, h("tr", null, h("td"), columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, rows.map((name, row) => h("tr", null, h("th", { scope: "row" }, name),
      columns.map((_, column) => h("td", null, text(row, column))))))));
}
