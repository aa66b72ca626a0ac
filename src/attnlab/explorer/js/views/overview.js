// @ts-check
/** All heads by layer and site as small pictures, which choose a head, switch it off, or swap it. */

import { drawMatrix, headOf, watcher } from "../draw.js";
import { marksOf } from "../diagnosis.js";
import { coverOf, indexOf, isTouched, parentOf, siteOf, siteWords } from "../edits.js";
import { each, fill, h, setAttribute, setText } from "../html.js";
import { onPatches, overPicture } from "./over_picture.js";
import { isHovered, rowsSaid, scaleOf, shownPattern, shownScene } from "./patterns.js";
import { createShowing } from "./showing.js";

/** @import {App, Baseline, Diagnosis, Model, Patches, Site, Subject} from "../types.js" */
/** @import {Scale} from "../colours.js" */
/** @import {Matrix} from "../draw.js" */
/** @typedef {{head: string, site: Site, element: HTMLElement, choose: HTMLButtonElement, canvas: HTMLCanvasElement, row: HTMLElement, column: HTMLElement, toggle: HTMLButtonElement, drawn: unknown[]}} Thumb */
/** @typedef {{head: string, element: HTMLElement, canvas: HTMLCanvasElement, drawn: unknown[]}} Lent  a head of the second input */
/** @typedef {{at: string, button: HTMLButtonElement}} Part  what is switched off as a whole */

/** Pixels a pointer moves before a press is a drag. */
const DRAG = 6;

/** @param {App} app @param {() => void} chosen  after a head was chosen by pressing it */
export function createOverview(app, chosen) {
  const bar = createBar(app);
  const rows = h("div", { class: "layers", role: "group", "aria-label": "All heads. Arrow keys move, Enter chooses, o switches off", onkeydown: onKey });
  const element = h("section", { class: "panel overview", "aria-label": "All heads", dataset: { name: "overview" } }, bar.element, rows);
  const view = watcher(() => app.model() && draw(/** @type {Model} */ (app.model())));
  /** @type {Subject | null} */
  let subject = null;
  /** @type {Thumb[]} */
  let thumbs = [];
  /** @type {Lent[]} */
  let lent = [];
  /** @type {Part[]} */
  let parts = [];
  /** @type {HTMLElement[]} */
  let strips = [];
  /** The diagnosis whose heads are marked. @type {Diagnosis | null} */
  let marked = null;
  /** @type {Map<string, HTMLElement>} */
  const rowOf = new Map();

  /** @param {string} at */
  function off(at) {
    const model = app.model();
    if (model) app.dispatch(toggleAction(model, at));
  }

  /** @param {Subject} given */
  function build(given) {
    subject = given;
    [thumbs, lent, parts, strips] = [[], [], [], []];
    marked = null;
    rowOf.clear();
    const listed = new Set(given.model.layers.flatMap((layer) => layer.parts));
    const alone = given.model.sites.filter(({ path }) => !listed.has(path));
    fill(rows, given.model.layers.map((layer) => buildLayer(layer.path, layer.parts)), alone.map(({ path }) => buildSite(path)));
    thumbs.forEach(({ element: each }) => view.watch(each));
  }

  /** @param {string} path @param {string[]} inside */
  function buildLayer(path, inside) {
    const feeds = next(inside, false).map((feed) => h("span", { class: "layer-part" }, lastOf(feed), part(feed, `the feed-forward part ${feed}`)));
    const row = h("div", { class: "layer" },
      h("div", { class: "layer-head" }, h("h3", null, path), feeds, h("span", { class: "layer-part" }, "all", part(path, `the whole layer ${path}`))),
      next(inside, true).map(buildSite));
    rowOf.set(path, row);
    return row;
  }

  /** The sites among paths, or the others. @param {string[]} paths @param {boolean} sites */
  function next(paths, sites) {
    return paths.filter((path) => subject?.model.sites.some((site) => site.path === path) === sites);
  }

  /** @param {string} path */
  function buildSite(path) {
    const site = /** @type {Site} */ (subject?.model.sites.find((each) => each.path === path));
    const strip = h("div", { class: "thumbs lent", hidden: true }, heads(site).map(buildLent), lendAll(path));
    strips.push(strip);
    const row = h("div", { class: "site" },
      h("div", { class: "site-head" }, h("span", { class: "site-name" }, lastOf(path)), part(path, `all heads of ${path}`), h("span", { class: "site-words" }, siteWords(site))),
      h("div", { class: "thumbs" }, heads(site).map((head) => buildThumb(head, site))), strip);
    rowOf.set(path, row);
    return row;
  }

  /** What is switched off as a whole. @param {string} at @param {string} words */
  function part(at, words) {
    const button = switchButton(at, words);
    parts.push({ at, button });
    return button;
  }

  /** @param {string} at @param {string} words */
  function switchButton(at, words) {
    return h("button", { type: "button", class: "switch", "aria-label": `Switch off ${words}`, title: `Switch off ${words}`, dataset: { off: at }, onclick: () => off(at) });
  }

  /** @param {string} head @param {Site} site */
  function buildThumb(head, site) {
    const canvas = h("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const [row, column] = ["thumb-row", "thumb-column"].map((name) => h("span", { class: name, hidden: true }));
    const choose = h("button", { type: "button", class: "thumb-choose", tabindex: -1, onclick: () => { app.dispatch({ type: "choose", head }); chosen(); } },
      h("span", { class: "thumb-map" }, canvas, row, column), h("span", { class: "thumb-name" }, lastOf(head)));
    const toggle = switchButton(head, head);
    toggle.tabIndex = -1;
    const box = h("div", { class: "thumb", dataset: { head } }, choose, toggle);
    thumbs.push({ head, site, element: box, choose, canvas, row, column, toggle, drawn: [] });
    return box;
  }

  /** @param {string} head */
  function buildLent(head) {
    const canvas = h("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const words = `Take ${head} from the second input`;
    const box = h("button", { type: "button", class: "lent-head", "aria-label": words, title: `${words}: press, or drag onto A`, dataset: { lent: head } }, canvas);
    makeDraggable(app, box, head);
    lent.push({ head, element: box, canvas, drawn: [] });
    return box;
  }

  /** All heads of a site at once. @param {string} path */
  function lendAll(path) {
    const words = `Take all heads of ${path} from the second input`;
    return h("button", { type: "button", class: "lent-all", "aria-label": words, title: words, dataset: { swap: path }, onclick: () => app.dispatch({ type: "edit", edit: { op: "swap", at: path } }) }, "B");
  }

  /** @param {Model} model */
  function draw(model) {
    for (const thumb of thumbs) {
      if (!view.sees(thumb.element)) continue;
      const values = [model.clean, model.edited].map((scene) => scene?.patterns[thumb.site.path]);
      const patches = patchesOf(model, thumb.site);
      const query = patches && hoveredQuery(model, thumb.site);
      markHovered(model, thumb, patches !== null);
      const now = [...values, model.state.show, model.state.step, query];
      if (same(now, thumb.drawn)) continue;
      thumb.drawn = now;
      const shown = shownPattern(model, thumb.head);
      if (shown && patches) drawOnPatches(thumb.canvas, shown.matrix, shown.scale, patches, query);
      else if (shown) drawMatrix(thumb.canvas, shown.matrix, shown.scale, rowsSaid(model, thumb.site, shown.matrix.rows));
    }
    for (const each of model.other ? lent : []) {
      const values = model.other?.patterns[parentOf(each.head)];
      if (!values || same([values], each.drawn)) continue;
      each.drawn = [values];
      const matrix = headOf(values, indexOf(each.head));
      const site = siteOf(model.subject, each.head);
      const patches = site && patchesOf(model, site);
      if (patches) drawOnPatches(each.canvas, matrix, scaleOf(matrix), patches, null);
      else drawMatrix(each.canvas, matrix, scaleOf(matrix));
    }
  }

  /** Mark the heads that findings name. @param {Model} model */
  function mark(model) {
    marked = model.diagnosis;
    const kinds = marksOf(marked, model.subject);
    for (const { head, element: box } of thumbs) {
      const named = kinds.get(head) ?? [];
      box.title = named.join(", ");
      box.classList.toggle("found", named.length > 0);
    }
  }

  /** @param {Model} model @param {string} chosen */
  function render(model, chosen) {
    if (subject !== model.subject) build(model.subject);
    bar.render(model);
    const { edits } = model.state;
    if (marked !== model.diagnosis) mark(model);
    for (const { head, element: box, choose, toggle } of thumbs) {
      const cover = coverOf(model.subject, edits, head);
      const isChosen = head === chosen;
      box.classList.toggle("chosen", isChosen);
      box.classList.toggle("off", cover?.op === "off");
      box.classList.toggle("swapped", cover?.op === "swap");
      box.classList.toggle("touched", !cover && isTouched(model.subject, edits, head));
      setAttribute(choose, "aria-pressed", String(isChosen));
      setAttribute(choose, "aria-label", `${head}${cover ? (cover.op === "off" ? ", switched off" : ", from the second input") : ""}${box.title && `, ${box.title}`}`);
      setAttribute(choose, "tabindex", isChosen ? 0 : -1);
      setAttribute(toggle, "aria-pressed", String(cover?.op === "off"));
    }
    for (const { at, button } of parts) {
      const isOff = coverOf(model.subject, edits, at)?.op === "off";
      setAttribute(button, "aria-pressed", String(isOff));
      rowOf.get(at)?.classList.toggle("off", isOff);
    }
    strips.forEach((strip) => { strip.hidden = model.state.other === null; });
    draw(model);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const at = thumbs.findIndex(({ choose }) => choose === event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "o") off(thumbs[at].head);
    else if (!move(at, event.key)) return;
    event.preventDefault();
  }

  /** @param {number} at @param {string} key */
  function move(at, key) {
    const row = heads(thumbs[at].site).length;
    const jump = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : key === "ArrowDown" ? row : key === "ArrowUp" ? -row : 0;
    const next = thumbs[at + jump];
    if (!jump) return false;
    next?.choose.focus();
    if (next) app.dispatch({ type: "choose", head: next.head });
    return true;
  }

  return { element, render, destroy: () => view.stop() };
}

/** What switches a part off, or on again: as it is off now, whole or as part of something. @param {Model} model @param {string} at @returns {import("../types.js").Action} */
export function toggleAction({ state }, at) {
  const old = state.edits.findIndex((edit) => edit.op === "off" && edit.at === at);
  return old >= 0 ? { type: "remove", index: old } : { type: "edit", edit: { op: "off", at, to: state.to } };
}

/** @param {Site} site */
function heads({ path, heads: count }) {
  return Array.from({ length: count }, (_, index) => `${path}.${index}`);
}

/** The patches that a site looks at, where it looks at a picture. @param {Model} model @param {Site} site */
function patchesOf(model, site) {
  const scene = shownScene(model);
  return scene && overPicture(model.subject, scene, site);
}

/** @param {Model} model @param {Site} site */
function hoveredQuery(model, site) {
  return model.hover && isHovered(model, site.queries, model.hover.index) ? model.hover.index : null;
}

/** @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {Scale} scale @param {Patches} patches @param {number | null} query */
function drawOnPatches(canvas, matrix, scale, patches, query) {
  const map = onPatches(matrix, scale, patches, query);
  drawMatrix(canvas, map.matrix, map.scale);
}

/** Mark the token that is pointed at, where its row or column is. @param {Model} model @param {Thumb} thumb @param {boolean} asPicture */
function markHovered(model, { site, row, column }, asPicture) {
  const labels = shownScene(model)?.labels;
  const index = model.hover?.index ?? -1;
  /** @type {[HTMLElement, "queries" | "keys", "top" | "left", "height" | "width"][]} */
  const marks = [[row, "queries", "top", "height"], [column, "keys", "left", "width"]];
  for (const [mark, name, start, size] of marks) {
    const count = labels?.[site[name]].length ?? 0;
    const hidden = asPicture || index >= count || !isHovered(model, site[name], index);
    if (mark.hidden !== hidden) mark.hidden = hidden;
    if (hidden) continue;
    mark.style[start] = `${(100 * index) / count}%`;
    mark.style[size] = `${100 / count}%`;
  }
}

/** `self` of `encoder.0.self`. @param {string} path */
function lastOf(path) {
  return path.slice(path.lastIndexOf(".") + 1);
}

/** @param {unknown[]} a @param {unknown[]} b */
function same(a, b) {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}

/** What takes the place of what is off, and what is shown. @param {App} app */
function createBar(app) {
  const to = h("select", { onchange: () => app.dispatch({ type: "baseline", to: /** @type {Baseline} */ (to.value) }) });
  const show = createShowing(app, { difference: true });
  const toLabel = h("label", null, "Off means ", to);
  /** @param {Model} model */
  function render(model) {
    const { subject, state } = model;
    each(to, subject.baselines, () => h("option"), (option, name) => {
      option.value = name;
      setText(option, name);
    });
    toLabel.hidden = !subject.baselines.length;
    if (to.value !== state.to) to.value = state.to;
    show.render(model);
  }
  return { element: h("div", { class: "bar-row" }, toLabel, show.element), render };
}

/** A head of B that is pressed, or dragged onto the same head of A. @param {App} app @param {HTMLElement} box @param {string} head */
function makeDraggable(app, box, head) {
  /** @type {{x: number, y: number, ghost: HTMLElement | null} | null} */
  let held = null;
  let dragged = false;

  /** Dropped a second time it stays; the button takes it back. */
  function lend() {
    const there = app.model()?.state.edits.some((edit) => edit.op === "swap" && edit.at === head);
    if (!there) app.dispatch({ type: "edit", edit: { op: "swap", at: head } });
  }
  /** @param {PointerEvent} event */
  function target(event) {
    const under = document.elementFromPoint(event.clientX, event.clientY);
    const thumb = under?.closest("[data-head]");
    return thumb instanceof HTMLElement && app.root.contains(thumb) ? thumb : null;
  }
  /** @param {HTMLElement | null} over */
  function light(over) {
    for (const each of app.root.querySelectorAll(".drop")) each.classList.remove("drop");
    if (over?.dataset.head === head) over.classList.add("drop");
  }
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = { x: event.clientX, y: event.clientY, ghost: null };
    dragged = false;
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (!held) return;
    const far = Math.hypot(event.clientX - held.x, event.clientY - held.y) > DRAG;
    if (!held.ghost && far) {
      dragged = true;
      held.ghost = ghostOf(box);
      app.root.append(held.ghost);
    }
    if (!held.ghost) return;
    held.ghost.style.transform = `translate(${event.clientX}px, ${event.clientY}px)`;
    light(target(event));
  });
  const end = (/** @type {PointerEvent} */ event) => {
    if (!held) return;
    const over = held.ghost && event.type === "pointerup" ? target(event) : null;
    held.ghost?.remove();
    held = null;
    light(null);
    if (over?.dataset.head === head) lend();
    else if (over) app.tell(`${head} of B fits only ${head} of A.`);
  };
  box.addEventListener("pointerup", end);
  box.addEventListener("pointercancel", end);
  box.addEventListener("click", () => {
    if (!dragged) app.dispatch({ type: "edit", edit: { op: "swap", at: head } });
    dragged = false;
  });
}

/** @param {HTMLElement} box */
function ghostOf(box) {
  const from = /** @type {HTMLCanvasElement} */ (box.querySelector("canvas"));
  const copy = h("canvas", { width: from.width, height: from.height });
  copy.getContext("2d")?.drawImage(from, 0, 0);
  return h("div", { class: "ghost", "aria-hidden": "true" }, copy);
}
