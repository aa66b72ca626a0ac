// @ts-check
/** The view of attention: all heads small, one of them large. */

import { h } from "../html.js";
import { createHead } from "./head.js";
import { createOverview } from "./overview.js";

/** @import {App, Model, View} from "../types.js" */

/** The head shown large: the one chosen, else the first. @param {Model} model */
export function chosenHead({ state, subject }) {
  const { sites } = subject.model;
  const known = sites.some(({ path, heads }) => Array.from({ length: heads }, (_, i) => `${path}.${i}`).includes(state.head ?? ""));
  return known && state.head ? state.head : `${sites[0]?.path}.0`;
}

/** @param {App} app @returns {View} */
export function create(app) {
  const head = createHead(app);
  const overview = createOverview(app, () => {
    const below = head.element.getBoundingClientRect().top >= overview.element.getBoundingClientRect().bottom;
    if (below) head.element.scrollIntoView({ block: "nearest" });
  });
  return {
    element: h("div", { class: "heads" }, overview.element, head.element),
    render(model) {
      const chosen = chosenHead(model);
      overview.render(model, chosen);
      head.render(model, chosen);
    },
    destroy() {
      overview.destroy();
    },
  };
}
