// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { marksOf, partsIn } from "../../src/attnlab/explorer/js/diagnosis.js";
import { barsOf, placeIn, pointsOf, rangeOf, short, wordsOf } from "../../src/attnlab/explorer/js/views/evidence.js";
import { sentence } from "../../src/attnlab/explorer/js/views/findings.js";
import { SUBJECT } from "./fake_port.js";

/** @import {Finding} from "../../src/attnlab/explorer/js/types.js" */

/** @param {Partial<Finding>} parts @returns {Finding} */
function finding(parts) {
  return {
    kind: "heads-uniform", severity: "warning", confidence: 0.8, source: "a probe of the model", text: "", explained_by: "",
    evidence: [], curve: null, remedy: "", command: "", code: "", why: "", ...parts,
  };
}

test("a finding names heads, attentions, feed-forward parts and layers", () => {
  const text = "every head of encoder.0.self, decoder.0.cross.2 and decoder.0.feed.";
  assert.deepEqual(partsIn(finding({ text }), SUBJECT), [
    { at: "encoder.0.self", heads: ["encoder.0.self.0", "encoder.0.self.1"], feed: null },
    { at: "decoder.0.cross.2", heads: ["decoder.0.cross.2"], feed: null },
    { at: "decoder.0.feed", heads: [], feed: "decoder.0.feed" },
  ]);
  const [layer] = partsIn(finding({ evidence: [["gradient of decoder.0", 0.5]] }), SUBJECT);
  assert.deepEqual(layer.heads.map((head) => head.slice(8)), ["0.self.0", "0.self.1", "0.self.2", "0.cross.0", "0.cross.1", "0.cross.2"]);
});

test("what is no part of the model is no part of a finding", () => {
  const text = "encoder.0.self.2 of e.g. encoder.7.self at a rate of 0.1; decoder.0.selfish, encoder";
  assert.deepEqual(partsIn(finding({ text }), SUBJECT), []);
});

test("heads are marked with every kind that names them", () => {
  const findings = [finding({ text: "heads of encoder.0.self" }), finding({ kind: "heads-dead", text: "encoder.0.self.1 and encoder.0.self.1" })];
  const marks = marksOf({ findings, checked: "", unchecked: [] }, SUBJECT);
  assert.deepEqual([...marks], [["encoder.0.self.0", ["heads-uniform"]], ["encoder.0.self.1", ["heads-uniform", "heads-dead"]]]);
  assert.equal(marksOf(null, SUBJECT).size, 0);
});

test("bars are shares of the largest number, by logarithms where it is far from the smallest", () => {
  assert.deepEqual(barsOf([["a", 0.5], ["b", 2], ["c", -1], ["d", null]]).map(({ share, text }) => [share, text]), [
    [0.25, "0.5"], [1, "2"], [0, "-1"], [0, "not finite"],
  ]);
  const [small, large] = barsOf([["small", 1], ["large", 81]]);
  assert.equal(large.share, 1);
  assert.ok(Math.abs(small.share - Math.log(3) / Math.log(243)) < 1e-12);
  assert.deepEqual(barsOf([["zero", 0]]), [{ name: "zero", text: "0", share: 0 }]);
});

test("a line has a point for each number that is finite", () => {
  const same = (/** @type {number} */ value) => value;
  assert.equal(pointsOf([1, 2, null, 4], [5, null, 7, 8.25], same, (value) => 2 * value), "1.0,10.0 4.0,16.5");
  const range = rangeOf([0.1, 10]);
  assert.deepEqual([range.log, placeIn(range, 0.1), placeIn(range, 10)], [true, 0, 1]);
  assert.ok(Math.abs(placeIn(range, 1) - 0.5) < 1e-12);
  assert.equal(placeIn(rangeOf([3, 3]), 3), 0.5);
  assert.equal(placeIn({ low: 1, high: 3, log: false }, 2), 0.5);
});

test("what a picture shows can be read", () => {
  const curve = { x_label: "step", y_label: "loss", x: [1, 2, 3], lines: [{ name: "training", values: [2.34567, null, 0.5] }, { name: "other", values: [null, null, null] }] };
  assert.equal(wordsOf(curve), "loss by step: training goes from 2.346 to 0.5; other is never finite");
  assert.equal(short(123456), "123500");
  assert.equal(short(0.00004947), "4.947e-5");
  assert.equal(short(-2e7), "-2e+7");
  assert.equal(short(0), "0");
  assert.equal(sentence("the loss is high"), "The loss is high.");
  assert.equal(sentence("Why?"), "Why?");
});
