// @ts-check
/** The widget of a notebook: the app, a port to Python, and the state in the widget's model. */

import { mount } from "./app.js";
import { h } from "./html.js";
import { widgetPort } from "./ports/widget.js";
import { fromHash, toHash } from "./store.js";

/** @import {WidgetModel} from "./ports/widget.js" */

/**
 * Show the explorer in `el` when Python has answered; until then, and for ever without a kernel, the copy of
 * the scene beside it is what is seen.
 * @param {{model: WidgetModel, el: HTMLElement}} view
 */
export function render({ model, el }) {
  const port = widgetPort(model);
  /** @type {ReturnType<typeof mount> | null} */
  let page = null;
  let closed = false;

  function start() {
    if (closed) return;
    const root = h("div", null);
    el.append(hidingCopies(model.get("_mark")), root);
    page = mount(root, port, { widget: { get: () => fromHash(model.get("state")), set: tell } });
  }

  /** @param {import("./types.js").State} state */
  function tell(state) {
    const text = toHash(state);
    if (text === model.get("state")) return;
    model.set("state", text);
    model.save_changes();
  }

  function onState() {
    const text = model.get("state");
    if (page && text !== toHash(page.state())) page.dispatch({ type: "restore", state: fromHash(text) });
  }

  model.on("change:state", onState);
  port.list().then(start, () => {});
  return () => {
    closed = true;
    model.off("change:state", onState);
    page?.destroy();
    port.close();
  };
}

/** Hides the copies of this widget while a view of it is there. @param {string} mark */
function hidingCopies(mark) {
  return h("style", null, `.attnlab-copy[data-widget="${mark}"] { display: none; }`);
}
