// @ts-check
/** Edits in words, which of them apply, and which parts of a model they concern. */

import { editText } from "./store.js";

/** @import {Baseline, Edit, Scene, Site, State, Subject} from "./types.js" */

export { editText };

/** @type {{[name in Baseline]: string}} */
export const BASELINE_WORDS = {
  zero: "zero",
  mean: "its mean over training examples",
  resample: "its value for another example",
};

/** The site of a head or of a site. @param {Subject} subject @param {string} at @returns {Site | null} */
export function siteOf(subject, at) {
  return subject.model.sites.find(({ path }) => at === path || parentOf(at) === path) ?? null;
}

/** `encoder.0.self` of `encoder.0.self.3`. @param {string} path */
export function parentOf(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}

/** The number at the end of a head's name. @param {string} head */
export function indexOf(head) {
  return Number(head.slice(head.lastIndexOf(".") + 1));
}

/** Whether `name` is a head of the subject. @param {Subject} subject @param {string} name */
export function isHead(subject, name) {
  const site = subject.model.sites.find(({ path }) => path === parentOf(name));
  return site !== undefined && /\.\d+$/.test(name) && indexOf(name) < site.heads;
}

/** The places at which an edit reaches `at`: itself and all it is part of. @param {Subject} subject @param {string} at */
export function holders(subject, at) {
  const own = isHead(subject, at) ? [at, parentOf(at)] : [at];
  const last = String(own.at(-1));
  return [...own, ...subject.model.layers.filter((layer) => layer.parts.includes(last)).map(({ path }) => path)];
}

/** The edit by which `at` is off or swapped, whole or as part of something: the last one counts. @param {Subject} subject @param {Edit[]} edits @param {string} at */
export function coverOf(subject, edits, at) {
  const places = holders(subject, at);
  return edits.filter((edit) => (edit.op === "off" || edit.op === "swap") && places.includes(edit.at)).at(-1) ?? null;
}

/** Whether any edit concerns `at`. @param {Subject} subject @param {Edit[]} edits @param {string} at */
export function isTouched(subject, edits, at) {
  const places = holders(subject, at);
  return edits.some((edit) => places.includes(edit.at));
}

/**
 * The edits that can be made on this input: swaps need another input, and painted rows as many keys as there
 * are.
 * @param {State} state @param {Subject} subject @param {Scene | null} scene @returns {Edit[]}
 */
export function activeEdits(state, subject, scene) {
  return state.edits.filter((edit) => whyIdle(edit, state, subject, scene) === "");
}

/**
 * Why an edit does nothing for now; empty where it does.
 * @param {Edit} edit @param {State} state @param {Subject} subject @param {Scene | null} scene
 */
export function whyIdle(edit, state, subject, scene) {
  if (edit.op === "swap" && !state.other) return "needs a second input";
  if (edit.op !== "pattern" || !scene) return "";
  const site = siteOf(subject, edit.at);
  if (!site) return "";
  const keys = scene.labels[site.keys].length;
  const fits = Object.values(edit.rows).every((row) => row.length === keys);
  const within = Object.keys(edit.rows).every((query) => Number(query) < scene.labels[site.queries].length);
  return fits && within ? "" : `was painted for an input of another length`;
}

/** @param {Edit} edit */
export function inWords(edit) {
  switch (edit.op) {
    case "off": return `${edit.at} off: ${BASELINE_WORDS[edit.to]} instead`;
    case "scale": return `${edit.at}: scores times ${edit.by}`;
    case "swap": return `${edit.at} comes from the second input`;
    case "pattern": {
      const rows = Object.keys(edit.rows);
      return `${edit.at}: ${rows.length === 1 ? "row" : "rows"} ${rows.join(", ")} painted`;
    }
  }
}

/** What a site does, for people. @param {Site} site */
export function siteWords(site) {
  return site.queries === site.keys ? `${site.queries} looks at itself` : `${site.queries} looks at ${site.keys}`;
}
