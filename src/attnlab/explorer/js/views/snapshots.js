// @ts-check
/** The weights on the way: a slider over the snapshots of the training. */

import { h, setAttribute, setText } from "../html.js";

/** @import {App, Model, Snapshot, View} from "../types.js" */

/** @param {App} app @returns {View} */
export function create(app) {
  /** @type {Snapshot[]} */
  let snapshots = [];
  const slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Snapshot of the training", oninput: choose });
  const words = h("output");
  const element = h("section", { class: "panel", "aria-label": "Training", dataset: { name: "snapshots" } }, h("h2", null, "Training"), slider, words);

  /** The last place is the finished model. */
  function choose() {
    const at = Number(slider.value);
    app.dispatch({ type: "snapshot", step: snapshots[at]?.step ?? null });
  }

  /** @param {Model} model */
  function render({ subject, state }) {
    snapshots = subject.snapshots;
    element.hidden = !snapshots.length;
    setAttribute(slider, "max", snapshots.length);
    const found = snapshots.findIndex(({ step }) => step === state.snapshot);
    const at = found < 0 ? snapshots.length : found;
    if (slider.value !== String(at)) slider.value = String(at);
    const text = inWords(snapshots[at]);
    setText(words, text);
    setAttribute(slider, "aria-valuetext", text);
  }
  return { element, render };
}

/** @param {Snapshot | undefined} snapshot */
function inWords(snapshot) {
  if (!snapshot) return "the finished model";
  const { step, epoch, accuracy } = snapshot;
  const parts = [`step ${step}`];
  if (epoch !== null && epoch !== undefined) parts.push(`epoch ${Number(epoch.toFixed(2))}`);
  if (accuracy !== null && accuracy !== undefined) parts.push(`${(100 * accuracy).toFixed(1)}% correct`);
  return parts.join(" · ");
}
