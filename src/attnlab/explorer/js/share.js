// @ts-check
/** Taking away what the page shows: a link, the picture, the numbers. */

import { pictureOf } from "./picture.js";
import { fileName } from "./python_line.js";
import { toHash } from "./store.js";
import { copyText } from "./views/edits_list.js";
import { h } from "./html.js";

/** @import {App, Model, Scene, Values} from "./types.js" */

/** @param {App} app */
export function copyLink(app) {
  const model = app.model();
  if (!model) return;
  const url = new URL(location.href);
  url.search = ""; // it may hold the token of this session
  url.hash = toHash(model.state);
  copyText(app, url.href);
}

/** @param {App} app */
export function saveSvg(app) {
  const model = app.model();
  if (model) save(new Blob([pictureOf(model).text], { type: "image/svg+xml" }), `${fileName(model.state)}.svg`);
}

/** @param {App} app */
export async function savePng(app) {
  const model = app.model();
  if (!model) return;
  const { text, width, height } = pictureOf(model);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = h("img", { src: url, alt: "" });
    await image.decode();
    const canvas = h("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d")?.drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => blob && save(blob, `${fileName(model.state)}.png`), "image/png");
  } catch {
    app.tell("The browser cannot make a PNG of this; save it as SVG.");
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** @param {App} app */
export function saveNumbers(app) {
  const model = app.model();
  if (!model) return;
  const { state, clean, edited, other } = model;
  const text = JSON.stringify({ state: toHash(state), run: state.run, edits: state.edits, clean: plain(clean), edited: plain(edited), other: plain(other) });
  save(new Blob([text], { type: "application/json" }), `${fileName(model.state)}.json`);
}

/** Values as lists of numbers. @param {Scene | null} scene */
export function plain(scene) {
  return JSON.parse(JSON.stringify(scene, (_, value) => (isTyped(value) ? Array.from(value) : value)));
}

/** @param {unknown} value @returns {value is Values["data"]} */
function isTyped(value) {
  return value instanceof Float32Array || value instanceof Uint8Array;
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
