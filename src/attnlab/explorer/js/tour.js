// @ts-check
/**
 * A guided tour: seven steps, each something to do; "Show me" does it. A step that is done says so, and what there
 * is to see. Whether the tour was seen is remembered where the browser lets a page.
 */

import { withTerms } from "./glossary.js";
import { aOrAn, fill, h, newId, setText } from "./html.js";
import { sameInput } from "./store.js";
import { drawable, emptyDrawing, rendered } from "./inputs/drawing.js";

/** @import {Action, App, DrawAction, FindAction, ImageForm, Input, Model, State, Subject, TourStep, Until, View} from "./types.js" */

/** What the tour would hide, if it did not stand on the other side. */
const ASIDE = ["overview", "head", "views"];
/** Pages of fewer pixels have the tour below everything. */
const NARROW = 500;
/** Where it is remembered that a tour was seen. */
const REMEMBERED = "attnlab-tour-seen";

/**
 * The tour of what is explored: that of its task where the model has all parts it speaks of.
 * @type {(subject: Subject) => TourStep[]}
 */
export function tourOf(subject) {
  const own = subject.task.tour;
  return own.length && own.every((step) => fits(step, subject)) ? own : generalTour(subject);
}

/** Whether the model has the parts that a step names. @type {(step: TourStep, subject: Subject) => boolean} */
function fits({ until, act }, { model, task }) {
  const cells = task.image && drawable(task.image) ? task.image.rows * task.image.columns : 0;
  if (act.some((action) => action.type === "draw" && action.cells.length !== cells)) return false;
  const places = [until.edit?.at, until.head === "any" ? undefined : until.head, ...act.flatMap((action) =>
    action.type === "edit" ? [action.edit.at] : action.type === "choose" ? [action.head] : [])];
  return places.every((place) => typeof place !== "string" || model.layers.some((layer) => layer.path === place)
    || model.feeds.some((feed) => feed.path === place) || model.sites.some((site) => holds(site, place)));
}

/** Whether a place is a site or one of its heads. @type {(site: {path: string, heads: number}, place: string) => boolean} */
function holds({ path, heads }, place) {
  if (place === path) return true;
  const head = place.startsWith(`${path}.`) ? Number(place.slice(path.length + 1)) : NaN;
  return Number.isInteger(head) && head < heads;
}

/**
 * The tour of any task and model.
 * @type {(subject: Subject) => TourStep[]}
 */
export function generalTour({ task, model }) {
  const site = model.sites.at(-1);
  const head = site ? `${site.path}.0` : null;
  /** @type {TourStep[]} */
  const steps = [
    {
      title: "Give an input",
      text: `Here you give the [model] its input, ${aOrAn(task.noun)}. The answer follows at once.`,
      target: "input", facts: {}, until: { input: "given" },
      act: task.suggestions.length ? [{ type: "input", input: { text: task.suggestions[task.suggestions.length - 1] } }]
        : [{ type: "input", input: { example: { split: "valid", index: 1 } } }], // the page begins with the first
    },
    {
      title: "Read the answer",
      text: "Here is what the model answers, and how probable it finds it. Point at a [token] to see what else it could have said.",
      target: "answer", facts: {}, until: {}, act: [],
    },
  ];
  if (head) steps.push(
    {
      title: "Choose a head",
      text: "Each small picture is one [head]: a row for each [query], a column for each [key]; strong colour is a large weight. Choose one to see it large.",
      target: "overview", facts: {}, until: { head: "any" }, act: [{ type: "view", view: "heads" }, { type: "choose", head }],
    },
    {
      title: "Switch it off",
      text: `Switch off a head and compare the two answers: that is [ablation]. “Show me” takes ${head}.`,
      target: "edits", facts: {}, until: { edit: { op: "off" } }, act: [{ type: "edit", edit: { op: "off", at: head, to: "zero" } }],
    },
    {
      title: "Put it back",
      text: "Every change stands in the list and can be undone. Clear the list.",
      target: "edits", facts: {}, until: { edits: "none" }, act: [{ type: "clear" }],
    },
  );
  steps.push(
    {
      title: "Watch the guess form",
      text: "The view “Guesses” shows the [early guess] after each [layer].",
      target: "views", facts: {}, until: { view: "guesses" }, act: [{ type: "view", view: "guesses" }],
    },
    {
      title: "Ask about many examples",
      text: "One input is an anecdote. The view “Ask” switches off every head in turn and counts on many examples. The address of this page holds all that you did: copy it to share it.",
      target: "views", facts: {}, until: { view: "ask" }, act: [{ type: "view", view: "ask" }],
    },
  );
  return steps;
}

/** Whether the page is as a step wants it. @type {(until: Until, model: {state: State}) => boolean} */
export function met(until, { state }) {
  /** @type {boolean[]} */
  const wanted = [];
  const { input, other } = state;
  if (until.text !== undefined) wanted.push(input !== null && "text" in input && compact(input.text) === compact(until.text));
  if (until.input === "given") wanted.push(input !== null);
  if (until.input === "pixels") wanted.push(input !== null && "pixels" in input);
  if (until.input === "example") wanted.push(input !== null && "example" in input);
  if (until.edit) wanted.push(state.edits.some((edit) => Object.entries(until.edit ?? {}).every(([key, value]) => Reflect.get(edit, key) === value)));
  if (until.edits === "none") wanted.push(state.edits.length === 0);
  if (until.head) wanted.push(until.head === "any" ? state.head !== null : state.head === until.head);
  if (until.view) wanted.push(state.view === until.view);
  if (until.step) wanted.push(state.step !== null);
  if (until.feed) wanted.push(state.feed !== null);
  if (until.other) wanted.push(other !== null);
  return wanted.length > 0 && wanted.every(Boolean);
}

/**
 * What a step does, as an action of the store.
 * @type {(action: Action | DrawAction, image: ImageForm | null) => Action}
 */
export function actionOf(action, image) {
  if (action.type !== "draw") return action;
  if (!image) throw new Error("there is nothing to draw in");
  const strokes = action.cells.flatMap((each, cell) =>
    each.map((points) => ({ cell, stroke: points.map(([x, y]) => ({ x, y, pressure: 0.5 })) })));
  return { type: action.slot, input: { pixels: rendered({ ...emptyDrawing(null), strokes }, image) } };
}

/** @type {(text: string) => string} */
function compact(text) {
  return text.replace(/\s+/g, " ").replace(/ ?\+ ?/g, "+").trim();
}

/** @type {(app: App) => View & {start: () => void}} */
export function createTour(app) {
  const id = newId("tour");
  /** @type {number | null} */
  let at = null;
  /** @type {TourStep[]} */
  let steps = [];
  /** @type {Subject | null} */
  let subject = null;
  let before = false; // whether the step's end was met already when it began
  /** What was there then. @type {Input | null} */
  let given = null;
  let done = false; // and what there is to see is told
  /** @type {Element | null} */
  let marked = null;

  const count = h("p", { class: "tour-count" });
  const title = h("h2", { id: `${id}-title`, tabindex: -1 });
  const text = h("p", null);
  const fact = h("p", { class: "tour-fact" });
  const back = h("button", { type: "button", onclick: () => go((at ?? 0) - 1) }, "Back");
  const doIt = h("button", { type: "button", dataset: { name: "tour-show" }, onclick: showMe }, "Show me");
  const next = h("button", { type: "button", class: "primary", dataset: { name: "tour-next" }, onclick: () => go((at ?? 0) + 1) }, "Next");
  const skip = h("button", { type: "button", dataset: { name: "tour-end" }, onclick: end }, "End tour");
  const element = h("section", { class: "tour", hidden: true, "aria-labelledby": title.id, dataset: { name: "tour" }, onkeydown: key },
    count, title, text, fact, h("div", { class: "tools" }, back, doIt, next, skip));

  /** @type {(event: KeyboardEvent) => void} */
  function key(event) {
    if (event.key === "Escape") end();
  }

  /** On demand: the tour gets the focus, which a first visit leaves where it is. */
  function start() {
    const model = app.model();
    if (!model) return;
    begin(model);
    title.focus();
  }

  /** @type {(model: Model) => void} */
  function begin(model) {
    subject = model.subject;
    steps = tourOf(subject);
    go(0);
  }

  /** @type {(to: number) => void} */
  function go(to) {
    if (to >= steps.length) return end();
    at = Math.max(0, to);
    const model = app.model();
    before = model !== null && met(steps[at].until, model);
    given = model?.state.input ?? null;
    done = false;
    element.hidden = false;
    describe(steps[at], at);
    mark(steps[at].target);
  }

  /** @type {(step: TourStep, number: number) => void} */
  function describe(step, number) {
    setText(count, `Step ${number + 1} of ${steps.length}`);
    setText(title, step.title);
    fill(text, ...withTerms(step.text));
    fact.hidden = true;
    back.disabled = number === 0;
    doIt.hidden = step.act.length === 0;
    setText(next, number === steps.length - 1 ? "Finish" : "Next");
    app.announce(`Tour, step ${number + 1} of ${steps.length}: ${step.title}`);
  }

  /** Tell what there is to see, where that is known of this run. */
  function finish() {
    if (at === null) return;
    const known = steps[at].facts[subject?.name ?? ""] ?? "";
    done = true;
    fill(fact, h("b", null, "Done. "), ...withTerms(known));
    fact.hidden = false;
    doIt.hidden = true;
    if (steps[at].until.edit) app.root.querySelector("[data-name=answer]")?.scrollIntoView({ block: "nearest" });
    app.announce(`Done. ${known}`.replace(/\[(?:([^\]|]+)\|)?([^\]]+)\]/g, (_, shown, name) => shown ?? name));
  }

  function showMe() {
    const image = subject?.task.image ?? null;
    if (at === null) return;
    before = false;
    const old = app.root.dataset.state;
    steps[at].act.forEach((action) => (action.type === "find" ? find(action) : app.dispatch(actionOf(action, image))));
    const model = app.model();
    if (model && app.root.dataset.state === old) render(model); // all was as it should be
  }

  /** Groups that need answers take a while. @type {(action: FindAction) => Promise<void>} */
  async function find({ split, stratum }) {
    const asked = at;
    doIt.disabled = true;
    try {
      const { items } = await app.port.examples({ split, stratum, start: 0, count: 1 });
      if (at !== asked) return; // whoever has gone on is not called back
      if (items[0]) app.dispatch({ type: "input", input: { example: { split, index: items[0].index } } });
      else app.tell(`There is no example in the group “${stratum}”.`);
    } catch (error) {
      app.tell(error instanceof Error ? error.message : String(error));
    } finally {
      doIt.disabled = false;
    }
  }

  function end() {
    at = null;
    element.hidden = true;
    mark("");
    remember();
  }

  /** Show which part of the page a step is about. @type {(name: string) => void} */
  function mark(name) {
    marked?.classList.remove("toured");
    marked = name ? app.root.querySelector(`[data-name="${name}"]`) : null;
    marked?.classList.add("toured");
    element.classList.toggle("aside", ASIDE.includes(name));
    marked?.scrollIntoView({ block: innerWidth < NARROW ? "start" : "nearest" });
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    if (subject !== model.subject) {
      if (at !== null) end();
      subject = model.subject;
      if (!remembered() && model.clean && subject.source !== "widget") begin(model); // a notebook is a page of its own
      else if (!model.clean) subject = null; // wait until there is something to look at
      return;
    }
    if (at === null) return;
    const { until, target } = steps[at];
    if (!marked?.isConnected) mark(target);
    const now = met(until, model);
    if (until.input === "given" && !sameInput(given, model.state.input)) before = false;
    if (now && !before && !done && !model.busy) finish();
    else before = before && now;
  }

  return { element, render, start, destroy: () => mark("") };
}

/** A page opened from disk may not be allowed to remember; then the tour is there on each visit until it ends. */
function remembered() {
  try {
    return localStorage.getItem(REMEMBERED) !== null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem(REMEMBERED, "yes");
  } catch {
    // nothing to remember with
  }
}
