// @ts-check
/**
 * Where every head looks, as `analysis/heads.py`: means over the rows of the patterns A of examples, with n
 * the number of keys that a query may see. Rows that see one key are left out.
 *
 *     entropy    - sum of A ln A, divided by ln n: 1 for uniform attention
 *     sparsity   (sqrt(n) - 1 / |A|) / (sqrt(n) - 1): 0 for uniform attention, 1 if one key gets all
 *     diagonal   weight on the own token           previous   on the token before
 *     distance   the mean distance to a key, in tokens
 *
 * The last three are those of self attention.
 */

import { half, mean, result } from "./asked.js";

/** @import {Edit, Site, Values} from "../types.js" */
/** @import {Analysis, Asked, Given} from "./asked.js" */

/** @typedef {Record<string, [number, number][]>} Sums by metric for each example a sum over rows, and their number */

const PATTERNS = { patterns: true, guesses: false, neurons: null };
const OF_TOKENS = ["diagonal", "previous", "distance"];

/**
 * @param {Asked} asked
 * @param {Given[]} examples
 * @param {Edit[]} edits
 * @returns {Analysis}
 */
export function* measureHeads(asked, examples, edits) {
  /** @type {Map<string, Sums>} */
  const found = new Map();
  for (const [at, given] of examples.entries()) {
    const { patterns } = asked.look(given, edits, PATTERNS);
    for (const site of asked.sites) {
      const pattern = patterns[site.path];
      for (let head = 0; head < site.heads; head++) {
        add(found, `${site.path}.${head}`, measured(pattern, head, site, asked.window));
      }
    }
    yield [at + 1, examples.length];
  }
  const kinds = new Set(asked.sites.map((site) => `${site.stack} ${site.kind}`));
  const tables = [...kinds].map((kind) => {
    const sites = asked.sites.filter((site) => `${site.stack} ${site.kind}` === kind);
    return table(kind, sites, found, examples.length);
  });
  return result("Where heads look", tables, [
    "entropy: 1 for uniform attention, 0 if one key gets all. sparsity: the other way round.",
    "diagonal and previous: weight on the own token and on the one before. distance: mean, in tokens.",
  ]);
}

/** @param {Map<string, Sums>} found @param {string} head @param {Record<string, number[]>} rows */
function add(found, head, rows) {
  const sums = found.get(head) ?? {};
  for (const [name, values] of Object.entries(rows)) {
    (sums[name] ??= []).push([values.reduce((sum, value) => sum + value, 0), values.length]);
  }
  found.set(head, sums);
}

/**
 * The rows of one head, by metric.
 * @param {Values} pattern (H, T, S)
 * @param {number} head
 * @param {Site} site
 * @param {number} window
 * @returns {Record<string, number[]>}
 */
function measured({ shape, data }, head, site, window) {
  const [, queries, keys] = shape;
  /** @type {Record<string, number[]>} */
  const rows = {};
  const note = (/** @type {string} */ name, /** @type {number} */ value) => (rows[name] ??= []).push(value);
  for (let t = 0; t < queries; t++) {
    const seen = keysSeen(site, t, keys, window);
    if (seen < 2) continue;
    const start = (head * queries + t) * keys;
    const row = [...data.subarray(start, start + keys)];
    note("entropy", row.reduce((sum, a) => sum - (a > 0 ? a * Math.log(a) : 0), 0) / Math.log(seen));
    const norm = Math.sqrt(row.reduce((sum, a) => sum + a * a, 0));
    note("sparsity", (Math.sqrt(seen) - 1 / norm) / (Math.sqrt(seen) - 1));
    if (site.kind === "cross") continue;
    note("diagonal", row[t]);
    if (t > 0) note("previous", row[t - 1]);
    note("distance", row.reduce((sum, a, key) => sum + a * Math.abs(t - key), 0));
  }
  return rows;
}

/**
 * @param {Site} site
 * @param {number} query
 * @param {number} keys
 * @param {number} window
 */
function keysSeen(site, query, keys, window) {
  if (site.queries === "answer" && site.kind === "self") return query + 1;
  if (site.kind === "cross" || !window) return keys;
  return Math.min(keys - 1, query + window) - Math.max(0, query - window) + 1;
}

/** @param {string} kind @param {Site[]} sites @param {Map<string, Sums>} found @param {number} count */
function table(kind, sites, found, count) {
  const names = ["entropy", "sparsity", ...(sites[0].kind === "cross" ? [] : OF_TOKENS)];
  const heads = sites.flatMap((site) => Array.from({ length: site.heads }, (_, n) => `${site.path}.${n}`));
  const rows = heads.map((head) => [head, ...names.map((name) => cell(found.get(head)?.[name] ?? []))]);
  const many = count === 1 ? "1 example" : `${count} examples, ± half of the 95% interval`;
  return { title: `${kind}: ${many}`, columns: ["", ...names], rows };
}

/**
 * The mean over all rows, with half of its 95% interval over examples, that of a ratio of two sums.
 * @param {[number, number][]} examples
 */
function cell(examples) {
  if (!examples.length) return "";
  const rows = mean(examples.map(([, count]) => count));
  const value = mean(examples.map(([sum]) => sum)) / rows;
  const away = examples.map(([sum, count]) => (sum - value * count) / rows);
  return value.toFixed(3) + (examples.length > 1 ? ` ±${half(away).toFixed(3)}` : "");
}
