// @ts-check
/**
 * What can be changed in a model while it answers, as in `edits.py`.
 *
 *     scale     the scores of a head are multiplied before the softmax; keys that are not seen stay unseen
 *     pattern   rows of a head's pattern are replaced
 *     off       a head's z, or hidden values, become zero, their mean over training examples, or those of
 *               another example
 *     swap      z or hidden values become those that the model has while it answers another input
 *
 * `at` names a head (`encoder.0.self.3`), a site (`encoder.0.self`), a feed-forward part (`encoder.0.feed`)
 * or a layer (`encoder.0`: all its sites and its feed-forward part).
 */

/** @import {Baseline, Edit} from "../types.js" */
/** @import {Net} from "./models.js" */
/** @import {Change} from "./taps.js" */
/** @import {Tensors} from "./types.js" */

/**
 * One attention or feed-forward part, or one head of an attention.
 * @typedef {{path: string, tap: string, head: number | null}} Part
 */

/**
 * Where values come from that take the place of the model's own, by tap: z (H, T, K), hidden values (T, N).
 * Null: zeros.
 * @typedef {(to: Baseline | "swap") => Tensors | null} Source
 */

const MOST_SCALE = 100;
const SUM_TOLERANCE = 1e-3; // how far the weights of a painted row may be from a sum of 1

/**
 * What is done at which tap.
 * @param {Net} net
 * @param {Edit[]} edits
 * @param {Source} source
 * @returns {Map<string, Change[]>}
 */
export function changesOf(net, edits, source) {
  /** @type {Map<string, Change[]>} */
  const found = new Map();
  const put = (/** @type {string} */ tap, /** @type {Change} */ change) =>
    found.set(tap, [...(found.get(tap) ?? []), change]);
  for (const edit of edits) {
    switch (edit.op) {
      case "scale": {
        const { path, head } = headsAt(net, edit.at);
        put(`${path}.scores`, scaleScores(edit.by, head));
        break;
      }
      case "pattern": {
        const { path, head } = headsAt(net, edit.at);
        if (head === null) throw new Error(`a pattern is painted for one head, but ${edit.at} is a site`);
        put(`${path}.pattern`, paintRows(edit, path, head));
        break;
      }
      case "off":
      case "swap": {
        const values = source(edit.op === "swap" ? "swap" : edit.to);
        for (const part of partsAt(net, edit.at)) put(part.tap, replaced(part, values, edit.op === "swap"));
        break;
      }
    }
  }
  return found;
}

/** All taps at which parts are switched off or swapped. @param {Net} net */
export function outputTaps(net) {
  return net.blocks.flatMap((block) => wholeParts(block).map(({ tap }) => tap));
}

/** @param {Net["blocks"][number]} block @returns {Part[]} */
function wholeParts(block) {
  const sites = block.attentions.filter(({ heads }) => heads > 0).map(({ path }) => site(path, null));
  return [...sites, { path: block.feed.path, tap: `${block.feed.path}.hidden`, head: null }];
}

/** @param {string} path @param {number | null} head @returns {Part} */
const site = (path, head) => ({ path, tap: `${path}.z`, head });

/**
 * The parts that a name means.
 * @param {Net} net
 * @param {string} at
 * @returns {Part[]}
 */
function partsAt(net, at) {
  const found = net.blocks.flatMap((block) => {
    const parts = wholeParts(block);
    return block.path === at ? parts : parts.filter(({ path }) => path === at);
  });
  if (found.length || isNoHeads(net, at)) return found;
  const { path, head } = headsAt(net, at, "head, site, feed or layer");
  return [site(path, head)];
}

/** Whether an attention has lost all its heads. @param {Net} net @param {string} at */
const isNoHeads = (net, at) =>
  net.blocks.some((block) => block.attentions.some(({ path, heads }) => path === at && heads === 0));

/**
 * One head, or all heads of a site (null).
 * @param {Net} net
 * @param {string} at
 * @param {string} [what]
 * @returns {{path: string, head: number | null}}
 */
function headsAt(net, at, what = "head or site") {
  for (const { path, heads } of net.blocks.flatMap((block) => block.attentions)) {
    if (at === path) return { path, head: null };
    for (let head = 0; head < heads; head++) if (at === `${path}.${head}`) return { path, head };
  }
  throw new Error(`the model has no ${what} '${at}'`);
}

/** @param {number} by @param {number | null} head @returns {Change} */
function scaleScores(by, head) {
  if (!(by >= 0 && by <= MOST_SCALE)) throw new Error(`by is ${by}; it must be from 0 to ${MOST_SCALE}`);
  return ({ shape, data }) => {
    const [from, to] = slice(shape, head);
    for (let i = from; i < to; i++) if (data[i] !== -Infinity) data[i] *= by;
  };
}

/**
 * @param {{at: string, rows: Record<string, number[]>}} edit
 * @param {string} path
 * @param {number} head
 * @returns {Change}
 */
function paintRows({ at, rows }, path, head) {
  const grows = path.startsWith("decoder.") && path.endsWith(".self"); // keys come as the answer is said
  const painted = Object.entries(rows).map(([name, weights]) => {
    const query = Number(name);
    checkRow(name, weights);
    if (grows && weights.some((weight, key) => key > query && weight > 0)) {
      throw new Error(`the painted row ${name} of ${at} looks at tokens that come later`);
    }
    return { query, weights };
  });
  return ({ shape, data }, start) => {
    const [, queries, keys] = shape;
    for (const { query, weights } of painted) {
      if (weights.length < keys || (weights.length > keys && !grows)) {
          const counted = `${weights.length} weights for ${keys} keys`;
        throw new Error(`the painted row ${query} of ${at} has ${counted}`);
      }
      const row = query - start;
      if (row < 0 || row >= queries) continue;
      for (let j = 0; j < keys; j++) data[(head * queries + row) * keys + j] = weights[j];
    }
  };
}

/** @param {string} name @param {number[]} weights */
function checkRow(name, weights) {
  if (!/^\d{1,6}$/.test(name)) {
    throw new Error(`a painted row is named '${name}'; it must be the number of a query`);
  }
  const total = weights.reduce((sum, each) => sum + each, 0);
  if (!weights.every((each) => each >= 0) || !(Math.abs(total - 1) <= SUM_TOLERANCE)) {
    const rule = "its weights must be at least 0 and sum to 1";
    throw new Error(`the painted row ${name} sums to ${total.toPrecision(4)}; ${rule}`);
  }
}

/**
 * Put `values` in the place of a part's output. A place beyond those of `values` keeps its own value if it
 * is swapped, and takes the last one otherwise.
 * @param {Part} part
 * @param {Tensors | null} values
 * @param {boolean} swapped
 * @returns {Change}
 */
function replaced({ tap, head }, values, swapped) {
  const given = values?.[tap] ?? null;
  if (values && !given) throw new Error(`there are no values to put in the place of ${tap}`);
  return ({ shape, data }, start) => {
    const [from, to] = slice(shape, head);
    if (!given) {
      data.fill(0, from, to);
      return;
    }
    const [places, width] = shape.slice(-2);
    const known = given.shape[given.shape.length - 2];
    for (let row = from / width; row < to / width; row++) {
      const [slab, place] = [Math.floor(row / places), start + (row % places)];
      if (swapped && place >= known) continue;
      const at = (slab * known + Math.min(place, known - 1)) * width;
      data.set(given.data.subarray(at, at + width), row * width);
    }
  };
}

/** Where the numbers of one head lie, or of all. @param {number[]} shape @param {number | null} head */
function slice(shape, head) {
  const size = shape.reduce((a, b) => a * b, 1);
  return head === null ? [0, size] : [(head * size) / shape[0], ((head + 1) * size) / shape[0]];
}
