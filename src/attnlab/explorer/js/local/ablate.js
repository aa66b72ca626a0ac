// @ts-check
/**
 * Heads switched off one after the other: what is lost. What takes the place of a head's output z is its mean
 * over training examples at each place, zeros, or what it is for one other example (resample), as where a head
 * is switched off by hand. Heads are ranked by the first.
 *
 * Of many examples, points are percentage points of examples that are answered correctly, and the loss is
 * the mean of -log p over the tokens of the right answer, the tokens before each being the right ones.
 */

import { NOTHING, half, headNames, logChances, mean, percent, plain, result, signed } from "./asked.js";
import { bars } from "./figures.js";

/** @import {Baseline, Edit} from "../types.js" */
/** @import {Analysis, Asked, Given} from "./asked.js" */

/** @type {Baseline[]} */
const ONE = ["mean", "zero"];
/** @type {Baseline[]} */
const MANY = ["mean", "zero", "resample"];

/**
 * @param {Asked} asked
 * @param {Given} given
 * @param {Edit[]} edits
 * @returns {Analysis}
 */
export function* ablateOne(asked, given, edits) {
  const heads = headNames(asked.sites);
  const said = asked.answer(given, edits);
  const whole = asked.look(given, edits, NOTHING).answer.text;
  const before = sum(logChances(asked.logits(given, said, edits), said));
  /** @type {{head: string, answers: string[], lost: number[]}[]} */
  const found = heads.map((head) => ({ head, answers: [], lost: [] }));
  let done = 0;
  for (const row of found) {
    for (const to of ONE) {
      const without = withoutHead(edits, row.head, to);
      row.answers.push(asked.look(given, without, NOTHING).answer.text);
      row.lost.push(before - sum(logChances(asked.logits(given, said, without), said)));
      yield [++done, heads.length * ONE.length];
    }
  }
  found.sort((a, b) => b.lost[0] - a.lost[0]);
  const changed = ONE.map((to, at) => `${found.filter(({ answers }) => answers[at] !== whole).length} towards ${to}`);
  return result(
    "Without each head",
    [
      {
        title: `${given.name} → ${whole}: without each head`,
        columns: ["head", ...ONE.flatMap((to) => [`${to}: answer`, `${to}: log p lost`])],
        rows: found.map(({ head, answers, lost }) => [head, ...ONE.flatMap((_, at) => [answers[at], signed(lost[at], 3)])]),
      },
    ],
    [
      `Of ${heads.length} heads, so many change the answer when they are switched off: ${changed.join(", ")}.`,
      "log p lost: how much less likely the model's own answer becomes, in nats.",
    ],
    [bars(`log p lost without each head, towards ${ONE[0]}`, found.map(({ head, lost }) => [head, lost[0], signed(lost[0], 2)]))],
  );
}

/**
 * @param {Asked} asked
 * @param {Given[]} examples with their targets
 * @param {Edit[]} edits
 * @returns {Analysis}
 */
export function* ablateMany(asked, examples, edits) {
  const heads = headNames(asked.sites);
  const variants = [edits, ...heads.flatMap((head) => MANY.map((to) => withoutHead(edits, head, to)))];
  /** @type {{right: number[], loss: number[]}[]} */
  const found = variants.map(() => ({ right: [], loss: [] }));
  let done = 0;
  for (const given of examples) {
    for (const [at, now] of variants.entries()) {
      const target = given.target ?? [];
      const logits = asked.logits(given, target, now);
      found[at].loss.push(-mean(logChances(logits, target)));
      found[at].right.push(Number(allLargest(logits, target)));
      yield [++done, examples.length * variants.length];
    }
  }
  const [whole, ...each] = found;
  const rows = heads.map((head, at) => {
    const own = each.slice(at * MANY.length, (at + 1) * MANY.length);
    const lost = own.map(({ right }) => right.map((one, n) => 100 * (whole.right[n] - one)));
    return { head, lost, points: mean(lost[0]), rise: mean(own[0].loss) - mean(whole.loss) };
  });
  rows.sort((a, b) => b.points - a.points || b.rise - a.rise);
  const title = `${percent(mean(whole.right))} of ${examples.length} examples: points lost without each head`;
  return result(
    "Without each head",
    [
      {
        title: `${title}, by what takes its place; ± half of the 95% interval`,
        columns: ["head", ...MANY, "rise of loss"],
        rows: rows.map(({ head, lost, rise }) => [head, ...lost.map((each) => `${plain(mean(each), 2)} ±${half(each).toFixed(2)}`), plain(rise, 4)]),
      },
    ],
    [`With all heads the loss is ${plain(mean(whole.loss), 4)}; it rises by so much towards ${MANY[0]}.`],
    [bars(`points lost without each head, towards ${MANY[0]}`, rows.map(({ head, points }) => [head, points, plain(points, 2)]))],
  );
}

/** @param {Edit[]} edits @param {string} head @param {Baseline} to @returns {Edit[]} */
function withoutHead(edits, head, to) {
  return [...edits, { op: "off", at: head, to }];
}

/**
 * Whether each token of an answer has the largest logit: greedy decoding then says it.
 * @param {import("../types.js").Values} logits
 * @param {number[]} tokens
 */
function allLargest({ shape, data }, tokens) {
  const width = shape[shape.length - 1];
  return tokens.every((token, t) => {
    const row = data.subarray(t * width, (t + 1) * width);
    return row.every((logit) => logit <= row[token]);
  });
}

/** @param {number[]} values */
function sum(values) {
  return values.reduce((total, each) => total + each, 0);
}
