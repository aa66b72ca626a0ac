// @ts-check
/** Which of the two runs is shown: with the edits, as it is, or the difference. */

import { each, h, setText } from "../html.js";

/** @import {App, Model, Showing} from "../types.js" */

/** @type {{name: Showing, words: string}[]} */
const CHOICES = [{ name: "edited", words: "with edits" }, { name: "clean", words: "as it is" }, { name: "change", words: "the difference" }];

/**
 * A choice that is there while there are edits; `difference`: whether the view draws that too.
 * @param {App} app @param {{difference: boolean}} options
 */
export function createShowing(app, { difference }) {
  const choices = CHOICES.filter(({ name }) => difference || name !== "change");
  const select = h("select", { onchange: () => app.dispatch({ type: "show", show: /** @type {Showing} */ (select.value) }) });
  each(select, choices, () => h("option"), (option, { name, words }) => {
    option.value = name;
    setText(option, words);
  });
  const element = h("label", null, "Show ", select);

  /** @param {Model} model */
  function render({ state, edited }) {
    const shown = choices.some(({ name }) => name === state.show) ? state.show : "edited";
    if (select.value !== shown) select.value = shown;
    select.disabled = !state.edits.length;
    element.hidden = !difference && !edited;
  }
  return { element, render };
}
