// @ts-check
/** What the model is, and how the page is used by keys. */

import { aOrAn, fill, h } from "../html.js";

/** @import {App, Model, Subject, View} from "../types.js" */

/** @type {[string, string][]} */
const KEYS = [
  ["Arrow keys", "move among heads, cells of a map, and tabs"],
  ["Enter", "choose a head"],
  ["o", "switch the head off, or on again"],
  ["Space", "while painting: let the row look at this cell alone"],
  ["Ctrl+Z, Ctrl+Y", "undo and redo edits"],
];

/** @param {App} _app @returns {View} */
export function create(_app) {
  const element = h("section", { class: "panel about", "aria-label": "About" });
  /** @type {Subject | null} */
  let drawn = null;
  /** @param {Model} model */
  function render({ subject }) {
    if (drawn === subject) return;
    drawn = subject;
    const { model, task, title, name } = subject;
    const facts = [...subject.facts, ["attentions", String(model.sites.length)]]; // the card counts parameters
    fill(element, h("h2", null, title), h("p", null, `${name} is given ${aOrAn(task.noun)}.`), list(facts), h("h2", null, "Keys"), list(KEYS));
  }
  return { element, render };
}

/** @param {string[][]} rows */
function list(rows) {
  return h("dl", { class: "facts-list" }, rows.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text))));
}
