// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { colourOf, dab, moved, way } from "../../src/attnlab/explorer/js/inputs/brush.js";
import { begun, continued, drawable, emptyDrawing, rendered, strokesIn, undoable, undone, wiped } from "../../src/attnlab/explorer/js/inputs/drawing.js";
import { waysOf } from "../../src/attnlab/explorer/js/inputs/index.js";
import { ownInputs, pixelsOf } from "../../src/attnlab/explorer/js/inputs/pixels.js";
import { extended, smooth } from "../../src/attnlab/explorer/js/inputs/strokes.js";
import { keyboardFor, textOf } from "../../src/attnlab/explorer/js/inputs/text.js";

/** @import {ImageForm, TaskFacts, Values} from "../../src/attnlab/explorer/js/types.js" */

/** @type {ImageForm} */
const GRID = { channels: 1, height: 28, width: 84, rows: 1, columns: 3, ink: true };
const at = (/** @type {number} */ x, /** @type {number} */ y) => ({ x, y, pressure: 0.5 });

/** @param {number} channels @param {number} height @param {number} width @returns {Values} */
function dark(channels, height, width) {
  return { shape: [channels, height, width], data: new Uint8Array(channels * height * width) };
}

/** Columns with ink, in the first row that has any. @param {Values} pixels */
function inked({ shape, data }) {
  const width = shape[2] ?? 0;
  return [...data.keys()].filter((each) => data[each] > 0).map((each) => [Math.floor(each / width), each % width]);
}

test("strokes land in their cell, and undo brings back what was under them", () => {
  const base = dark(1, 28, 84);
  base.data[5 * 84 + 60] = 77;
  const drawn = continued(begun(emptyDrawing(base), 1, at(0.5, 0.2)), at(0.5, 0.8));
  const pixels = rendered(drawn, GRID);
  assert.deepEqual(pixels.shape, [1, 28, 84]);
  const columns = inked(pixels).map(([, column]) => column);
  assert.ok(columns.some((column) => column === 60), "the other cells stay");
  assert.ok(columns.filter((column) => column !== 60).every((column) => column >= 28 && column < 56));
  assert.deepEqual(strokesIn(drawn, 1).length, 1);
  assert.deepEqual(rendered(undone(drawn), GRID), base);
});

test("a stroke replaces what its cell had", () => {
  const base = dark(1, 28, 84);
  base.data[0] = 255;
  const pixels = rendered(begun(emptyDrawing(base), 0, at(0.5, 0.5)), GRID);
  assert.equal(pixels.data[0], 0);
});

test("only pictures with cells of MNIST's size can be drawn into", () => {
  assert.ok(drawable(GRID));
  assert.ok(!drawable({ ...GRID, width: 28 }));
  assert.ok(!drawable({ ...GRID, ink: false }));
});

test("points that hardly move are left out, corners are rounded and ends stay", () => {
  const stroke = [at(0, 0), at(0.5, 0), at(0.5, 0.5)];
  assert.equal(extended(stroke, at(0.501, 0.5)), stroke);
  assert.equal(extended(stroke, at(0.6, 0.5)).length, 4);
  const smoothed = smooth(stroke);
  assert.deepEqual([smoothed[0], smoothed.at(-1)], [stroke[0], stroke[2]]);
  assert.ok(smoothed.every(({ x, y }) => Math.hypot(x - 0.5, y) > 0.05));
  assert.ok(smoothed.every(({ x, y }) => x >= 0 && x <= 0.5 && y >= 0 && y <= 0.5));
});

test("a dab fills a square of every channel and stays inside", () => {
  const pixels = dark(3, 5, 7);
  dab(pixels, { row: 4, column: 0 }, { colour: [1, 2, 3], size: 3, soft: false });
  assert.deepEqual(inked({ shape: [1, 5, 7], data: pixels.data.slice(35, 70) }), [[3, 0], [3, 1], [4, 0], [4, 1]]);
  assert.deepEqual([...new Set(pixels.data)], [0, 1, 2, 3]);
});

test("a soft dab inks its neighbours half as much and erases nothing", () => {
  const pixels = dark(1, 3, 3);
  pixels.data[1] = 200;
  dab(pixels, { row: 1, column: 1 }, { colour: [255], size: 1, soft: true });
  assert.deepEqual([...pixels.data], [0, 200, 0, 128, 255, 128, 0, 128, 0]);
});

test("a line has no holes", () => {
  const line = way({ row: 0, column: 0 }, { row: 2, column: 5 });
  assert.equal(line.length, 6);
  line.slice(1).forEach(({ row, column }, index) => {
    assert.ok(Math.abs(row - (line[index]?.row ?? 0)) <= 1 && column - (line[index]?.column ?? 0) === 1);
  });
  assert.deepEqual(way({ row: 1, column: 1 }, { row: 1, column: 1 })[0], { row: 1, column: 1 });
});

test("arrow keys move within the picture", () => {
  const from = { row: 1, column: 2 };
  assert.deepEqual(moved(from, "ArrowUp", true, 5, 7), { row: 0, column: 2 });
  assert.deepEqual(moved(from, "ArrowRight", true, 5, 7), { row: 1, column: 6 });
  assert.deepEqual(moved(from, "End", true, 5, 7), { row: 4, column: 6 });
  assert.deepEqual(moved(from, "Home", false, 5, 7), { row: 1, column: 0 });
  assert.equal(moved(from, "a", false, 5, 7), null);
  assert.deepEqual(colourOf("#01ff10"), [1, 255, 16]);
});

test("a phone shows the keyboard that has all characters", () => {
  assert.equal(keyboardFor(["999+0", "1+2"]), "tel");
  assert.equal(keyboardFor(["123"]), "numeric");
  assert.equal(keyboardFor(["3 5 8"]), "text");
  assert.equal(keyboardFor([]), "text");
});

test("an example is shown as it would be written, once it is known", () => {
  const scene = { input: { name: "1+2", pixels: null } };
  /** @param {object} given */
  const model = (given) => /** @type {any} */ ({ state: { input: null, other: null }, clean: null, other: null, busy: false, ...given });
  assert.equal(textOf(model({}), "input"), "");
  assert.equal(textOf(model({ state: { input: { text: "7+" } } }), "input"), "7+");
  const example = { state: { other: { example: { split: "test", index: 3 } } } };
  assert.equal(textOf(model({ ...example, other: scene }), "other"), "1+2");
  assert.equal(textOf(model({ ...example, other: scene, busy: true }), "other"), null);
  assert.equal(pixelsOf(model({ ...example, other: scene }), "other"), null);
});

test("a tool knows the pictures that it made", () => {
  const own = ownInputs();
  const input = own.made(dark(1, 2, 3));
  assert.ok(own.has(input));
  assert.ok(!own.has({ pixels: dark(1, 2, 3) }));
  assert.ok(!own.has(null));
});

test("inputs are given as the task has them", () => {
  const task = /** @type {TaskFacts} */ (/** @type {unknown} */ ({ input: "text", image: null, splits: { valid: [] } }));
  const names = (/** @type {object} */ given) => waysOf({ ...task, ...given }).map(({ name }) => name);
  assert.deepEqual(names({}), ["text", "examples"]);
  assert.deepEqual(names({ input: "image", image: GRID }), ["draw", "paint", "picture", "examples"]);
  assert.deepEqual(names({ input: "image", image: { ...GRID, ink: false } }), ["paint", "picture", "examples"]);
  assert.deepEqual(names({ input: "examples" }), ["examples"]);
  assert.deepEqual(names({ input: "examples", splits: {} }), []);
});

test("what was wiped away comes back when that is undone", () => {
  const drawn = begun(emptyDrawing(null), 0, at(0.5, 0.5));
  const empty = wiped(drawn);
  assert.deepEqual([empty.strokes, undoable(empty)], [[], true]);
  assert.equal(undone(empty), drawn);
  assert.equal(undone(undone(begun(empty, 0, at(0.1, 0.1)))), drawn);
  assert.equal(undoable(undone(drawn)), false);
});
