// @ts-check
/** Analyses of this input or of many examples, with progress and cancel. */

import { each, fill, h, setText } from "../html.js";

/** @import {App, Job, JobResult, Model, Running, Subject, View} from "../types.js" */

/** Examples that are looked at: enough to tell heads apart. What explains takes many passes for each. */
const MANY = { ablate: 500, explain: 20, heads: 500 };
/** @type {{name: Job["analysis"], title: string, words: string}[]} */
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
  const buttons = h("div", { class: "ask-buttons" });
  const bar = h("progress", { max: 1, "aria-label": "Progress" });
  const where = h("span", { class: "number" });
  const cancel = h("button", { type: "button", onclick: () => stop("Cancelled.") }, "Cancel");
  const running = h("div", { class: "running", hidden: true }, bar, where, cancel);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const results = h("div", { class: "results", "aria-live": "polite" });
  const element = h("section", { class: "panel", "aria-label": "Ask" },
    h("div", { class: "tools" }, h("label", null, "About ", amount), splitLabel), buttons, running, problem, results);
  /** @type {Running | null} */
  let current = null;
  /** @type {Subject | null} */
  let subject = null;
  /** @type {string[]} */
  let urls = [];

  /** @param {string} message */
  function stop(message) {
    current?.cancel();
    current = null;
    running.hidden = true;
    problem.hidden = !message;
    setText(problem, message);
  }

  /** @param {Job["analysis"]} analysis */
  async function start(analysis) {
    const model = app.model();
    if (!model) return;
    stop("");
    const began = performance.now();
    const job = app.port.start(jobOf(model, analysis, amount.value === "many", split.value === "test"), (done, total) => {
      bar.max = total || 1;
      bar.value = done;
      setText(where, `${done} of ${total}${leftWords((performance.now() - began) / 1000, done, total)}`);
    });
    current = job;
    bar.removeAttribute("value");
    setText(where, "");
    running.hidden = false;
    try {
      const result = await job.result;
      if (current === job) show(result);
    } catch (error) {
      if (current === job) stop(error instanceof Error ? error.message : String(error));
    }
  }

  /** @param {JobResult} result */
  function show(result) {
    current = null;
    running.hidden = true;
    release();
    fill(results, h("h3", null, result.title), result.sentences.map((sentence) => h("p", null, sentence)),
      result.figures.map((figure, index) => figureOf(figure, `${result.title}, figure ${index + 1}`)),
      result.tables.map(({ title, columns, rows }) => h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": title || result.title }, h("table", null, h("caption", null, title),
        h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, rows.map((row) => h("tr", null, row.map((text, at) => (at ? h("td", null, text) : h("th", { scope: "row" }, text))))))))));
  }

  /** As an image, in which nothing can run. @param {string} figure @param {string} alt */
  function figureOf(figure, alt) {
    const url = URL.createObjectURL(new Blob([figure], { type: "image/svg+xml" }));
    urls.push(url);
    return h("img", { src: url, alt, class: "figure" });
  }

  function release() {
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
  }

  /** Say what each button would do. @param {Model} model */
  function offer(model) {
    const many = amount.value === "many";
    splitLabel.hidden = !many;
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
    stop("");
    fill(results);
  }

  return { element, render, destroy() { stop(""); release(); } };
}

/** Whether an analysis of many examples can be made. @param {Subject} subject @param {Job["analysis"]} analysis */
function canMany({ source }, analysis) {
  return source !== "handout" || analysis !== "explain";
}

/** How many examples an analysis of many is of: a hand-out carries fewer than a server. @param {Subject} subject @param {Job["analysis"]} analysis */
export function countOf({ task }, analysis) {
  const counts = Object.values(task.splits).map((strata) => strata[0]?.count ?? 0);
  return Math.min(MANY[analysis], Math.max(...counts));
}

/** A time as people say it. @param {number} seconds */
export function timeWords(seconds) {
  if (seconds < 3) return "a few seconds";
  if (seconds < 50) return `about ${seconds < 10 ? Math.round(seconds) : 10 * Math.round(seconds / 10)} seconds`;
  const minutes = Math.round(seconds / 60) || 1;
  return `about ${minutes === 1 ? "a minute" : `${minutes} minutes`}`;
}

/** How much longer it takes, once that can be known. @param {number} seconds so far @param {number} done @param {number} total */
export function leftWords(seconds, done, total) {
  return seconds < 2 || done === 0 || done >= total ? "" : `, ${timeWords((seconds * (total - done)) / done)} left`;
}

/** @param {Model} model @param {Job["analysis"]} analysis @param {boolean} many @param {boolean} test @returns {Job} */
export function jobOf({ state, subject }, analysis, many, test) {
  return {
    analysis, input: many ? null : state.input, examples: many ? countOf(subject, analysis) : null, split: test ? "test" : "valid",
    snapshot: state.snapshot,
  };
}
