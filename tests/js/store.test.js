// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createStore, emptyState, fromHash, newHistory, reduce, sameInput, toHash, withEdit,
} from "../../src/attnlab/explorer/js/store.js";

/** @import {Action, Edit, History, State} from "../../src/attnlab/explorer/js/types.js" */

/** @type {Edit} */
const off = { op: "off", at: "encoder.0.self.0", to: "zero" };
/** @type {Edit} */
const meanOff = { op: "off", at: "encoder.0.self.0", to: "mean" };
/** @type {Edit} */
const scale = { op: "scale", at: "decoder.1.cross", by: 2.5 };
/** @type {Edit} */
const painted = { op: "pattern", at: "decoder.0.cross.1", rows: { 3: [0.25, 0, 0.75], 11: [1, 0, 0] } };
/** @type {Edit} */
const swap = { op: "swap", at: "encoder.1" };

/** @param {...Action} actions @returns {History} */
function after(...actions) {
  return actions.reduce(reduce, newHistory(emptyState("zoo:adder")));
}

test("an edit of the same kind at the same place replaces the other", () => {
  assert.deepEqual(withEdit([off, swap], meanOff), [meanOff, swap]);
  assert.deepEqual(withEdit([scale], { ...scale, by: 3 }), [{ ...scale, by: 3 }]);
  assert.deepEqual(withEdit([off], scale), [off, scale]);
});

test("what undoes itself is taken out", () => {
  assert.deepEqual(withEdit([off, swap], off), [swap]);
  assert.deepEqual(withEdit([swap], swap), []);
  assert.deepEqual(withEdit([scale, swap], { ...scale, by: 1 }), [swap]);
  assert.deepEqual(withEdit([painted], { ...painted, rows: {} }), []);
});

test("what takes the place of parts that are off is changed for all of them, and back", () => {
  const done = after({ type: "edit", edit: off }, { type: "edit", edit: swap }, { type: "baseline", to: "mean" });
  assert.deepEqual([done.state.to, done.state.edits], ["mean", [meanOff, swap]]);
  assert.deepEqual(reduce(done, { type: "undo" }).state.edits, [off, swap]);
  const none = after({ type: "edit", edit: swap }, { type: "baseline", to: "mean" });
  assert.deepEqual([none.state.to, none.past.length], ["mean", 1]);
});

test("undo and redo go over edits and leave the rest alone", () => {
  const done = after({ type: "edit", edit: off }, { type: "edit", edit: swap }, { type: "input", input: { text: "1+2" } });
  const undone = reduce(done, { type: "undo" });
  assert.deepEqual(undone.state.edits, [off]);
  assert.deepEqual(undone.state.input, { text: "1+2" });
  assert.deepEqual(reduce(undone, { type: "redo" }).state.edits, [off, swap]);
  assert.deepEqual(reduce(undone, { type: "edit", edit: scale }).future, []);
  assert.deepEqual(reduce(reduce(undone, { type: "undo" }), { type: "undo" }).state.edits, []);
});

test("the edits of one gesture are undone together", () => {
  const strokes = [1, 2, 3].map((by) => /** @type {Action} */ ({ type: "edit", edit: { ...scale, by: by + 1 }, gesture: 7 }));
  const next = /** @type {Action} */ ({ type: "edit", edit: { ...scale, by: 9 }, gesture: 8 });
  const done = after({ type: "edit", edit: off }, ...strokes, next);
  assert.deepEqual(done.past, [[], [off], [off, { ...scale, by: 4 }]]);
  assert.deepEqual(reduce(done, { type: "undo" }).state.edits, [off, { ...scale, by: 4 }]);
});

test("another input starts at its whole answer; the same one changes nothing", () => {
  const first = after({ type: "input", input: { text: "1+2" } }, { type: "step", step: 1 });
  assert.equal(reduce(first, { type: "input", input: { text: "1+2" } }), first);
  assert.equal(reduce(first, { type: "input", input: { text: "1+3" } }).state.step, null);
});

test("another run keeps the view and nothing of the old run", () => {
  const opened = after(
    { type: "edit", edit: off }, { type: "choose", head: "encoder.0.self.0" }, { type: "view", view: "guesses" },
    { type: "open", run: "zoo:digit" },
  );
  assert.deepEqual(opened, newHistory({ ...emptyState("zoo:digit"), view: "guesses" }));
});

test("listeners hear of changes only", () => {
  /** @type {string[]} */
  const heard = [];
  const store = createStore(emptyState("a"), (_, action) => heard.push(action.type));
  store.dispatch({ type: "view", view: "heads" });
  store.dispatch({ type: "view", view: "ask" });
  store.dispatch({ type: "clear" });
  assert.deepEqual(heard, ["view"]);
  assert.equal(store.state().view, "ask");
});

const pixels = { shape: [1, 13, 29], data: Uint8Array.from({ length: 13 * 29 }, (_, i) => (i % 7 ? 0 : i % 251)) };
/** @type {State[]} */
const states = [
  emptyState("zoo:adder"),
  { ...emptyState("my runs/ä&b=c#d"), input: { text: "37+81 & more=…%" }, edits: [off, scale, painted, swap] },
  { ...emptyState("x"), input: { example: { split: "valid", index: 1234 } }, other: { text: "" }, step: 0, snapshot: 40 },
  { ...emptyState("x"), input: { pixels }, other: { pixels }, head: "encoder.0.self.3", view: "neurons", feed: "encoder.0.feed" },
  { ...emptyState("x"), to: "resample", show: "change", edits: [{ ...scale, by: 1e-7 }, { ...scale, by: 100 }] },
];

test("a state comes back from its hash", () => {
  for (const state of states) assert.deepEqual(fromHash(toHash(state)), state);
});

test("a hash is readable and short", () => {
  const state = { ...emptyState("zoo:adder"), input: { text: "374+814" }, edits: [off] };
  assert.equal(toHash(state), "#run=zoo:adder&text=374%2B814&edits=off~encoder.0.self.0~zero");
  const blank = { shape: [1, 56, 56], data: new Uint8Array(3136) };
  assert.ok(toHash({ ...state, input: { pixels: blank } }).length < 120);
});

test("what is broken in a hash is left out", () => {
  const broken = [
    "#run=%E0%A4%A&view=nowhere&step=-1&snapshot=x&to=nothing&show=all", "", "#", "#&&=&x",
    "#pixels=1x2x3.@@@", "#pixels=1x2x3.AAAA", "#pixels=9999x9999x9999.AP8A_w", "#pixels=1x2x3.%%%", "#example=valid.x",
    "#edits=off~~zero!off~a~b!scale~a~-1!scale~a~101!scale~a!scale~a~!pattern~a~0_0.5!pattern~a~x_1!pattern~a!pattern~a~0_2_-1",
  ];
  for (const hash of broken) assert.deepEqual(fromHash(hash), emptyState(), hash);
});

test("inputs are compared by what they are", () => {
  assert.ok(sameInput({ pixels }, { pixels: { ...pixels, data: pixels.data.slice() } }));
  assert.ok(!sameInput({ text: "1" }, { text: "2" }));
  assert.ok(!sameInput(null, { text: "" }));
  assert.ok(sameInput(null, null));
});
