// @ts-check
/** What the model would answer after every layer: the readout applied to the residual stream early. */

import { colourOf, inkOn, weightScale } from "../colours.js";
import { each, h, setText } from "../html.js";
import { hoveredToken, percent } from "./answer.js";
import { shownScene } from "./patterns.js";
import { createShowing } from "./showing.js";

/** @import {App, Guess, Model, Scene, View} from "../types.js" */

/** A single answer is shown with all of its classes if there are at most so many. */
const MOST_CLASSES = 16;
const SCALE = weightScale(1);
/** @typedef {{columns: string[], rows: string[], cells: {text: string, sign: string, probability: number, words: string}[][]}} Grid */

/** The classes by probability at one token. @param {Guess} guess @param {number} token @param {string[]} labels @returns {[string, number][]} */
export function ranked({ values }, token, labels) {
  const classes = values.shape[1];
  const row = Array.from(values.data.subarray(token * classes, (token + 1) * classes));
  return row.map((probability, index) => /** @type {[string, number]} */ ([labels[index] ?? String(index), probability])).sort((a, b) => b[1] - a[1]);
}

/** What is shown: layers by tokens, or layers by classes where the answer is one of few. @param {Model} model @param {Scene} scene @returns {Grid} */
export function gridOf({ subject }, scene) {
  const { task, model } = subject;
  const rows = scene.guesses.map(({ path }) => model.streams.find((stream) => stream.path === path)?.name ?? path);
  const tokens = scene.guesses[0]?.values.shape[0] ?? 0;
  if (tokens === 1 && task.labels.length <= MOST_CLASSES) return { rows, columns: task.labels, cells: scene.guesses.map((guess) => byClass(guess, task.labels)) };
  const columns = scene.answer.tokens.map(({ place }, index) => place || String(index + 1));
  const cells = scene.guesses.map((guess) => columns.map((column, token) => {
    const [best, ...others] = ranked(guess, token, task.labels);
    const words = [best, ...others.slice(0, 4)].map(([label, p]) => `${label} (${percent(p)})`).join(", ");
    return { sign: best[0], text: percent(best[1]), probability: best[1], words: `${column}: ${words}` };
  }));
  return { rows, columns, cells };
}

/** @param {Guess} guess @param {string[]} labels */
function byClass({ values }, labels) {
  return labels.map((label, index) => {
    const probability = Number(values.data[index]);
    return { sign: "", text: percent(probability), probability, words: `${label}: ${percent(probability)}` };
  });
}

/** @param {App} app @returns {View} */
export function create(app) {
  const head = h("tr");
  const body = h("tbody");
  const table = h("table", { class: "guesses", onkeydown: onKey }, h("caption", { class: "unseen" }, "The likeliest answer after each layer"), h("thead", null, head), body);
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const empty = h("p", { class: "hint" }, "…");
  const show = createShowing(app, { difference: false });
  const element = h("section", { class: "panel", "aria-label": "Guesses after each layer" },
    h("p", { class: "hint" }, "The readout looks at the residual stream after every layer: what would the model answer if it stopped there? The last row is its answer."), show.element,
    h("div", { class: "table-scroll" }, table), readout, empty);
  /** @type {Grid | null} */
  let grid = null;
  /** @type {Scene | null} */
  let drawn = null;

  /** @param {number} row @param {number} column */
  function point(row, column) {
    const cell = grid?.cells[row]?.[column];
    if (!grid || !cell) return;
    setText(readout, `${grid.rows[row]}, ${cell.words}`);
    const tokens = drawn?.answer.tokens.length ?? 1;
    if (tokens > 1) app.hover({ side: "answer", index: column });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const from = event.target instanceof HTMLTableCellElement ? event.target : null;
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!from || (!down && !right)) return;
    const row = body.rows[/** @type {HTMLTableRowElement} */ (from.parentElement).sectionRowIndex + down];
    const next = row?.cells[from.cellIndex + right];
    event.preventDefault();
    if (!next || next.tabIndex < -1 || next.tagName !== "TD") return;
    from.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /** @param {Model} model */
  function render(model) {
    show.render(model);
    const scene = shownScene(model);
    const there = scene !== null && scene.guesses.length > 0;
    empty.hidden = there || !model.busy;
    table.hidden = !there;
    if (!there) return;
    if (drawn !== scene) draw(model, scene);
    light(hoveredToken(model), model.state.step);
  }

  /** @param {Model} model @param {Scene} scene */
  function draw(model, scene) {
    drawn = scene;
    grid = gridOf(model, scene);
    const { rows, columns, cells } = grid;
    if (!head.firstChild) head.append(h("td"));
    each(head, ["", ...columns], (_, index) => (index ? h("th", { scope: "col" }) : h("td")), (cell, name) => setText(cell, name));
    each(body, rows, () => h("tr"), (row, name, at) => {
      each(row, [name, ...columns], (_, index) => (index ? makeCell(at, index - 1) : h("th", { scope: "row" })), (cell, text, index) => {
        if (index) fillCell(/** @type {HTMLElement} */ (cell), cells[at][index - 1]);
        else setText(cell, text);
      });
    });
  }

  /** @param {number} row @param {number} column */
  function makeCell(row, column) {
    return h("td", {
      tabindex: row || column ? -1 : 0, onpointerenter: () => point(row, column), onfocus: () => point(row, column),
      onpointerleave: () => app.hover(null), onblur: () => app.hover(null),
    }, h("span", { class: "sign" }), h("span", { class: "number" }));
  }

  /** @param {number | null} hover @param {number | null} step */
  function light(hover, step) {
    const byToken = (drawn?.answer.tokens.length ?? 1) > 1;
    for (const row of body.rows) for (const cell of row.cells) {
      if (!cell.cellIndex) continue;
      cell.classList.toggle("hovered", byToken && hover === cell.cellIndex - 1);
      cell.classList.toggle("later", byToken && step !== null && cell.cellIndex > step);
    }
  }
  return { element, render };
}

/** @param {HTMLElement} cell @param {{sign: string, text: string, probability: number}} content */
function fillCell(cell, { sign, text, probability }) {
  const [name, number] = cell.children;
  setText(name, sign);
  setText(number, text);
  cell.style.background = colourOf(SCALE, probability);
  cell.style.color = inkOn(SCALE, probability);
}
