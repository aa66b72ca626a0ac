// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeScale, colourOf, glowScale, gradient, inkOn, pixelOf, weightScale } from "../../src/attnlab/explorer/js/colours.js";
import { at, headOf, largest, minus, received, rowOf } from "../../src/attnlab/explorer/js/draw.js";
import { activeEdits, coverOf, holders, inWords, isHead, isTouched, whyIdle } from "../../src/attnlab/explorer/js/edits.js";
import { evenRow, seenKeys, withRow, withWeight, withoutRow } from "../../src/attnlab/explorer/js/painting.js";
import { namesPixels, pythonLine, quoted, wrappedLine } from "../../src/attnlab/explorer/js/python_line.js";
import { plain } from "../../src/attnlab/explorer/js/share.js";
import { emptyState } from "../../src/attnlab/explorer/js/store.js";
import { percent } from "../../src/attnlab/explorer/js/views/answer.js";
import { countOf, jobOf } from "../../src/attnlab/explorer/js/views/ask.js";
import { gridOf, ranked } from "../../src/attnlab/explorer/js/views/guesses.js";
import { factorAt, placeOf } from "../../src/attnlab/explorer/js/views/head.js";
import { chosenHead } from "../../src/attnlab/explorer/js/views/heads.js";
import { peaks } from "../../src/attnlab/explorer/js/views/neurons.js";
import { toggleAction } from "../../src/attnlab/explorer/js/views/overview.js";
import { leftWords, timeWords } from "../../src/attnlab/explorer/js/views/running.js";
import { isHovered, labelsSaid, rowsSaid, shownPattern } from "../../src/attnlab/explorer/js/views/patterns.js";
import { SUBJECT, sceneOf, values } from "./fake_port.js";

/** @import {Edit, Model, State} from "../../src/attnlab/explorer/js/types.js" */

const INPUT = { text: "abc" };
/** @type {State} */
const STATE = { ...emptyState("fake"), input: INPUT };
const ALL = { patterns: true, guesses: true, neurons: "encoder.0.feed" };
const scene = sceneOf({ input: INPUT, other: null, edits: [], snapshot: null, want: ALL });
const [encoder, decoder, cross] = SUBJECT.model.sites;

/** @param {Partial<Model>} [parts] @returns {Model} */
function model(parts = {}) {
  return {
    state: STATE, subject: SUBJECT, clean: scene, edited: null, other: null, diagnosis: null, busy: false, error: null, hover: null,
    playing: false, canUndo: false, canRedo: false, runs: [], ...parts,
  };
}

test("scales have their colours at both ends and keep within them", () => {
  const scale = weightScale(0.5);
  assert.equal(colourOf(scale, 0), "rgb(68,1,84)");
  assert.equal(colourOf(scale, 0.5), "rgb(253,231,37)");
  assert.equal(colourOf(scale, 9), colourOf(scale, 0.5));
  assert.equal(colourOf(scale, -9), colourOf(scale, 0));
  assert.equal(pixelOf(scale, NaN), pixelOf(scale, 0));
  assert.equal(weightScale(0).high, 1);
  const change = changeScale(2);
  assert.deepEqual([change.low, change.high], [-2, 2]);
  assert.equal(pixelOf(glowScale(1), 0) >>> 24, 0);
  assert.ok(gradient(scale).startsWith("linear-gradient(to right, rgb(68,1,84), "));
});

/** Red, green and blue of a value's colour, from 0 to 1 and linear. @param {import("../../src/attnlab/explorer/js/colours.js").Scale} scale @param {number} value */
function linearColour(scale, value) {
  const [r = 0, g = 0, b = 0] = (colourOf(scale, value).match(/\d+/g) ?? []).map((each) => {
    const part = Number(each) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return { r, g, b, light: 0.2126 * r + 0.7152 * g + 0.0722 * b };
}

test("more weight is brighter, also for those who see no colours", () => {
  const lights = Array.from({ length: 65 }, (_, i) => linearColour(weightScale(1), i / 64).light);
  assert.ok(lights.every((light, i) => i === 0 || light > lights[i - 1]));
});

test("less and more are told apart by those who lack one kind of cones", () => {
  // Machado, Oliveira and Fernandes (2009): what red and blue look like without red cones, and without green ones
  const seen = [
    [[0.152286, 1.052583, -0.204868], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [-0.01182, 0.04294, 0.968881]],
  ];
  for (const [red, blue] of seen) {
    const tint = (/** @type {number} */ value) => {
      const { r, g, b } = linearColour(changeScale(1), value);
      const [x, y] = [red, blue].map((row) => row[0] * r + row[1] * g + row[2] * b);
      return y - x;
    };
    for (let i = 4; i <= 32; i += 1) assert.ok(tint(-i / 32) > 0.03 && tint(i / 32) < -0.03, `${i}: ${tint(-i / 32)}, ${tint(i / 32)}`);
  }
});

test("numbers on every colour have a contrast of at least 4.5", () => {
  for (const scale of [weightScale(1), changeScale(1)]) {
    for (let i = 0; i <= 64; i += 1) {
      const value = scale.low + (i / 64) * (scale.high - scale.low);
      const { light } = linearColour(scale, value);
      const ratio = inkOn(scale, value) === "#000" ? (light + 0.05) / 0.05 : 1.05 / (light + 0.05);
      assert.ok(ratio >= 4.5, `${value}: ${ratio}`);
    }
  }
});

test("a head is a part of its site's patterns", () => {
  const site = values(2, 3, 5);
  const head = headOf(site, 1);
  assert.equal(at(head, 2, 4), site.data[1 * 15 + 2 * 5 + 4]);
  assert.deepEqual(rowOf(head, 1), [...site.data.slice(20, 25)]);
  assert.equal(largest(head), Math.max(...site.data.slice(15)));
  assert.deepEqual([...minus(head, head).data], new Array(15).fill(0));
  const columns = [0, 1, 2, 3, 4].map((column) => (at(head, 0, column) + at(head, 1, column) + at(head, 2, column)) / 3);
  received(head).forEach((value, column) => assert.ok(Math.abs(value - columns[column]) < 1e-6));
});

test("an edit of a layer concerns its sites, heads and feed-forward parts", () => {
  assert.deepEqual(holders(SUBJECT, "decoder.0.cross.2"), ["decoder.0.cross.2", "decoder.0.cross", "decoder.0"]);
  assert.deepEqual(holders(SUBJECT, "encoder.0.feed"), ["encoder.0.feed", "encoder.0"]);
  /** @type {Edit[]} */
  const edits = [{ op: "off", at: "decoder.0", to: "mean" }, { op: "scale", at: "encoder.0.self", by: 2 }];
  assert.equal(coverOf(SUBJECT, edits, "decoder.0.cross.2"), edits[0]);
  const later = /** @type {Edit} */ ({ op: "swap", at: "decoder.0" }); // of two edits the last one counts
  assert.equal(coverOf(SUBJECT, [...edits, later], "decoder.0.cross.2"), later);
  assert.equal(coverOf(SUBJECT, edits, "encoder.0.self.1"), null);
  assert.ok(isTouched(SUBJECT, edits, "encoder.0.self.1") && !isTouched(SUBJECT, edits, "encoder.0.feed"));
  assert.ok(isHead(SUBJECT, "decoder.0.self.2") && !isHead(SUBJECT, "decoder.0.self.3") && !isHead(SUBJECT, "decoder.0.self"));
});

test("edits say why they do nothing", () => {
  /** @type {Edit} */
  const painted = { op: "pattern", at: "encoder.0.self.0", rows: { 2: [1, 0, 0, 0] } };
  assert.equal(whyIdle(painted, STATE, SUBJECT, scene), "was painted for an input of another length");
  assert.equal(whyIdle({ ...painted, rows: { 2: [1, 0, 0] } }, STATE, SUBJECT, scene), "");
  assert.equal(whyIdle({ ...painted, rows: { 3: [1, 0, 0] } }, STATE, SUBJECT, scene), "was painted for an input of another length");
  assert.equal(whyIdle({ op: "swap", at: "encoder.0" }, STATE, SUBJECT, scene), "needs a second input");
  assert.deepEqual(activeEdits({ ...STATE, edits: [painted] }, SUBJECT, scene), []);
  assert.equal(inWords(painted), "encoder.0.self.0: row 2 painted");
});

test("painted rows sum to 1 and keep few decimals", () => {
  assert.deepEqual(evenRow(5, [1, 3, 4]), [0, 0.3334, 0, 0.3333, 0.3333]);
  assert.deepEqual(withWeight([0.5, 0.25, 0.25], 0, 0.2), [0.2, 0.4, 0.4]);
  assert.deepEqual(withWeight([0, 1, 0], 1, 0.3), [0, 1, 0]);
  assert.deepEqual(withWeight([0.5, 0.5], 1, 7), [0, 1]);
  for (let n = 1; n < 14; n += 1) {
    const row = withWeight(evenRow(13, Array.from({ length: n }, (_, i) => i)), 12, 1 / 7);
    assert.ok(Math.abs(row.reduce((sum, each) => sum + each, 0) - 1) < 1e-9 && row.every((each) => each >= 0), String(row));
  }
});

test("a token of the answer sees none that come later", () => {
  assert.equal(seenKeys(decoder, 2, 7), 3);
  assert.equal(seenKeys(cross, 2, 7), 7);
  assert.equal(seenKeys(encoder, 2, 7), 7);
});

test("rows are painted one by one and taken back one by one", () => {
  const one = withRow([], "decoder.0.self.1", 3, [1, 0]);
  const two = withRow([one], "decoder.0.self.1", 4, [0, 1]);
  assert.deepEqual(two.rows, { 3: [1, 0], 4: [0, 1] });
  assert.deepEqual(withoutRow([two], "decoder.0.self.1", 3).rows, { 4: [0, 1] });
});

test("a part that is off is switched on again, whatever took its place", () => {
  const state = { ...STATE, edits: [/** @type {Edit} */ ({ op: "off", at: "encoder.0", to: "mean" })] };
  assert.deepEqual(toggleAction(model({ state }), "encoder.0"), { type: "remove", index: 0 });
  assert.deepEqual(toggleAction(model(), "encoder.0"), { type: "edit", edit: { op: "off", at: "encoder.0", to: "zero" } });
});

test("the line of Python", () => {
  const line = (/** @type {Edit[]} */ edits, state = STATE) => pythonLine({ ...state, edits }, edits, edits.every(({ at }) => isHead(SUBJECT, at)), "saved.json");
  const script = (/** @type {string} */ ask) => `import attnlab as al\n\nrun = al.load("fake")\n${ask}\nprint(answer.text, answer.probability)`;
  assert.equal(line([]), script('answer = run.predict("abc")'));
  assert.equal(line([{ op: "off", at: "encoder.0.self.1", to: "mean" }, { op: "off", at: "encoder.0.self.0", to: "mean" }]),
    script('with run.without("encoder.0.self.1", "encoder.0.self.0", to="mean"):\n    answer = run.predict("abc")'));
  assert.equal(line([{ op: "off", at: "encoder.0.self.1", to: "resample" }]),
    script('with run.changed({"op": "off", "at": "encoder.0.self.1", "to": "resample"}):\n    answer = run.predict("abc")'));
  assert.equal(line([{ op: "swap", at: "encoder.0" }], { ...STATE, other: { text: "xyz" } }),
    script('with run.changed({"op": "swap", "at": "encoder.0"}, other="xyz"):\n    answer = run.predict("abc")'));
  assert.equal(line([{ op: "pattern", at: "encoder.0.self.1", rows: { 1: [0.5, 0.5] } }]),
    script('with run.changed({"op": "pattern", "at": "encoder.0.self.1", "rows": {"1": [0.5, 0.5]}}):\n    answer = run.predict("abc")'));
  assert.equal(line([], { ...STATE, snapshot: 24 }), script('with run.changed(snapshot=24):\n    answer = run.predict("abc")'));
  assert.equal(line([{ op: "off", at: "encoder.0.self.1", to: "mean" }], { ...STATE, snapshot: 24 }),
    script('with run.changed({"op": "off", "at": "encoder.0.self.1", "to": "mean"}, snapshot=24):\n    answer = run.predict("abc")'));
  const pixels = { shape: [1, 1, 1], data: Uint8Array.of(3) };
  assert.ok(namesPixels({ ...STATE, input: { pixels } }) && !namesPixels(STATE));
  assert.equal(line([], { ...STATE, input: { pixels } }), `import json\nfrom pathlib import Path\nimport numpy as np\n${script(
    'saved = json.loads(Path("saved.json").read_text())\ndrawn = np.array(saved["clean"]["input"]["pixels"]["data"], "uint8").reshape(1, 1, 1)\nanswer = run.predict(drawn)')}`);
  assert.equal(quoted('ä"\\\n'), '"\\u00e4\\"\\\\\\n"');
});

test("the slider of the scores goes from 0 over 1 to 10", () => {
  assert.deepEqual([0, 25, 50, 75, 100].map(factorAt), [0, 0.5, 1, 3.2, 10]);
  assert.deepEqual([0, 0.5, 1, 10, 100].map(placeOf), [0, 25, 50, 100, 100]);
});

test("percent", () => {
  assert.deepEqual([0, 0.0001, 0.1234, 0.9996, 1].map(percent), ["0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%"]);
});

test("guesses are ranked, and are shown by token or by class", () => {
  const guess = { path: "decoder.0.out", values: { shape: [2, 3], data: Float32Array.of(0.25, 0.5, 0.125, 0, 0.25, 0.75) } };
  assert.deepEqual(ranked(guess, 1, ["x", "y", "z"]), [["z", 0.75], ["y", 0.25], ["x", 0]]);
  const grid = gridOf(model(), { ...scene, guesses: [guess] });
  assert.deepEqual([grid.rows, grid.columns], [["after layer 1"], ["first", "second"]]);
  assert.deepEqual(grid.cells[0].map(({ sign, text }) => [sign, text]), [["y", "50.0%"], ["z", "75.0%"]]);
  const one = gridOf(model(), { ...scene, guesses: [{ path: "?", values: { shape: [1, 3], data: guess.values.data.slice(3) } }] });
  assert.deepEqual([one.rows, one.columns, one.cells[0].map(({ text }) => text)], [["?"], ["x", "y", "z"], ["0.0%", "25.0%", "75.0%"]]);
});

test("neurons by their largest value, and at which token", () => {
  const data = Float32Array.of(0, 5, 2, -1, 3, 5, 1, -2);
  assert.deepEqual(peaks({ path: "f", values: { shape: [2, 4], data } }, 3), [
    { neuron: 1, token: 0, value: 5 }, { neuron: 0, token: 1, value: 3 }, { neuron: 2, token: 0, value: 2 },
  ]);
});

test("patterns as they are, edited, or the change", () => {
  const edited = { ...scene, patterns: { ...scene.patterns, "encoder.0.self": values(2, 3, 3) } };
  edited.patterns["encoder.0.self"].data[9] += 1;
  const change = shownPattern(model({ edited, state: { ...STATE, show: "change" } }), "encoder.0.self.1");
  assert.deepEqual(change && [...change.matrix.data], [1, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.equal(change?.scale.low, -1);
  assert.equal(shownPattern(model({ edited }), "encoder.0.self.1")?.matrix.data, edited.patterns["encoder.0.self"].data);
  assert.equal(shownPattern(model({ edited, state: { ...STATE, show: "clean" } }), "encoder.0.self.1")?.matrix.data, scene.patterns["encoder.0.self"].data);
  assert.equal(shownPattern(model({ clean: null }), "encoder.0.self.1"), null);
});

test("rows of an answer come one by one; places stand for its tokens", () => {
  const stepped = model({ state: { ...STATE, step: 1 }, hover: { side: "answer", index: 1 } });
  assert.equal(rowsSaid(stepped, cross, 2), 1);
  assert.equal(rowsSaid(stepped, encoder, 3), 3);
  assert.ok(isHovered(stepped, "places", 1) && !isHovered(stepped, "input", 1) && !isHovered(stepped, "answer", 0));
});

test("the chosen head is one that there is", () => {
  assert.equal(chosenHead(model({ state: { ...STATE, head: "decoder.0.cross.2" } })), "decoder.0.cross.2");
  assert.equal(chosenHead(model({ state: { ...STATE, head: "decoder.0.cross.3" } })), "encoder.0.self.0");
});

test("the lines of Python for a wrapped model", () => {
  const example = (/** @type {number} */ index) => ({ example: { split: "valid", index } });
  const state = { ...STATE, input: example(3), other: example(9) };
  /** @type {Edit} */
  const off = { op: "off", at: "blocks.0.attn.1", to: "mean" };
  const lines = (/** @type {Edit[]} */ ...edits) => wrappedLine(state, edits).split("\n").slice(1);
  assert.deepEqual(lines(), ["print(model(*data[3:4].inputs).softmax(-1))"]);
  assert.deepEqual(lines(off, { op: "swap", at: "blocks.1" }), [
    'with model.changed({"op": "off", "at": "blocks.0.attn.1", "to": "mean"}, {"op": "swap", "at": "blocks.1"}, data=data, other=data[9:10]):',
    "    print(model(*data[3:4].inputs).softmax(-1))",
  ]);
});

test("a job is about this input or about many examples", () => {
  const job = jobOf(model(), "ablate", { many: false, test: true, edited: true });
  assert.deepEqual(job, { analysis: "ablate", input: INPUT, examples: null, split: "test", edits: [], other: null, snapshot: null });
  const many = jobOf(model(), "heads", { many: true, test: false, edited: true });
  assert.deepEqual(many, { analysis: "heads", input: null, examples: 7, split: "valid", edits: [], other: null, snapshot: null });
});

test("a job keeps the edits that apply, with the input that swapped values come from", () => {
  /** @type {import("../../src/attnlab/explorer/js/types.js").Edit[]} */
  const edits = [{ op: "off", at: "encoder.0", to: "mean" }, { op: "swap", at: "decoder.0.cross" }];
  const other = { text: "xyz" };
  const job = (/** @type {object} */ state, edited = true) => {
    const { edits, other } = jobOf(model({ state: { ...STATE, ...state } }), "ablate", { many: true, test: false, edited });
    return { edits, other };
  };
  assert.deepEqual(job({ edits, other }), { edits, other });
  assert.deepEqual(job({ edits }), { edits: edits.slice(0, 1), other: null }); // a swap needs a second input
  assert.deepEqual(job({ edits: edits.slice(0, 1), other }), { edits: edits.slice(0, 1), other: null });
  assert.deepEqual(job({ edits, other }, false), { edits: [], other: null });
});

test("what explains is asked about fewer examples, and about no more than there are", () => {
  const counts = [7, 6000].map((count) => {
    const subject = { ...SUBJECT, task: { ...SUBJECT.task, splits: { valid: [{ name: "all", count }], test: [] } } };
    return [countOf(subject, "ablate"), countOf(subject, "explain")];
  });
  assert.deepEqual(counts, [[7, 7], [500, 20]]);
});

test("how long something takes, in words", () => {
  assert.deepEqual([1, 7.2, 22, 49, 55, 100].map(timeWords),
    ["a few seconds", "about 7 seconds", "about 20 seconds", "about 50 seconds", "about a minute", "about 2 minutes"]);
  assert.equal(leftWords(1, 1, 100), "");
  assert.equal(leftWords(10, 20, 100), ", about 40 seconds left");
  assert.equal(leftWords(10, 100, 100), "");
});

test("saved numbers are plain lists", () => {
  assert.deepEqual(plain(scene).patterns["encoder.0.self"], { shape: [2, 3, 3], data: [...scene.patterns["encoder.0.self"].data] });
  assert.equal(plain(null), null);
});

test("labels of tokens that are not said yet are not told", () => {
  const labels = ["start", "x", "y"];
  const at = (/** @type {number | null} */ step) => /** @type {Model} */ ({ state: { ...STATE, step } });
  assert.deepEqual(labelsSaid(at(1), "answer", labels), ["start", "x", "·"]);
  assert.equal(labelsSaid(at(1), "input", labels), labels);
  assert.equal(labelsSaid(at(null), "answer", labels), labels);
});
