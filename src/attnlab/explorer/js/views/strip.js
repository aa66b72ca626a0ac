// @ts-check
/** The answer in one line, at the top of the window while the answer itself is scrolled away: seen where it is not read. */

import { h, setText } from "../html.js";

/** @import {Model, Scene, View} from "../types.js" */

/** Less of the answers than this is on the screen while the line is there. */
const SEEN = 0.5;
/** What is further down counts as seen: it was not scrolled away. */
const BELOW = "0px 0px 100000px";

/** @param {HTMLElement} answers  whose place it takes @returns {View} */
export function create(answers) {
  const clean = createLine("As it is");
  const edited = createLine("With your edits");
  const element = h("div", { class: "strip", "aria-hidden": "true", hidden: true }, h("div", { class: "strip-bar" }, clean.element, edited.element));
  const watcher = new IntersectionObserver((entries) => {
    const { intersectionRatio, boundingClientRect } = entries[entries.length - 1];
    element.hidden = intersectionRatio >= SEEN || boundingClientRect.height === 0;
  }, { threshold: SEEN, rootMargin: BELOW });
  watcher.observe(answers);

  /** @param {Model} model */
  function render(model) {
    clean.render(model.clean, null, model.state.step);
    edited.render(model.edited, model.clean, model.state.step);
  }
  return { element, render, destroy: () => watcher.disconnect() };
}

/** @param {string} title */
function createLine(title) {
  const text = h("b");
  const verdict = h("span", { class: "number" });
  const element = h("p", null, h("span", { class: "caption" }, title), text, verdict);

  /** @param {Scene | null} scene @param {Scene | null} before @param {number | null} step */
  function render(scene, before, step) {
    element.hidden = !scene;
    if (!scene) return;
    const { answer } = scene;
    const whole = step === null || step >= answer.tokens.length;
    setText(text, whole ? answer.text : `${answer.tokens.slice(0, step).map(({ label }) => label).join(" ")} …`);
    setText(verdict, whole && answer.correct !== null ? (answer.correct ? "✓" : "✗") : "");
    text.classList.toggle("changed", whole && before !== null && before.answer.text !== answer.text);
  }
  return { element, render };
}
