// @ts-check
/** An input as text: what is wrong with it is said while it is typed, and the last good answer stays. */

import { aOrAn, each, h, newId, setAttribute, setText } from "../html.js";

/** @import {InputApp, Model, View} from "../types.js" */

/** @type {(app: InputApp) => View} */
export function create(app) {
  const id = newId("text");
  /** @type {string[]} */
  let suggestionsOf = [];
  const label = h("label", { class: "input-label", for: id });
  const field = h("input", {
    id, class: "input-text", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    enterkeyhint: "done", "aria-describedby": `${id}-error`, dataset: { name: `${app.slot}-text` },
    oninput: () => write(field.value),
  });
  const error = h("p", { id: `${id}-error`, class: "input-error", role: "alert" });
  const suggestions = h("div", { class: "input-suggestions", role: "group", "aria-label": "Suggestions" });
  const element = h("div", { class: "input-form" }, label, field, error, suggestions);

  /** @type {(text: string) => void} */
  function write(text) {
    app.dispatch({ type: app.slot, input: { text } });
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    const { task } = model.subject;
    setText(label, `Type ${aOrAn(task.noun)}`);
    setAttribute(field, "placeholder", task.placeholder);
    setAttribute(field, "inputmode", keyboardFor(task.suggestions));
    const shown = textOf(model, app.slot);
    if (shown !== null && shown !== field.value) field.value = shown;
    const wrong = model.error?.at === app.slot && !model.error.lost ? model.error.message : "";
    setText(error, wrong);
    setAttribute(field, "aria-invalid", wrong ? "true" : null);
    suggestionsOf = task.suggestions;
    each(
      suggestions,
      task.suggestions,
      (suggestion, at) =>
        h("button", { type: "button", class: "chip", onclick: () => write(suggestionsOf[at]) }, suggestion),
      (button, suggestion) => {
        setText(button, suggestion);
        setAttribute(button, "aria-pressed", String(suggestion === shown));
      },
    );
    suggestions.hidden = task.suggestions.length === 0;
  }

  return { element, render };
}

/**
 * The text of the input, or how an example that was chosen would be written; null while that is not known.
 * @type {(model: Model, slot: "input" | "other") => string | null}
 */
export function textOf(model, slot) {
  const input = model.state[slot];
  if (input && "text" in input) return input.text;
  if (!input) return "";
  const scene = slot === "input" ? model.clean : model.other;
  return scene && !model.busy ? scene.input.name : null;
}

/**
 * The keyboard of a phone that has all characters of the suggestions.
 * @type {(suggestions: string[]) => string}
 */
export function keyboardFor(suggestions) {
  const all = suggestions.join("");
  return /^\d+$/.test(all) ? "numeric" : /^[\d+]+$/.test(all) ? "tel" : "text";
}
