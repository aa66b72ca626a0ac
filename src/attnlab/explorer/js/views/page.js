// @ts-check
/** The frame of the page: header, input, answer and edits on one side, tabs with a view on the other. */

import { createGlossary } from "../glossary.js";
import { each, fill, h, newId, reach, setAttribute, setText } from "../html.js";
import { createTour } from "../tour.js";
import * as about from "./about.js";
import * as answer from "./answer.js";
import * as ask from "./ask.js";
import * as edits from "./edits_list.js";
import * as findings from "./findings.js";
import * as guesses from "./guesses.js";
import * as header from "./header.js";
import * as heads from "./heads.js";
import * as input from "./input_panel.js";
import * as neurons from "./neurons.js";
import * as snapshots from "./snapshots.js";
import * as strip from "./strip.js";

/** @import {Action, App, Model, RunEntry, State, Subject, Trouble, View, ViewName} from "../types.js" */
/** @typedef {{runs: RunEntry[], trouble: Trouble | null, state: State}} Around  what is known before a run is open */

/** @type {{[name in ViewName]: {title: string, create: (app: App) => View}}} */
const TABS = {
  heads: { title: "Heads", create: heads.create },
  guesses: { title: "Guesses", create: guesses.create },
  neurons: { title: "Neurons", create: neurons.create },
  ask: { title: "Ask", create: ask.create },
  findings: { title: "Findings", create: findings.create },
  about: { title: "About", create: about.create },
};
const NAMES = /** @type {ViewName[]} */ (Object.keys(TABS));

/** Which views a subject has. @param {Subject} subject */
function viewsOf({ model, abilities }) {
  /** @type {{[name in ViewName]: boolean}} */
  const has = {
    heads: model.sites.length > 0, guesses: model.streams.length > 0, neurons: model.feeds.length > 0,
    ask: abilities.ablate || abilities.explain || abilities.heads, findings: abilities.findings, about: true,
  };
  return NAMES.filter((name) => has[name]);
}

/** @param {App} app */
export function createPage(app) {
  const glossary = createGlossary(app.root);
  const tour = createTour(app);
  const top = header.create(app, { tour: tour.start, glossary: () => glossary.open() });
  const message = h("p", { class: "message", role: "alert", hidden: true });
  const given = input.create(app, "input");
  const said = answer.create(app);
  const line = strip.create(/** @type {HTMLElement} */ (said.element.querySelector(".answers")));
  const main = [said, createTabs(app)];
  const rest = [edits.create(app), snapshots.create(app), input.create(app, "other")];
  const views = [given, ...main, line, ...rest, tour];
  const body = h("div", { class: "body", hidden: true }, h("div", { class: "given" }, given.element),
    h("div", { class: "stage" }, main.map(({ element }) => element)), h("div", { class: "rest" }, rest.map(({ element }) => element)));
  /** @type {Subject | null} */
  let subject = null;

  /** @param {Model | null} model @param {Around} around */
  function render(model, around) {
    top.render(model, around);
    const trouble = around.trouble ?? (model?.error?.lost ? model.error : null);
    message.hidden = !trouble && model !== null;
    setText(message, trouble?.message ?? (model ? "" : "Opening …"));
    message.classList.toggle("waiting", !trouble);
    body.hidden = !model;
    if (!model) return;
    if (subject !== model.subject) document.title = `${model.subject.name} · attnlab`;
    subject = model.subject;
    setAttribute(body, "aria-busy", model.busy);
    for (const view of views) view.render(model);
  }

  return {
    element: h("div", { class: "page" }, top.element, h("main", null, line.element, message, body), tour.element, glossary.element),
    render,
    /** Undo and redo by keys; gives back what ends it. @param {(action: Action) => void} dispatch */
    onKey(dispatch) {
      const listen = (/** @type {Event} */ event) => onUndoKey(/** @type {KeyboardEvent} */ (event), dispatch);
      const where = reach(app.root); // with nothing chosen on a page, keys go to its body
      where.addEventListener("keydown", listen);
      return () => where.removeEventListener("keydown", listen);
    },
    destroy() {
      [...views, glossary].forEach((view) => view.destroy?.());
    },
  };
}

/** @param {KeyboardEvent} event @param {(action: Action) => void} dispatch */
function onUndoKey(event, dispatch) {
  const writing = event.target instanceof HTMLInputElement && event.target.type !== "range" && event.target.type !== "checkbox";
  if (writing || event.target instanceof HTMLTextAreaElement || !(event.ctrlKey || event.metaKey)) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  dispatch({ type: key === "y" || event.shiftKey ? "redo" : "undo" });
}

/** The tabs; a view is made when it is first chosen. @param {App} app @returns {View} */
function createTabs(app) {
  /** @type {Map<ViewName, View>} */
  const made = new Map();
  const id = newId("view");
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Views", dataset: { name: "views" }, onkeydown: onKey });
  const panel = h("div", { class: "view", role: "tabpanel", id, tabindex: -1 });
  /** @type {ViewName[]} */
  let names = [];

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = names.findIndex((name) => list.children[names.indexOf(name)] === document.activeElement);
    const next = step && names[(at + step + names.length) % names.length];
    if (!next) return;
    event.preventDefault();
    app.dispatch({ type: "view", view: next });
    /** @type {HTMLElement} */ (list.children[names.indexOf(next)]).focus();
  }

  /** @param {Model} model */
  function render(model) {
    names = viewsOf(model.subject);
    const chosen = names.includes(model.state.view) ? model.state.view : (names[0] ?? "about");
    each(list, names, () => h("button", { type: "button", role: "tab", "aria-controls": id }), (button, name) => {
      setText(button, TABS[name].title);
      button.onclick = () => app.dispatch({ type: "view", view: name });
      button.id = `${id}-${name}`;
      setAttribute(button, "aria-selected", String(name === chosen));
      setAttribute(button, "tabindex", name === chosen ? 0 : -1);
    });
    setAttribute(panel, "aria-labelledby", `${id}-${chosen}`);
    const view = made.get(chosen) ?? TABS[chosen].create(app);
    made.set(chosen, view);
    fill(panel, view.element);
    view.render(model);
  }

  return {
    element: h("div", null, list, panel),
    render,
    destroy: () => made.forEach((view) => view.destroy?.()),
  };
}
