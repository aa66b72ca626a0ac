// @ts-check
/** Where inputs are given: the input itself, and on demand a second one to swap values in from. */

import { fill, h, newId, setText } from "../html.js";
import { createInput } from "../inputs/index.js";

/** @import {App, Model, Subject, View} from "../types.js" */

/** @param {App} app @param {"input" | "other"} slot @returns {View} */
export function create(app, slot) {
  const id = newId("input");
  const title = h("h2", { id }, slot === "input" ? "Input" : "Second input (B)");
  const body = h("div", { class: "input-body" });
  const why = h("p", { class: "hint", hidden: slot === "input" },
    "A part that is swapped takes its values from this input: drag a head's picture from the row B onto A, or press “Take from B”.");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const add = h("button", { type: "button", class: "quiet", hidden: true, onclick: begin }, "Add a second input to swap from");
  const remove = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => app.dispatch({ type: "other", input: null }) }, "Remove");
  const element = h("section", { class: "panel input-panel", "aria-labelledby": id }, h("div", { class: "panel-head" }, title, remove), why, body, problem, add);
  /** @type {Subject | null} */
  let subject = null;
  /** @type {View | null} */
  let module = null;

  function begin() {
    const model = app.model();
    if (model?.state.input) app.dispatch({ type: "other", input: secondInput(model) });
  }

  /** @param {Model} model */
  function render(model) {
    const shown = slot === "input" || model.state.other !== null;
    if (subject !== model.subject) {
      module?.destroy?.();
      [module, subject] = [null, model.subject];
      fill(body);
    }
    if (shown && !module) {
      module = createInput(app, { side: slot });
      fill(body, module.element);
    }
    const given = model.state[slot];
    const atField = given !== null && "text" in given; // a typed input says itself what is wrong with it
    const wrong = model.error?.at === slot && !atField ? model.error : null;
    problem.hidden = !wrong || wrong.lost;
    setText(problem, wrong?.message ?? "");
    add.hidden = shown;
    remove.hidden = slot === "input" || !shown;
    why.hidden = slot === "input" || !shown;
    title.hidden = !shown;
    body.hidden = !shown;
    element.classList.toggle("collapsed", !shown);
    if (shown) module?.render(model);
  }

  return { element, render, destroy: () => module?.destroy?.() };
}

/** Something else than the input. @param {Model} model */
function secondInput({ state, subject }) {
  const { task } = subject;
  const text = task.suggestions.find((each) => !(state.input && "text" in state.input) || each !== state.input.text);
  if (task.input === "text" && text !== undefined) return { text };
  const [split = "valid"] = Object.keys(task.splits);
  const index = state.input && "example" in state.input ? state.input.example.index + 1 : 1;
  return { example: { split, index } };
}
