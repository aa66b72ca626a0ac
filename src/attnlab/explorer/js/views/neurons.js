// @ts-check
/** The neurons of a feed-forward part: which fire at which token, those with the largest values first. */

import { weightScale } from "../colours.js";
import { each, fill, h, setAttribute, setText } from "../html.js";
import { createMatrix, numberTable } from "./matrix.js";
import { isHovered, shownScene } from "./patterns.js";
import { createShowing } from "./showing.js";

/** @import {Matrix} from "../draw.js" */
/** @import {App, Model, Neurons, Scene, Side, View} from "../types.js" */
/** @typedef {{neuron: number, token: number, value: number}} Peak */

/** How many are drawn, and how many are named. */
export const DRAWN = 32;
const NAMED = 12;

/** The neurons by their largest value at any token. @param {Neurons} neurons @param {number} count @returns {Peak[]} */
export function peaks({ values: { shape, data } }, count) {
  const [tokens, size] = shape;
  const all = Array.from({ length: size }, (_, neuron) => {
    let token = 0;
    for (let other = 1; other < tokens; other += 1) if (data[other * size + neuron] > data[token * size + neuron]) token = other;
    return { neuron, token, value: data[token * size + neuron] };
  });
  return all.sort((a, b) => b.value - a.value || a.neuron - b.neuron).slice(0, count);
}

/** Tokens by chosen neurons. @param {Neurons} neurons @param {Peak[]} chosen @returns {Matrix} */
export function matrixOf({ values: { shape, data } }, chosen) {
  const [rows, size] = shape;
  const columns = chosen.length;
  const picked = Float32Array.from({ length: rows * columns }, (_, i) => data[Math.floor(i / columns) * size + chosen[i % columns].neuron]);
  return { data: picked, offset: 0, rows, columns };
}

/** The tokens at a feed-forward part: those of its stack. @param {Model} model @param {Scene} scene @param {string} path @returns {{side: Side, names: string[]}} */
export function tokensAt({ subject }, scene, path) {
  const layer = subject.model.layers.find(({ parts }) => parts.includes(path));
  const site = subject.model.sites.find((each) => layer?.parts.includes(each.path));
  const side = site?.queries ?? "input";
  const count = scene.neurons?.values.shape[0] ?? 0;
  return { side, names: Array.from({ length: count }, (_, index) => scene.labels[side][index] ?? String(index)) };
}

/** @param {App} app @returns {View} */
export function create(app) {
  const chooser = h("select", { onchange: () => app.dispatch({ type: "feed", feed: chooser.value }) });
  const matrix = createMatrix({
    onPoint: (cell) => app.hover(cell && { side, index: cell.row }), words,
    onLabel: (axis, index) => app.hover(axis === "row" && index !== null ? { side, index } : null),
  });
  const show = createShowing(app, { difference: false });
  const top = h("div");
  const more = h("button", { type: "button", "aria-pressed": "false", onclick: flip }, "Numbers");
  const table = h("div");
  const element = h("section", { class: "panel", "aria-label": "Neurons" },
    h("div", { class: "tools" }, h("label", null, "Feed-forward part ", chooser), more, show.element),
    h("p", { class: "hint" }, "Columns are neurons, those with the largest values first; rows are tokens. Values below 0 are drawn as 0."),
    matrix.element, top, table);
  /** @type {Side} */
  let side = "input";
  /** @type {Scene | null} */
  let drawn = null;
  /** @type {Peak[]} */
  let chosen = [];
  /** @type {string[]} */
  let names = [];
  /** @type {Matrix} */
  let numbers = { data: new Float32Array(), offset: 0, rows: 0, columns: 0 };

  /** @param {{row: number, column: number}} cell @param {number} value */
  function words({ row, column }, value) {
    return `neuron ${chosen[column]?.neuron} at ${names[row]}: ${value.toFixed(3)}`;
  }

  function flip() {
    setAttribute(more, "aria-pressed", String(more.getAttribute("aria-pressed") !== "true"));
    drawn = null;
    const model = app.model();
    if (model) render(model);
  }

  /** @param {Model} model */
  function render(model) {
    show.render(model);
    const { feeds } = model.subject.model;
    each(chooser, feeds, () => h("option"), (option, { path, hidden }) => {
      option.value = path;
      setText(option, `${path} (${hidden})`);
    });
    const feed = model.state.feed ?? feeds[0]?.path ?? "";
    if (chooser.value !== feed) chooser.value = feed;
    const scene = shownScene(model);
    matrix.element.hidden = !scene?.neurons;
    if (!scene?.neurons) return;
    if (drawn !== scene) draw(model, scene, scene.neurons);
    matrix.render({
      matrix: numbers, scale: weightScale(chosen[0]?.value ?? 1), rows: names, columns: chosen.map(({ neuron }) => String(neuron)),
      label: `Neurons of ${scene.neurons.path}. Arrow keys move.`, until: numbers.rows, painting: false,
      rowHovered: (row) => isHovered(model, side, row), columnHovered: () => false,
    });
  }

  /** @param {Model} model @param {Scene} scene @param {Neurons} neurons */
  function draw(model, scene, neurons) {
    drawn = scene;
    ({ side, names } = tokensAt(model, scene, neurons.path));
    chosen = peaks(neurons, DRAWN);
    numbers = matrixOf(neurons, chosen);
    const named = chosen.slice(0, NAMED);
    fill(top, h("h3", { class: "caption" }, "Strongest"), h("ol", { class: "named" }, named.map(({ neuron, token, value }) =>
      h("li", null, h("b", null, String(neuron)), ` at ${names[token]} `, h("span", { class: "number" }, value.toFixed(2))))));
    const wanted = more.getAttribute("aria-pressed") === "true";
    fill(table, wanted ? numberTable(`Values of ${neurons.path}`, names, chosen.map(({ neuron }) => String(neuron)),
      (row, column) => numbers.data[row * numbers.columns + column].toFixed(2)) : null);
  }
  return { element, render };
}
