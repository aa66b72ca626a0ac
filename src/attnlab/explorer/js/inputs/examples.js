// @ts-check
/** Choosing an example of a split: all of them, or those of one stratum, such as sums with a long carry chain. */

import { each, h, newId, setAttribute, setText } from "../html.js";
import { show as showPixels } from "./pixels.js";

/** @import {Example, Input, InputApp, Model, Subject, View} from "../types.js" */

/** Examples that are listed at once. */
const LISTED = 12;
/** Milliseconds after which it is said that a list is still looked for. */
const PATIENCE = 150;
/** @type {{[split: string]: string}} */
const SPLITS = { train: "training", valid: "validation", test: "test" };

/** @type {(app: InputApp) => View} */
export function create(app) {
  const id = newId("examples");
  /** @type {Subject | null} */
  let subject = null;
  /** @type {Example[]} */
  let items = [];
  let start = 0; // of the listed ones among those of the stratum
  let at = -1; // the input among those of the stratum, -1 where it is none of the listed ones
  /** @type {Input | null} */
  let input = null;
  let total = 0;
  let asked = 0;
  let looking = false;
  /** The list that was asked for last. */
  let latest = Promise.resolve();

  const split = h("select", { id: `${id}-split`, onchange: chooseSplit });
  const stratum = h("select", { id: `${id}-stratum`, dataset: { name: `${app.slot}-stratum` }, onchange: () => show(0) });
  const where = h("p", { class: "hint", role: "status" });
  const error = h("p", { class: "input-error", role: "alert" });
  const cards = h("ol", { class: "example-list", "aria-label": "Examples" });
  const before = h("button", { type: "button", onclick: () => step(-1) }, "Previous");
  const after = h("button", { type: "button", dataset: { name: `${app.slot}-next` }, onclick: () => step(1) }, "Next");
  const any = h("button", { type: "button", onclick: random }, "Random");
  const element = h("div", { class: "input-form" },
    h("div", { class: "tools" },
      h("label", { for: split.id }, "Split"), split, h("label", { for: stratum.id }, "Group"), stratum),
    h("div", { class: "tools" }, before, after, any), where, error, cards);

  function chooseSplit() {
    const strata = subject?.task.splits[split.value] ?? [];
    stratum.replaceChildren(...strata.map(({ name, count }) => h("option", { value: name }, count === null ? name : `${name} (${count.toLocaleString("en")})`)));
    show(0);
  }

  /** Show the examples from a place on. @type {(from: number) => Promise<void>} */
  function show(from) {
    latest = list(from);
    return latest;
  }

  /** @type {(from: number) => Promise<void>} */
  async function list(from) {
    const number = ++asked;
    const wanted = { split: split.value, stratum: stratum.value, start: from, count: LISTED };
    const waiting = setTimeout(() => wait(number), PATIENCE);
    try {
      const found = await app.port.examples(wanted);
      if (number !== asked) return;
      ({ items, total } = found);
      start = from;
      setText(error, "");
    } catch (problem) {
      if (number === asked) setText(error, problem instanceof Error ? problem.message : String(problem));
    }
    clearTimeout(waiting);
    if (number === asked) looking = false;
    draw();
  }

  /** The examples of another group are no longer offered. @type {(number: number) => void} */
  function wait(number) {
    if (number !== asked) return;
    [looking, items, total] = [true, [], 0];
    draw();
  }

  /** To the next one of the group that was chosen, also if it is still looked for. @type {(by: number) => Promise<void>} */
  async function step(by) {
    await latest;
    await choose(at < 0 ? (by > 0 ? 0 : total - 1) : (at + by + total) % total);
  }

  async function random() {
    await latest;
    await choose(Math.floor(Math.random() * total));
  }

  /** Choose one by its place in the stratum. @type {(place: number) => Promise<void>} */
  async function choose(place) {
    if (!total) return;
    if (place < start || place >= start + items.length) {
      await show(Math.floor(place / LISTED) * LISTED);
      if (place < start || place >= start + items.length) return; // another list was asked for meanwhile
    }
    const { index } = items[place - start];
    app.dispatch({ type: app.slot, input: { example: { split: split.value, index } } });
  }

  function draw() {
    const chosen = input && "example" in input && input.example.split === split.value ? input.example.index : -1;
    const listed = items.findIndex(({ index }) => index === chosen);
    at = listed < 0 ? -1 : start + listed;
    setAttribute(cards, "aria-busy", looking);
    setText(where, looking ? "looking for them …" : total ? `${at < 0 ? "" : `${(at + 1).toLocaleString("en")} of `}${total.toLocaleString("en")} ${total === 1 ? "example" : "examples"}` : "no examples");
    for (const button of [before, after, any]) setAttribute(button, "disabled", total === 0);
    each(cards, items, card, (element, item, number) => {
      const button = element.querySelector("button");
      const canvas = element.querySelector("canvas");
      const name = element.querySelector("span");
      if (!button || !canvas || !name) return;
      setAttribute(button, "aria-pressed", String(start + number === at));
      canvas.hidden = !item.pixels;
      if (item.pixels) showPixels(canvas, item.pixels);
      setText(name, (item.pixels && item.truth) || item.name);
      setAttribute(button, "aria-label", item.truth === null ? item.name : `${item.name}, right answer ${item.truth}`);
    });
  }

  /** @type {(item: Example, number: number) => HTMLLIElement} */
  function card(_, number) {
    return h("li", null, h("button", { type: "button", class: "example-card", onclick: () => choose(start + number) },
      h("canvas", { "aria-hidden": "true" }), h("span", null)));
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    input = model.state[app.slot];
    if (subject === model.subject) return draw();
    subject = model.subject;
    const names = Object.keys(subject.task.splits);
    split.replaceChildren(...names.map((name) => h("option", { value: name }, SPLITS[name] ?? name)));
    chooseSplit();
  }

  return { element, render };
}
