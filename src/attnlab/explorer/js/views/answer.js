// @ts-check
/** The answer: large, with its tokens and their probabilities, as it is and with the edits. */

import { each, h, newId, setAttribute, setText } from "../html.js";

/** @import {Answer, AnswerToken, App, Model, Scene, View} from "../types.js" */
/** @typedef {{scene: Scene, other: Scene | null, step: number | null, hover: number | null}} Shown */

const ANNOUNCE_AFTER = 600;
/** Letters of labels of which two lists fit beside each other. */
const BESIDE = 4;
/** Tokens beyond which an answer takes the whole width, each token with its bar alone. */
const MANY = 14;

/** @param {number} probability */
export function percent(probability) {
  const points = 100 * probability;
  return points > 99.95 && probability < 1 ? ">99.9%" : points < 0.05 && points > 0 ? "<0.1%" : `${points.toFixed(1)}%`;
}

/** @param {App} app @returns {View} */
export function create(app) {
  const id = newId("answer");
  const clean = createSaid(app, "As it is", "");
  const edited = createSaid(app, "With your edits", "Nothing is changed. Switch a head off, and see what happens to the answer.");
  const both = h("div", { class: "answers" }, clean.element, edited.element);
  const detail = createDetail();
  const player = createPlayer(app);
  const note = h("p", { class: "hint" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let saying;
  let said = "";

  /** @param {Model} model */
  function announceLater(model) {
    const words = inWords(model);
    if (words === said) return;
    said = words;
    clearTimeout(saying);
    saying = setTimeout(() => app.announce(words), ANNOUNCE_AFTER);
  }

  /** @param {Model} model */
  function render(model) {
    const { state, error } = model;
    const hover = hoveredToken(model);
    clean.render(model.clean, null, state.step, hover);
    edited.render(model.edited, model.clean, state.step, hover);
    detail.render(model, hover);
    player.render(model);
    setText(note, model.subject.task.note);
    const wrong = error && error.at === "edits" && !error.lost ? error.message : "";
    problem.hidden = !wrong;
    setText(problem, wrong);
    if (model.clean && !model.busy && !model.playing) announceLater(model);
  }

  const element = h("section", { class: "panel answer", "aria-labelledby": id, dataset: { name: "answer" } },
    h("div", { class: "panel-head" }, h("h2", { id }, "Answer"), note, player.element), both, problem, detail.element);
  return { element, render, destroy: () => clearTimeout(saying) };
}

/** @param {Model} model */
function inWords({ clean, edited }) {
  if (!clean) return "";
  const plain = `Answer ${clean.answer.text}, ${percent(clean.answer.probability)}.`;
  if (!edited) return plain;
  const same = edited.answer.text === clean.answer.text ? "still" : "now";
  return `${plain} With your edits ${same} ${edited.answer.text}, ${percent(edited.answer.probability)}.`;
}

/** The token of the answer that is pointed at anywhere. @param {Model} model */
export function hoveredToken({ hover, clean }) {
  const tokens = clean?.answer.tokens.length ?? 0;
  return hover && hover.side !== "input" && hover.index < tokens ? hover.index : null;
}

/** One answer with its tokens; its room is kept while there is none. @param {App} app @param {string} title @param {string} empty */
function createSaid(app, title, empty) {
  const caption = h("h3", { class: "caption" }, title);
  const text = h("p", { class: "answer-text" });
  const verdict = h("p", { class: "verdict" });
  const tokens = h("div", { class: "tokens" });
  const hint = h("p", { class: "hint" }, empty);
  const element = h("div", { class: "said" }, caption, hint, h("div", { class: "said-head" }, text, verdict), tokens);

  /** @param {number} index */
  function make(index) {
    const hover = () => app.hover({ side: "answer", index });
    const leave = () => app.hover(null);
    return h("button", { type: "button", class: "token", onpointerenter: hover, onpointerleave: leave, onfocus: hover, onblur: leave },
      h("span", { class: "unseen" }), h("span", { class: "token-label" }), " ", h("span", { class: "bar" }, h("span", { class: "bar-fill" })), " ", h("span", { class: "number" }), h("span", { class: "unseen" }));
  }

  /**
   * @param {Scene | null} scene @param {Scene | null} before @param {number | null} step
   * @param {number | null} hover
   */
  function render(scene, before, step, hover) {
    for (const each of [text, verdict, tokens]) each.hidden = !scene;
    hint.hidden = scene !== null || !empty;
    if (!scene) return;
    const { answer, input } = scene;
    const until = step ?? answer.tokens.length;
    const whole = until >= answer.tokens.length;
    setText(text, whole ? answer.text : "…");
    text.classList.toggle("long", answer.text.length > 12);
    text.classList.toggle("changed", whole && before !== null && before.answer.text !== answer.text);
    setText(verdict, whole ? verdictOf(answer, input.truth) : "");
    setAttribute(verdict, "data-correct", whole && answer.correct !== null ? String(answer.correct) : null);
    tokens.classList.toggle("single", answer.tokens.length === 1);
    element.classList.toggle("many", answer.tokens.length > MANY);
    each(tokens, answer.tokens, (_, index) => make(index), (button, token, index) => {
      const [place, label, bar, number, mark] = button.children;
      const known = index < until;
      const changed = known && before !== null && before.answer.tokens[index]?.label !== token.label;
      setText(label, known ? token.label : "·");
      setText(number, known ? percent(token.probability) : "");
      /** @type {HTMLElement} */ (bar.firstChild).style.transform = `scaleX(${known ? token.probability : 0})`;
      setText(place, `${token.place || `token ${index + 1}`}: ${known ? "" : "not yet "}`);
      setText(mark, changed ? " changed" : "");
      button.classList.toggle("changed", changed);
      button.classList.toggle("later", !known);
      button.classList.toggle("hovered", hover === index);
    });
  }
  return { element, render };
}

/** @param {Answer} answer @param {string | null} truth */
function verdictOf({ correct, probability }, truth) {
  const sure = percent(probability);
  if (correct === null) return sure;
  return correct ? `✓ correct · ${sure}` : `✗ wrong${truth === null ? "" : `, it is ${truth}`} · ${sure}`;
}

/** The token with the lowest probability; -1 where there is none. @param {AnswerToken[]} tokens */
function leastSure(tokens) {
  return tokens.reduce((found, token, index) => (found < 0 || token.probability < tokens[found].probability ? index : found), -1);
}

/** What else a token could have been: the one pointed at, else the one least certain. */
function createDetail() {
  const title = h("h3", { class: "caption" });
  const lists = h("div", { class: "both" });
  const element = h("div", { class: "detail" }, title, lists);

  /** @param {Model} model @param {number | null} hover */
  function render({ clean, edited, state }, hover) {
    const single = clean?.answer.tokens.length === 1;
    const scenes = [clean, edited].filter((scene) => scene !== null);
    const until = state.step ?? Infinity;
    const index = hover ?? leastSure((edited ?? clean)?.answer.tokens.slice(0, until) ?? []);
    const shown = index >= 0 && index < until ? scenes.flatMap(({ answer }) => answer.tokens[index] ?? []) : [];
    const place = shown[0]?.place;
    setText(title, single ? "Most probable" : !shown.length ? "" : `${hover === null ? "Least certain" : "Most probable"}: ${place || `token ${index + 1}`}`);
    lists.classList.toggle("two", shown.length > 1 && shown.every(({ top }) => top.every(([label]) => label.length <= BESIDE)));
    each(lists, shown, () => h("div", null, h("h4", { class: "number" }), h("ol", { class: "top" })), (half, token, at) => {
      const [whose, list] = half.children;
      setText(whose, at ? "with edits" : "as it is");
      /** @type {HTMLElement} */ (whose).hidden = shown.length < 2;
      each(list, token.top, () => h("li", null, h("span", { class: "top-label" }), h("span", { class: "bar" }, h("span", { class: "bar-fill" })), h("span", { class: "number" })), (item, [label, probability]) => {
        const [name, bar, number] = item.children;
        setText(name, label);
        setText(number, percent(probability));
        /** @type {HTMLElement} */ (bar.firstChild).style.transform = `scaleX(${probability})`;
      });
    });
  }
  return { element, render };
}

/** Play, pause and step through an answer of several tokens. @param {App} app */
function createPlayer(app) {
  const play = h("button", { type: "button", class: "tool", onclick: () => app.play(!app.model()?.playing) });
  const back = h("button", { type: "button", class: "tool", "aria-label": "A token back", title: "A token back", onclick: () => step(-1) }, "‹");
  const on = h("button", { type: "button", class: "tool", "aria-label": "A token on", title: "A token on", onclick: () => step(1) }, "›");
  const where = h("span", { class: "number" });
  const element = h("div", { class: "player", role: "group", "aria-label": "How the answer forms" }, back, play, on, where);

  /** @param {number} by */
  function step(by) {
    const model = app.model();
    const tokens = model?.clean?.answer.tokens.length ?? 0;
    const next = (model?.state.step ?? tokens) + by;
    app.play(false);
    if (next >= 0) app.dispatch({ type: "step", step: next < tokens ? next : null });
  }

  /** @param {Model} model */
  function render({ clean, playing, state }) {
    const tokens = clean?.answer.tokens.length ?? 0;
    element.hidden = tokens < 2;
    const at = state.step ?? tokens;
    setText(play, playing ? "‖" : "▶");
    setAttribute(play, "aria-label", playing ? "Pause" : "Play the answer token by token");
    setAttribute(play, "title", playing ? "Pause" : "Play");
    back.disabled = at <= 0;
    on.disabled = at >= tokens;
    setText(where, `${Math.min(at, tokens)}/${tokens}`);
  }
  return { element, render };
}
