// @ts-check
/**
 * Heads switched off one after the other, their output z replaced by zeros: what is lost.
 *
 * Of many examples, points are percentage points of examples that are answered correctly, and the loss is
 * the mean of -log p over the tokens of the right answer, the tokens before each being the right ones.
 */

import { NOTHING, half, headNames, logChances, mean, percent, plain, result, signed } from "./asked.js";
import { bars } from "./figures.js";

/** @import {Edit} from "../types.js" */
/** @import {Analysis, Asked, Given} from "./asked.js" */

/**
 * @param {Asked} asked
 * @param {Given} given
 * @param {Edit[]} edits
 * @returns {Analysis}
 */
export function* ablateOne(asked, given, edits) {
  const heads = headNames(asked.sites);
  const said = asked.answer(given, edits);
  const whole = asked.look(given, edits, NOTHING);
  const before = sum(logChances(asked.logits(given, said, edits), said));
  const found = [];
  for (const [at, head] of heads.entries()) {
    const without = withoutHead(edits, head);
    const answer = asked.look(given, without, NOTHING).answer.text;
    const lost = before - sum(logChances(asked.logits(given, said, without), said));
    found.push({ head, answer, lost });
    yield [at + 1, heads.length];
  }
  found.sort((a, b) => b.lost - a.lost);
  const changed = found.filter(({ answer }) => answer !== whole.answer.text);
  const rows = found.map(({ head, answer, lost }) => [head, answer, signed(lost, 3)]);
  return result(
    "Without each head",
    [{ title: `${given.name} → ${whole.answer.text}: without each head`, columns: ["head", "answer", "log p lost"], rows }],
    [
      `${changed.length} of ${heads.length} heads change the answer when their output is set to zero.`,
      "log p lost: how much less likely the model's own answer becomes, in nats.",
    ],
    [bars("log p lost without each head", found.map(({ head, lost }) => [head, lost, signed(lost, 2)]))],
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
  const total = examples.length * (heads.length + 1);
  /** @type {{right: number[], loss: number[]}[]} */
  const found = [null, ...heads].map(() => ({ right: [], loss: [] }));
  let done = 0;
  for (const given of examples) {
    for (const [at, head] of [null, ...heads].entries()) {
      const now = head === null ? edits : withoutHead(edits, head);
      const target = given.target ?? [];
      const logits = asked.logits(given, target, now);
      found[at].loss.push(-mean(logChances(logits, target)));
      found[at].right.push(Number(allLargest(logits, target)));
      yield [++done, total];
    }
  }
  const [whole, ...each] = found;
  const rows = heads.map((head, at) => {
    const lost = each[at].right.map((right, n) => 100 * (whole.right[n] - right));
    return { head, lost: mean(lost), half: half(lost), rise: mean(each[at].loss) - mean(whole.loss) };
  });
  rows.sort((a, b) => b.lost - a.lost || b.rise - a.rise);
  const title = `${percent(mean(whole.right))} of ${examples.length} examples: points lost without each head`;
  return result(
    "Without each head",
    [
      {
        title: `${title}; ± half of the 95% interval`,
        columns: ["head", "points lost", "rise of loss"],
        rows: rows.map((row) => [row.head, `${plain(row.lost, 2)} ±${row.half.toFixed(2)}`, plain(row.rise, 4)]),
      },
    ],
    [`The output of one head at a time is set to zero. With all heads the loss is ${plain(mean(whole.loss), 4)}.`],
    [bars("points lost without each head", rows.map((row) => [row.head, row.lost, plain(row.lost, 2)]))],
  );
}

/** @param {Edit[]} edits @param {string} head @returns {Edit[]} */
function withoutHead(edits, head) {
  return [...edits, { op: "off", at: head, to: "zero" }];
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
