// @ts-check
/** What findings name: the heads, attentions, feed-forward parts and layers of the model. */

/** @import {Diagnosis, Finding, Subject} from "./types.js" */
/** @typedef {{at: string, heads: string[], feed: string | null}} Named  a part, and the heads in it */

/**
 * The parts that a finding names, in its order. A name without a dot may be a word of the language.
 * @param {Finding} finding @param {Subject} subject @returns {Named[]}
 */
export function partsIn(finding, subject) {
  const words = [finding.text, ...finding.evidence.map(([name]) => name)].join(" ").split(/[^\w.]+/);
  const names = new Set(words.map((word) => word.replace(/^\.+|\.+$/g, "")).filter((word) => word.includes(".")));
  return [...names].flatMap((name) => partOf(name, subject));
}

/** @param {string} at @param {Subject} subject @returns {Named[]} */
function partOf(at, { model }) {
  const all = model.sites.flatMap((site) => Array.from({ length: site.heads }, (_, index) => `${site.path}.${index}`));
  const feed = model.feeds.some(({ path }) => path === at) ? at : null;
  const layer = model.layers.find(({ path }) => path === at);
  const heads = all.filter((head) => head === at || around(head) === at || layer?.parts.includes(around(head)));
  return heads.length || feed ? [{ at, heads, feed }] : [];
}

/** The attention of a head. @param {string} head */
function around(head) {
  return head.slice(0, head.lastIndexOf("."));
}

/** The kinds of the findings that name each head. @param {Diagnosis | null} diagnosis @param {Subject} subject */
export function marksOf(diagnosis, subject) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const finding of diagnosis?.findings ?? []) {
    const heads = new Set(partsIn(finding, subject).flatMap((part) => part.heads));
    for (const head of heads) found.set(head, [...(found.get(head) ?? []), finding.kind]);
  }
  return found;
}
