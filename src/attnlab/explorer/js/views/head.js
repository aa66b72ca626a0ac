// @ts-check
/** One head large: as a map with labels or over the picture, with the tools that edit it. */

import { at, rowOf } from "../draw.js";
import { coverOf, indexOf, parentOf, siteOf, siteWords } from "../edits.js";
import { fill, h, newId, setAttribute, setText } from "../html.js";
import { evenRow, seenKeys, withRow, withWeight, withoutRow } from "../painting.js";
import { createMatrix, numberTable } from "./matrix.js";
import { createOverPicture, overPicture } from "./over_picture.js";
import { toggleAction } from "./overview.js";
import { isHovered, labelsSaid, patternOf, rowsSaid, shownPattern, shownScene } from "./patterns.js";

/** @import {App, Model, Site} from "../types.js" */
/** @import {Matrix} from "../draw.js" */
/** @import {Cell} from "./matrix.js" */

/** Weights that a table shows; of more it shows the largest ones of each query. */
const MOST_CELLS = 10_000;
const LARGEST = ["largest", "second", "third"];

/** The slider of the scores: its middle is 1, its ends are 0 and 10. */
const SLIDER = 100;

/** @param {number} place 0 to 100 */
export function factorAt(place) {
  const x = place / (SLIDER / 2);
  return Number((x <= 1 ? x : 10 ** (x - 1)).toPrecision(2));
}

/** @param {number} factor */
export function placeOf(factor) {
  return (SLIDER / 2) * (factor <= 1 ? factor : Math.min(2, 1 + Math.log10(factor)));
}

/** @param {App} app */
export function createHead(app) {
  const id = newId("head");
  const title = h("h2", { id });
  const words = h("span", { class: "hint" });
  const status = h("p", { class: "badge", hidden: true });
  const tools = createTools(app, () => head, () => app.model() && render(/** @type {Model} */ (app.model()), head));
  const matrix = createMatrix({ onPoint, onLabel, onPaint: paint, words: cellWords });
  const picture = createOverPicture(app);
  const weight = createWeight(app, () => head, () => pinned);
  const table = h("div");
  const element = h("section", { class: "panel head", "aria-labelledby": id, dataset: { name: "head" } },
    h("div", { class: "panel-head" }, h("div", null, title, words), status), tools.element, weight.element, matrix.element, picture.element, table);
  let head = "";
  /** @type {Cell | null} the cell pointed at last, to be given a weight */
  let pinned = null;
  /** @type {unknown[]} */
  let tabled = [];

  function site() {
    const model = app.model();
    return model && siteOf(model.subject, head);
  }

  /** @param {Cell | null} cell */
  function onPoint(cell) {
    if (cell) pinned = cell;
    const own = site();
    app.hover(cell && own ? { side: own.queries, index: cell.row } : null);
    if (cell && tools.painting()) weight.show(cell);
  }

  /** @param {"row" | "column"} axis @param {number | null} index */
  function onLabel(axis, index) {
    const own = site();
    app.hover(index === null || !own ? null : { side: axis === "row" ? own.queries : own.keys, index });
  }

  /** @param {Cell} cell @param {number} value */
  function cellWords({ row, column }, value) {
    const model = app.model();
    const own = site();
    const scene = model && shownScene(model);
    if (!own || !scene) return "";
    if (row >= rowsSaid(model, own, Infinity)) return "";
    const [query, key] = [scene.labels[own.queries][row] ?? row, scene.labels[own.keys][column] ?? column];
    const change = model?.edited && model.state.show === "change";
    return change ? `${query} → ${key}: ${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(3)}` : `${query} looks at ${key} with ${value.toFixed(3)}`;
  }

  /** @param {number} row @param {number[]} columns @param {number} gesture */
  function paint(row, columns, gesture) {
    const model = app.model();
    const own = site();
    const keys = model && patternOf(model.edited ?? model.clean, head)?.columns;
    if (!model || !own || !keys) return;
    const seen = columns.filter((column) => column < seenKeys(own, row, keys));
    if (seen.length) app.dispatch({ type: "edit", edit: withRow(model.state.edits, head, row, evenRow(keys, seen)), gesture });
    else app.tell("A token of the answer cannot look at what comes later.");
  }

  /** @param {Model} model @param {string} chosen */
  function render(model, chosen) {
    if (head !== chosen) pinned = null;
    head = chosen;
    const own = siteOf(model.subject, chosen);
    const shown = shownPattern(model, chosen);
    const scene = shownScene(model);
    setText(title, chosen);
    setText(words, own ? siteWords(own) : "");
    showStatus(model, chosen);
    element.classList.toggle("pending", !shown);
    const onPicture = own && scene ? overPicture(model.subject, scene, own) : null;
    tools.render(model, chosen, onPicture !== null);
    const asPicture = onPicture !== null && !tools.asMap();
    matrix.element.hidden = asPicture || !shown;
    picture.element.hidden = !asPicture || !shown;
    weight.element.hidden = !tools.painting() || asPicture;
    if (!own || !scene || !shown) return;
    const until = rowsSaid(model, own, shown.matrix.rows);
    const [queries, keys] = [own.queries, own.keys].map((side) => labelsSaid(model, side, scene.labels[side]));
    if (asPicture) picture.render(model, { ...shown, site: own, scene, queries, until });
    else matrix.render({
      ...shown, until, painting: tools.painting(), label: `${chosen}: ${siteWords(own)}. Arrow keys move.`,
      rows: queries, columns: keys,
      rowHovered: (row) => isHovered(model, own.queries, row), columnHovered: (column) => isHovered(model, own.keys, column),
    });
    if (pinned && tools.painting()) weight.show(pinned);
    showTable(shown.matrix, until, queries, keys);
  }

  /** @param {Model} model @param {string} chosen */
  function showStatus({ subject, state }, chosen) {
    const cover = coverOf(subject, state.edits, chosen);
    status.hidden = !cover;
    const by = cover && cover.at !== chosen ? ` with ${cover.at}` : "";
    setText(status, cover ? (cover.op === "off" ? `off${by}` : `from B${by}`) : "");
  }

  /** @param {Matrix} numbers @param {number} until @param {string[]} rows @param {string[]} columns */
  function showTable(numbers, until, rows, columns) {
    if (!tools.tabled()) {
      fill(table);
      tabled = [];
      return;
    }
    const now = [numbers.data, numbers.offset, until];
    if (now.every((each, index) => each === tabled[index])) return;
    tabled = now;
    fill(table, rows.length * columns.length > MOST_CELLS ? largestTable(numbers, until, rows, columns)
      : numberTable(`Weights of ${head}: rows are queries, columns keys`, rows, columns, (row, column) => (row < until ? at(numbers, row, column).toFixed(3) : "")));
  }

  /** @param {Matrix} numbers @param {number} until @param {string[]} rows @param {string[]} columns */
  function largestTable(numbers, until, rows, columns) {
    const ranked = rows.map((_, row) => (row < until ? largestOf(rowOf(numbers, row), LARGEST.length) : []));
    return numberTable(`The largest weights of each query of ${head}, with the numbers of queries and keys`, rows.map((name, row) => `${row} ${name}`), LARGEST, (row, rank) => {
      const key = ranked[row][rank];
      return key === undefined ? "" : `${at(numbers, row, key).toFixed(3)} at ${key} ${columns[key]}`;
    });
  }

  return { element, render };
}

/** The numbers of the keys with the largest weights. @param {number[]} row @param {number} count */
export function largestOf(row, count) {
  return row.map((_, key) => key).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
}

/**
 * The tools above a head. How it is shown is of no matter to anybody else, so it stays here.
 * @param {App} app @param {() => string} head @param {() => void} again
 */
function createTools(app, head, again) {
  const off = h("button", { type: "button", onclick: () => withModel(app, (model) => app.dispatch(toggleAction(model, head()))) });
  const swap = h("button", { type: "button", onclick: () => app.dispatch({ type: "edit", edit: { op: "swap", at: head() } }) }, "Take from B");
  const flip = (/** @type {HTMLButtonElement} */ button) => { setAttribute(button, "aria-pressed", String(!pressed(button))); again(); };
  const paint = h("button", { type: "button", "aria-pressed": "false", onclick: () => flip(paint) }, "Paint");
  const map = h("button", { type: "button", "aria-pressed": "false", onclick: () => flip(map) }, "As a map");
  const numbers = h("button", { type: "button", "aria-pressed": "false", onclick: () => flip(numbers) }, "Numbers");
  const factor = h("output", { class: "number" });
  let gesture = 0;
  const slider = h("input", {
    type: "range", min: 0, max: SLIDER, step: 1,
    onpointerdown: () => { gesture = Date.now(); }, onkeydown: () => { gesture = Date.now(); },
    oninput: () => app.dispatch({ type: "edit", edit: { op: "scale", at: head(), by: factorAt(Number(slider.value)) }, gesture }),
  });
  const scale = h("label", { class: "slider" }, "Scores × ", slider, factor);
  const element = h("div", { class: "tools" }, off, swap, paint, map, numbers, scale);

  /** @param {Model} model @param {string} chosen @param {boolean} hasPicture */
  function render({ subject, state }, chosen, hasPicture) {
    const isOff = state.edits.some((edit) => edit.op === "off" && edit.at === chosen);
    const isSwapped = state.edits.some((edit) => edit.op === "swap" && edit.at === chosen);
    const edit = state.edits.find((each) => each.op === "scale" && each.at === chosen);
    const by = edit?.op === "scale" ? edit.by : 1;
    setText(off, isOff ? "Switch on" : "Switch off");
    setAttribute(off, "aria-pressed", String(isOff));
    setAttribute(swap, "aria-pressed", String(isSwapped));
    swap.hidden = state.other === null;
    map.hidden = !hasPicture;
    paint.hidden = hasPicture && !pressed(map);
    setText(factor, by.toFixed(by < 1 ? 2 : 1));
    if (document.activeElement !== slider || factorAt(Number(slider.value)) !== by) slider.value = String(placeOf(by));
    setAttribute(slider, "aria-valuetext", `scores times ${by}`);
    for (const each of [off, scale]) each.hidden = !subject.baselines.length;
  }

  return { element, render, painting: () => pressed(paint) && !paint.hidden, asMap: () => pressed(map), tabled: () => pressed(numbers) };
}

/** @param {Element} button */
function pressed(button) {
  return button.getAttribute("aria-pressed") === "true";
}

/** @param {App} app @param {(model: Model) => void} act */
function withModel(app, act) {
  const model = app.model();
  if (model) act(model);
}

/** The weight of one cell as a number, and the way back of its row. @param {App} app @param {() => string} head @param {() => Cell | null} cell */
function createWeight(app, head, cell) {
  const name = h("span");
  const field = h("input", { type: "number", min: 0, max: 1, step: 0.05, class: "weight", onchange: give });
  const reset = h("button", { type: "button", class: "quiet", onclick: restore }, "Row as it was");
  const element = h("div", { class: "by-hand", hidden: true },
    h("p", { class: "hint" }, "Drag along a row: its query then looks at what you touch, and at nothing else."),
    h("label", null, name, " ", field), reset);

  /** @param {(model: Model, row: number[], cell: Cell) => void} act */
  function onRow(act) {
    const model = app.model();
    const where = cell();
    const shown = model && patternOf(model.edited ?? model.clean, head());
    if (model && where && shown && where.row < shown.rows) act(model, rowOf(shown, where.row), where);
  }

  function give() {
    onRow((model, row, { row: query, column }) => {
      const site = siteOf(model.subject, head());
      if (site && column < seenKeys(site, query, row.length))
        app.dispatch({ type: "edit", edit: withRow(model.state.edits, head(), query, withWeight(row, column, Number(field.value))) });
    });
  }

  function restore() {
    onRow((model, _, { row }) => app.dispatch({ type: "edit", edit: withoutRow(model.state.edits, head(), row) }));
  }

  /** @param {Cell} where */
  function show({ row, column }) {
    onRow((model, weights) => {
      const site = siteOf(model.subject, parentOf(head()));
      const labels = (model.edited ?? model.clean)?.labels;
      if (!site || !labels) return;
      setText(name, `Row ${row} (${labels[site.queries][row] ?? indexOf(head())}), key ${labels[site.keys][column] ?? column}:`);
      if (document.activeElement !== field) field.value = weights[column].toFixed(3);
    });
  }

  return { element, show };
}
