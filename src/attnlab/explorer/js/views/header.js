// @ts-check
/** The header: which run, undo and redo, share, help. */

import { each, h, setText } from "../html.js";
import { copyLink, saveNumbers, savePng, saveSvg } from "../share.js";

/** @import {App, Model, RunEntry} from "../types.js" */
/** @import {Around} from "./page.js" */

/** @param {App} app @param {{tour: () => void, glossary: () => void}} help */
export function create(app, { tour, glossary }) {
  const chooser = h("select", { "aria-label": "Run", onchange: () => app.dispatch({ type: "open", run: chooser.value }) });
  const facts = h("p", { class: "facts" });
  const undo = tool("↶", "Undo the last edit (Ctrl+Z)", () => app.dispatch({ type: "undo" }));
  const redo = tool("↷", "Redo (Ctrl+Y)", () => app.dispatch({ type: "redo" }));
  const share = menu("Share", [
    ["Copy a link to this", () => copyLink(app)],
    ["Save the picture as SVG", () => saveSvg(app)],
    ["Save the picture as PNG", () => savePng(app)],
    ["Save the numbers as JSON", () => saveNumbers(app)],
  ]);
  const help = menu("Help", [
    ["Tour in seven steps", tour],
    ["Glossary", glossary],
  ]);
  const name = h("h1", { class: "brand" }, "attnlab");

  /** @param {Model | null} model @param {Around} around */
  function render(model, { runs, state }) {
    const known = runs.some((run) => run.name === state.run);
    const listed = known || !state.run ? runs : [{ name: state.run, title: state.run, task: "", accuracy: null }, ...runs];
    each(chooser, listed, () => h("option"), (option, run) => {
      option.value = run.name;
      setText(option, runWords(run));
    });
    if (chooser.value !== state.run) chooser.value = state.run;
    chooser.hidden = listed.length < 2;
    setText(facts, model ? model.subject.title : "");
    undo.disabled = !model?.canUndo;
    redo.disabled = !model?.canRedo;
    share.hidden = !model;
  }

  const element = h("header", { class: "header" }, name, chooser, facts,
    h("div", { class: "tools" }, undo, redo, share, help));
  return { element, render };
}

/** @param {RunEntry} run */
function runWords({ name, accuracy }) {
  return accuracy === null ? name : `${name} · ${(100 * accuracy).toFixed(1)}%`;
}

/** @param {string} sign @param {string} label @param {() => void} onclick */
function tool(sign, label, onclick) {
  return h("button", { type: "button", class: "tool", "aria-label": label, title: label, onclick }, sign);
}

/** A button that opens a list of actions. @param {string} title @param {[string, () => unknown][]} actions */
function menu(title, actions) {
  const details = h("details", { class: "menu" }, h("summary", null, title));
  const close = () => { details.open = false; };
  const buttons = actions.map(([words, act]) => h("button", { type: "button", onclick: () => { close(); act(); } }, words));
  details.append(h("div", { class: "menu-list" }, buttons));
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    close();
    details.querySelector("summary")?.focus();
  });
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !details.contains(event.relatedTarget)) close();
  });
  details.addEventListener("toggle", () => {
    const outside = (/** @type {Event} */ event) => { if (!details.contains(/** @type {Node} */ (event.target))) close(); };
    if (details.open) document.addEventListener("pointerdown", outside, { once: true });
  });
  return details;
}
