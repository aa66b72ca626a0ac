// @ts-check
/** Rows of attention patterns made by hand. A row has weights of at least 0 that sum to 1. */

/** @import {Edit, Painted, Site} from "./types.js" */

/** Decimals that a painted weight keeps, so that links stay short. */
const PRECISION = 1e4;

/** A row that looks at these keys alike. @param {number} keys @param {number[]} columns @returns {number[]} */
export function evenRow(keys, columns) {
  const chosen = new Set(columns);
  return wholeRow(Array.from({ length: keys }, (_, key) => (chosen.has(key) ? 1 : 0)));
}

/**
 * The row with `weight` at one key; the others share the rest as they did before.
 * @param {number[]} row @param {number} key @param {number} weight @returns {number[]}
 */
export function withWeight(row, key, weight) {
  const given = Math.max(0, Math.min(1, weight));
  const rest = row.reduce((sum, each, index) => (index === key ? sum : sum + each), 0);
  const others = rest > 0 ? (1 - given) / rest : 0;
  const next = row.map((each, index) => (index === key ? given : each * others));
  return wholeRow(rest > 0 ? next : next.map((each, index) => (index === key ? 1 : each)));
}

/** Rounded weights that sum to 1: the largest takes what rounding leaves. @param {number[]} row @returns {number[]} */
function wholeRow(row) {
  const total = row.reduce((sum, each) => sum + each, 0);
  const parts = row.map((each) => Math.round((each / total) * PRECISION));
  const left = PRECISION - parts.reduce((sum, each) => sum + each, 0);
  const most = parts.indexOf(Math.max(...parts));
  return parts.map((each, index) => (index === most ? each + left : each) / PRECISION);
}

/** The keys that a query can look at: tokens of an answer see none that come later. @param {Site} site @param {number} query @param {number} keys */
export function seenKeys(site, query, keys) {
  return site.queries === "answer" && site.keys === "answer" ? Math.min(keys, query + 1) : keys;
}

/** The edit that paints one more row of a head. @param {Edit[]} edits @param {string} head @param {number} query @param {number[]} row @returns {Painted} */
export function withRow(edits, head, query, row) {
  const old = edits.find((edit) => edit.op === "pattern" && edit.at === head);
  return { op: "pattern", at: head, rows: { ...(old?.op === "pattern" ? old.rows : {}), [query]: row } };
}

/** The edit without a painted row. @param {Edit[]} edits @param {string} head @param {number} query @returns {Painted} */
export function withoutRow(edits, head, query) {
  const { rows } = withRow(edits, head, query, []);
  return { op: "pattern", at: head, rows: Object.fromEntries(Object.entries(rows).filter(([key]) => key !== String(query))) };
}
