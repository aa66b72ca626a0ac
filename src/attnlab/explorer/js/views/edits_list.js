// @ts-check
/** The edits in words, each of which can be taken back, and the line of Python that does the same. */

import { activeEdits, inWords, isHead, whyIdle } from "../edits.js";
import { each, h, newId, setAttribute, setText } from "../html.js";
import { fileName, namesPixels, pythonLine, wrappedLine } from "../python_line.js";

/** @import {App, Input, Model, View} from "../types.js" */

/** The task of a model that comes with examples alone. */
const WRAPPED = "examples";

/** @param {App} app @returns {View} */
export function create(app) {
  const id = newId("edits");
  const list = h("ol", { class: "edits" });
  const none = h("p", { class: "hint" }, "None so far.");
  const clear = h("button", { type: "button", class: "quiet", onclick: () => app.dispatch({ type: "clear" }) }, "Clear");
  const code = h("code");
  const drawn = h("p", { class: "hint" }, "The drawing is read from a file: Share, Save the numbers as JSON.");
  const copy = h("button", { type: "button", class: "quiet", onclick: () => copyText(app, code.textContent ?? "") }, "Copy");
  const python = h("details", { class: "python" }, h("summary", null, "The same in Python"),
    h("pre", { tabindex: 0, role: "region", "aria-label": "Python" }, code), drawn, copy);
  const element = h("section", { class: "panel", "aria-labelledby": id, dataset: { name: "edits" } },
    h("div", { class: "panel-head" }, h("h2", { id }, "Edits"), clear), none, list, python);

  /** @param {Model} model */
  function render(model) {
    const { state, subject, clean } = model;
    none.hidden = state.edits.length > 0;
    clear.hidden = !state.edits.length;
    each(list, state.edits, (_, index) => h("li", null, h("span"), h("button", { type: "button", class: "tool", onclick: () => app.dispatch({ type: "remove", index }) }, "×")), (item, edit) => {
      const [words, remove] = item.children;
      const why = whyIdle(edit, state, subject, clean);
      setText(words, inWords(edit) + (why ? ` (${why})` : ""));
      item.classList.toggle("idle", why !== "");
      setAttribute(remove, "aria-label", `Remove: ${inWords(edit)}`);
    });
    const edits = activeEdits(state, subject, clean);
    const written = { ...state, input: asWritten(model, "input"), other: asWritten(model, "other") };
    const wrapped = subject.task.kind === WRAPPED;
    setText(code, wrapped ? wrappedLine(state, edits)
      : pythonLine(written, edits, edits.every(({ at }) => isHead(subject, at)), `${fileName(state)}.json`));
    drawn.hidden = !namesPixels(state);
    python.hidden = subject.task.input === "examples" && !wrapped;
  }
  return { element, render };
}

/** An example of a task whose inputs are texts as its text. @param {Model} model @param {"input" | "other"} slot @returns {Input | null} */
function asWritten({ state, subject, clean, other }, slot) {
  const input = state[slot];
  const scene = slot === "input" ? clean : other;
  return input && "example" in input && subject.task.input === "text" && scene ? { text: scene.input.name } : input;
}

/** @param {App} app @param {string} text */
export async function copyText(app, text) {
  try {
    await navigator.clipboard.writeText(text);
    app.tell("Copied.");
  } catch {
    app.tell("The browser does not let this page copy.");
  }
}
