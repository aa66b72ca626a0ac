// @ts-check
/** A head over the picture: where a query looks, and what every patch receives. */

import { changeScale, glowScale, weightScale } from "../colours.js";
import { at, drawMatrix, drawPixels, largest, received } from "../draw.js";
import { each, h, setAttribute, setText } from "../html.js";
import { isHovered } from "./patterns.js";

/** @import {Scale} from "../colours.js" */
/** @import {Matrix} from "../draw.js" */
/** @import {App, Model, Patches, Scene, Site, Subject} from "../types.js" */
/** @typedef {{matrix: Matrix, scale: Scale, site: Site, scene: Scene, queries: string[], until: number}} Shown  `queries` are labels */

/** The patches that a site's keys stand for; null where they are none. @param {Subject} subject @param {Scene} scene @param {Site} site @returns {Patches | null} */
export function overPicture(subject, scene, site) {
  const { patches } = subject.model;
  const count = scene.labels.input.length;
  const whole = patches !== null && site.keys === "input" && count === patches.front + patches.rows * patches.columns;
  return whole && scene.input.pixels ? patches : null;
}

/**
 * Where a query looks, or without one what all queries give on average, patch by patch.
 * @param {Matrix} matrix @param {Scale} scale @param {Patches} patches @param {number | null} query
 * @returns {{matrix: Matrix, scale: Scale}}
 */
export function onPatches(matrix, scale, { rows, columns, front }, query) {
  const whole = query === null || query >= matrix.rows;
  const from = whole ? { data: received(matrix), offset: front } : { data: matrix.data, offset: matrix.offset + query * matrix.columns + front };
  const map = { ...from, rows, columns };
  return { matrix: map, scale: scale.low < 0 ? changeScale(largest(map)) : weightScale(largest(map)) };
}

/** @param {App} app */
export function createOverPicture(app) {
  const looks = createLit("Where the query looks");
  const gets = createLit("What each patch receives, mean over queries");
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Query" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const element = h("div", { class: "over" }, chips, h("div", { class: "over-pair" }, looks.element, gets.element), readout);
  looks.box.addEventListener("pointermove", onMove);
  looks.box.addEventListener("pointerleave", () => app.hover(null));
  looks.box.addEventListener("keydown", onKey);
  setAttribute(looks.box, "tabindex", 0);
  setAttribute(looks.box, "role", "application");
  setAttribute(looks.box, "aria-roledescription", "picture");
  /** @type {Shown | null} */
  let shown = null;
  /** @type {Patches | null} */
  let patches = null;
  let query = 0;

  /** @param {number} next */
  function choose(next) {
    if (!shown) return;
    query = Math.max(0, Math.min(shown.matrix.rows - 1, shown.until - 1, next));
    app.hover({ side: shown.site.queries, index: query });
    const model = app.model();
    if (model) render(model, shown);
  }

  /** @param {PointerEvent} event */
  function onMove(event) {
    if (!shown || !patches || shown.site.queries !== "input") return;
    const { left, top, width, height } = looks.box.getBoundingClientRect();
    const row = Math.floor(((event.clientY - top) / height) * patches.rows);
    const column = Math.floor(((event.clientX - left) / width) * patches.columns);
    if (row >= 0 && row < patches.rows && column >= 0 && column < patches.columns) choose(patches.front + row * patches.columns + column);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const columns = shown?.site.queries === "input" ? (patches?.columns ?? 1) : 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(query + step);
  }

  /** @param {Model} model @param {Shown} next */
  function render(model, next) {
    shown = next;
    patches = model.subject.model.patches;
    const { site, scene, matrix } = next;
    if (!patches || !scene.input.pixels) return;
    const hovered = Array.from({ length: matrix.rows }, (_, index) => index).find((index) => isHovered(model, site.queries, index));
    query = Math.max(0, Math.min(hovered ?? query, matrix.rows - 1, next.until - 1));
    const names = next.queries;
    renderChips(names, site.queries === "input" ? patches.front : names.length);
    const pixels = scene.input.pixels;
    const own = site.queries === "input" && query >= patches.front ? query - patches.front : null;
    const row = matrix.data.subarray(matrix.offset + query * matrix.columns, matrix.offset + (query + 1) * matrix.columns);
    looks.render(pixels, row, patches, next.scale, own);
    gets.render(pixels, received({ ...matrix, rows: Math.max(1, next.until) }), patches, next.scale, null);
    setAttribute(looks.box, "aria-label", `Query ${names[query] ?? query}. Arrow keys choose another.`);
    setText(readout, words(next, names, scene.labels.input));
  }

  /** @param {string[]} names @param {number} count */
  function renderChips(names, count) {
    chips.hidden = count === 0;
    each(chips, names.slice(0, count), (_, index) => h("button", { type: "button", class: "chip", onpointerenter: () => choose(index), onclick: () => choose(index), onfocus: () => choose(index) }), (chip, name, index) => {
      setText(chip, name);
      setAttribute(chip, "aria-pressed", String(index === query));
    });
  }

  /** @param {Shown} given @param {string[]} names @param {string[]} keys */
  function words({ matrix }, names, keys) {
    let most = 0;
    for (let key = 1; key < matrix.columns; key += 1) if (at(matrix, query, key) > at(matrix, query, most)) most = key;
    const front = keys.slice(0, patches?.front ?? 0).map((name, key) => `; ${name} gets ${at(matrix, query, key).toFixed(3)}`);
    return `${names[query] ?? query} looks most at ${keys[most]} with ${at(matrix, query, most).toFixed(3)}${front.join("")}`;
  }

  return { element, render };
}

/** A picture with a heat map of its patches over it. @param {string} words */
function createLit(words) {
  const below = h("canvas", { class: "pixels", width: 1, height: 1, "aria-hidden": "true" });
  const above = h("canvas", { class: "glow", width: 1, height: 1, "aria-hidden": "true" });
  const mark = h("div", { class: "cell-mark", hidden: true });
  const box = h("div", { class: "lit" }, below, above, mark);
  const element = h("figure", { class: "over-figure" }, box, h("figcaption", null, words));
  /** @type {unknown} */
  let pictured = null;

  /**
   * @param {import("../types.js").Values} pixels @param {Float32Array | Uint8Array} weights with those of front tokens
   * @param {Patches} patches @param {Scale} scale @param {number | null} own
   */
  function render(pixels, weights, { rows, columns, front }, scale, own) {
    if (pictured !== pixels) {
      drawPixels(below, pixels);
      box.style.aspectRatio = `${pixels.shape[2]} / ${pixels.shape[1]}`;
      pictured = pixels;
    }
    const most = Math.max(...weights.slice(front).map(Math.abs)) || 1;
    drawMatrix(above, { data: weights, offset: front, rows, columns }, scale.low < 0 ? changeScale(most) : glowScale(most));
    mark.hidden = own === null;
    if (own === null) return;
    mark.style.left = `${(100 * (own % columns)) / columns}%`;
    mark.style.top = `${(100 * Math.floor(own / columns)) / rows}%`;
    mark.style.width = `${100 / columns}%`;
    mark.style.height = `${100 / rows}%`;
  }
  return { element, box, render };
}
