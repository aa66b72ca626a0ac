// @ts-check
/** The ways in which an input of a task can be given, one of them open at a time. */

import { h, newId, setAttribute } from "../html.js";
import { create as createDrawing } from "./draw_digit.js";
import { watchFiles } from "./bring.js";
import { drawable } from "./drawing.js";
import { create as createExamples } from "./examples.js";
import { create as createPaint } from "./paint.js";
import { create as createPicture } from "./picture.js";
import { create as createText } from "./text.js";

/** @import {App, InputApp, Model, PictureView, TaskFacts, View} from "../types.js" */

/** @typedef {{name: string, title: string, create: (app: InputApp) => View}} Way */

/** @type {Way} */
const TEXT = { name: "text", title: "Type", create: createText };
const DRAW = { name: "draw", title: "Draw", create: createDrawing };
const PIXELS = { name: "paint", title: "Pixels", create: createPaint };
const PAINT = { name: "paint", title: "Paint", create: createPaint };
const PICTURE = { name: "picture", title: "Picture", create: createPicture };
const EXAMPLES = { name: "examples", title: "Examples", create: createExamples };

/**
 * How inputs of a task are given, the usual way first.
 * @type {(task: TaskFacts) => Way[]}
 */
export function waysOf(task) {
  const chosen = Object.keys(task.splits).length ? [EXAMPLES] : [];
  if (task.input === "text") return [TEXT, ...chosen];
  if (task.input === "image" && task.image) {
    return drawable(task.image) ? [DRAW, PIXELS, PICTURE, ...chosen] : [PAINT, PICTURE, ...chosen];
  }
  return chosen;
}

/** @type {(app: App, options: {side: "input" | "other"}) => View} */
export function createInput(app, { side }) {
  const own = /** @type {InputApp} */ ({ ...app, slot: side });
  const id = newId("ways");
  /** @type {Way[]} */
  let ways = [];
  /** @type {Map<string, View>} */
  let views = new Map();
  /** @type {TaskFacts | null} */
  let task = null;
  /** What is open; an example shows itself in all of them. @type {string} */
  let opened = "";
  /** @type {Model | null} */
  let model = null;

  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": side === "input" ? "Give the input by" : "Give the second input by" });
  const panel = h("div", { id: `${id}-panel`, role: "tabpanel" });
  const element = h("div", { class: "input", dataset: { name: side } }, tabs, panel);
  const unwatch = watchFiles(app.root, side === "input" ? null : element, take);

  /** @type {(name: string) => void} */
  function open(name) {
    opened = name;
    if (model) render(model);
  }

  /** A picture that was pasted or dropped. @type {(files: FileList) => void} */
  function take(files) {
    if (!ways.includes(PICTURE)) return;
    open(PICTURE.name);
    /** @type {PictureView} */ (views.get(PICTURE.name)).take(files);
  }

  /** @type {(event: KeyboardEvent) => void} */
  function key(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const at = ways.findIndex((way) => way.name === opened);
    const next = (at + step + ways.length) % ways.length;
    open(ways[next].name);
    /** @type {HTMLElement} */ (tabs.children[next]).focus();
  }

  /** @type {(given: Model) => void} */
  function render(given) {
    model = given;
    if (task !== given.subject.task) rebuild(given.subject.task);
    const way = ways.find((each) => each.name === opened);
    if (!way) return;
    ways.forEach((each, at) => {
      const tab = tabs.children[at];
      setAttribute(tab, "aria-selected", String(each === way));
      setAttribute(tab, "tabindex", each === way ? 0 : -1);
      if (each === way) setAttribute(panel, "aria-labelledby", tab.id);
    });
    const view = views.get(way.name) ?? way.create(own);
    views.set(way.name, view);
    if (panel.firstChild !== view.element) panel.replaceChildren(view.element);
    view.render(given);
  }

  /** @type {(next: TaskFacts) => void} */
  function rebuild(next) {
    close();
    task = next;
    ways = waysOf(next);
    opened = ways[0]?.name ?? "";
    tabs.replaceChildren(...ways.map(({ name, title }) => h("button", {
      id: `${id}-${name}`, type: "button", role: "tab", "aria-controls": panel.id, dataset: { name: `${side}-by-${name}` },
      onclick: () => open(name), onkeydown: key,
    }, title)));
    tabs.hidden = ways.length < 2;
    if (ways.length === 0) panel.replaceChildren(h("p", { class: "hint" }, "This model has no inputs to choose from."));
  }

  function close() {
    for (const view of views.values()) view.destroy?.();
    views = new Map();
  }

  function destroy() {
    close();
    unwatch();
  }

  return { element, render, destroy };
}
