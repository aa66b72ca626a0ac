// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { bars, map, overPixels } from "../../src/attnlab/explorer/js/local/figures.js";

/** @param {string} svg @param {string} name */
function numbersOf(svg, name) {
  return [...svg.matchAll(new RegExp(`<rect(?= x)[^>]*? ${name}="([\\d.]+)"`, "g"))].map(([, text]) => Number(text));
}

test("bars are as long as their values, on both sides of 0", () => {
  const svg = bars("lost", [["a<b", 4, "+4"], ["c", -2, "-2"], ["d", 0, "0"]]);
  const [four, two, none] = numbersOf(svg, "width");
  assert.ok(Math.abs(four / two - 2) < 1e-3 && none < 1);
  const [first, second] = numbersOf(svg, "x");
  assert.ok(Math.abs(second + two - first) < 0.02);
  assert.ok(svg.includes("a&#60;b") && !svg.includes("a<b"));
});

test("a map has a cell for each value, white at 0", () => {
  const svg = map("evidence", ["ones", "tens"], ["1", "+", "2"], [[1, 0, -1], [2, 0, -2]]);
  assert.equal(numbersOf(svg, "width").length, 6);
  const fills = [...svg.matchAll(/<rect [^>]*fill="(rgb[^"]+)"/g)].map(([, fill]) => fill);
  assert.equal(fills[1], fills[4]); // both 0
  assert.notEqual(fills[0], fills[2]);
});

test("patches lie over what is drawn", () => {
  const pixels = { shape: [1, 4, 2], data: Uint8Array.of(0, 255, 0, 0, 0, 0, 0, 100) };
  const svg = overPixels("evidence", pixels, { rows: 2, columns: 1 }, ["a", "b"], [[1, 2], [3, 4]]);
  assert.equal(numbersOf(svg, "width").length, 2 * (2 + 2));
  assert.deepEqual(numbersOf(svg, "height").slice(0, 2), [196, 196]);
});
