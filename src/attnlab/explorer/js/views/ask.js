// @ts-check
/** Analyses of this input or of many examples, with progress and cancel. */

import { activeEdits } from "../edits.js";
import { each, fill, h, setText } from "../html.js";
import { createRunning } from "./running.js";

/** @import {App, Job, JobResult, Model, Subject, View} from "../types.js" */
/** @typedef {"ablate" | "explain" | "heads"} Analysis */

/** Examples that are looked at: enough to tell heads apart. What explains takes many passes for each. */
const MANY = { ablate: 500, explain: 20, heads: 500 };
/** @type {{name: Analysis, title: string, words: string}[]} */
const ANALYSES = [
  { name: "ablate", title: "Ablate", words: "Switch every head off, one at a time: what is lost?" },
  { name: "explain", title: "Explain", words: "To which parts of the input is the answer attributed?" },
  { name: "heads", title: "Heads", words: "Where does every head look, compared with looking everywhere alike?" },
];

/** @param {App} app @returns {View} */
export function create(app) {
  const split = h("select", null, h("option", { value: "valid" }, "validation"), h("option", { value: "test" }, "test"));
  const amount = h("select", { onchange: () => app.model() && offer(/** @type {Model} */ (app.model())) },
    h("option", { value: "one" }, "this input"), h("option", { value: "many" }, "many examples"));
  const splitLabel = h("label", { hidden: true }, "of ", split);
  const edited = h("input", { type: "checkbox", checked: true });
  const editedLabel = h("label", { hidden: true }, edited, " with your edits");
  const buttons = h("div", { class: "ask-buttons" });
  const results = h("div", { class: "results", "aria-live": "polite" });
  /** @type {ReturnType<typeof createRunning<JobResult>>} */
  const running = createRunning(app, show);
  const element = h("section", { class: "panel", "aria-label": "Ask" },
    h("div", { class: "tools" }, h("label", null, "About ", amount), splitLabel, editedLabel), buttons, running.elements, results);
  /** @type {Subject | null} */
  let subject = null;
  /** @type {string[]} */
  let urls = [];

  /** @param {Analysis} analysis */
  function start(analysis) {
    const model = app.model();
    release();
    fill(results); // what is still there would be taken for what comes
    if (model) running.start(jobOf(model, analysis, { many: amount.value === "many", test: split.value === "test", edited: edited.checked }));
  }

  /** @param {JobResult} result */
  function show(result) {
    release();
    fill(results, h("h3", null, result.title), result.sentences.map((sentence) => h("p", null, sentence)),
      result.figures.map((figure, index) => figureOf(figure, `${result.title}, figure ${index + 1}`)),
      result.tables.map(({ title, columns, rows }) => h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": title || result.title }, h("table", null, h("caption", null, title),
        h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, rows.map((row) => h("tr", null, row.map((text, at) => (at ? h("td", null, text) : h("th", { scope: "row" }, text))))))))));
  }

  /** As an image, in which nothing can run; it scrolls where it would be too small to read. @param {string} figure @param {string} alt */
  function figureOf(figure, alt) {
    const url = URL.createObjectURL(new Blob([figure], { type: "image/svg+xml" }));
    urls.push(url);
    return h("div", { class: "figure-scroll", tabindex: 0, role: "region", "aria-label": alt }, h("img", { src: url, alt, class: "figure" }));
  }

  function release() {
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
  }

  /** Say what each button would do. @param {Model} model */
  function offer(model) {
    const many = amount.value === "many";
    splitLabel.hidden = !many;
    editedLabel.hidden = activeEdits(model.state, model.subject, model.clean).length === 0;
    each(buttons, ANALYSES.filter(({ name }) => model.subject.abilities[name]), () => h("button", { type: "button", class: "ask" }, h("b"), h("span"), h("span", { class: "hint" })), (button, { name, title, words }) => {
      const [head, text, cost] = button.children;
      const possible = !many || canMany(model.subject, name);
      setText(head, title);
      setText(text, words);
      setText(cost, !possible ? "In a hand-out it explains one input." : many ? `${countOf(model.subject, name)} examples` : "");
      button.dataset.ask = name;
      button.disabled = !possible;
      button.onclick = () => start(name);
    });
  }

  /** @param {Model} model */
  function render(model) {
    offer(model);
    if (subject === model.subject) return;
    subject = model.subject;
    running.stop("");
    fill(results);
  }

  return { element, render, destroy() { running.stop(""); release(); } };
}

/** Whether an analysis of many examples can be made. @param {Subject} subject @param {Analysis} analysis */
function canMany({ source }, analysis) {
  return source !== "handout" || analysis !== "explain";
}

/** How many examples an analysis of many is of: a hand-out carries fewer than a server. @param {Subject} subject @param {Analysis} analysis */
export function countOf({ task }, analysis) {
  const counts = Object.values(task.splits).map((strata) => strata[0]?.count ?? 0);
  return Math.min(MANY[analysis], Math.max(...counts));
}

/**
 * @param {Model} model @param {Analysis} analysis
 * @param {{many: boolean, test: boolean, edited: boolean}} how `edited`: whether edits stay active meanwhile
 * @returns {Exclude<Job, {analysis: "doctor"}>}
 */
export function jobOf({ state, subject, clean }, analysis, { many, test, edited }) {
  const edits = edited ? activeEdits(state, subject, clean) : [];
  return {
    analysis, input: many ? null : state.input, examples: many ? countOf(subject, analysis) : null, split: test ? "test" : "valid",
    edits, other: edits.some(({ op }) => op === "swap") ? state.other : null, snapshot: state.snapshot,
  };
}
