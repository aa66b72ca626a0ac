// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { convolution, maxPool } from "../../src/attnlab/explorer/js/engine/convolution.js";
import { PlainKernels } from "../../src/attnlab/explorer/js/engine/kernels.js";
import {
  argmax,
  erfc,
  gelu,
  layerNorm,
  numbers,
  relu,
  softmax,
  softmaxRows,
} from "../../src/attnlab/explorer/js/engine/numbers.js";
import { bucket, buildPositions } from "../../src/attnlab/explorer/js/engine/positions.js";
import { ended } from "../../src/attnlab/explorer/js/engine/scene.js";
import { cutPatches, stemStrides } from "../../src/attnlab/explorer/js/engine/stems.js";
import { Weights } from "../../src/attnlab/explorer/js/engine/weights.js";

/** @param {Iterable<number>} found @param {number[]} wanted @param {number} [within] */
function near(found, wanted, within = 1e-6) {
  const all = [...found];
  assert.equal(all.length, wanted.length);
  all.forEach((each, i) => {
    assert.ok(Math.abs(each - wanted[i]) <= within, `${each} is not ${wanted[i]} at ${i}`);
  });
}

test("softmax of a part, with keys that are not seen", () => {
  const data = Float32Array.of(9, Math.log(1), Math.log(3), -Infinity, 9);
  softmax(data, 1, 3);
  near(data, [9, 0.25, 0.75, 0, 9]);
});

test("where nothing is seen, nothing is looked at", () => {
  const data = Float32Array.of(-Infinity, -Infinity);
  softmax(data, 0, 2);
  assert.deepEqual([...data], [0, 0]);
});

test("large scores do not overflow", () => {
  near(softmaxRows(numbers([2, 2], Float32Array.of(1000, 1000, -1000, 0)), 1).data, [0.5, 0.5, 0, 1]);
  near(softmaxRows(numbers([1, 2], Float32Array.of(0, Math.log(9))), 2).data, [0.25, 0.75]);
});

test("layer norm", () => {
  const x = numbers([2, 3], Float32Array.of(1, 2, 3, 5, 5, 5));
  const found = layerNorm(x, Float32Array.of(1, 2, 1), Float32Array.of(0, 1, 0));
  near(found.data, [-1.2247357, 1, 1.2247357, 0, 1, 0]);
});

test("activations", () => {
  near(relu(numbers([3], Float32Array.of(-1, 0, 2))).data, [0, 0, 2]);
  near(gelu(numbers([5], Float32Array.of(-10, -1, 0, 1, 10))).data, [0, -0.15865525, 0, 0.84134475, 10]);
});

test("the error function", () => {
  near([0, 0.5, 1, 2, -1].map(erfc), [1, 0.4795001222, 0.1572992071, 0.004677735, 1.8427007929], 2e-7);
});

test("of equal numbers the first is the largest", () => {
  assert.equal(argmax(Float32Array.of(9, 1, 3, 3), 1, 3), 1);
});

test("a convolution by hand, with a frame and a stride", () => {
  const tensors = {
    "c.weight": numbers([1, 2, 3, 3], Float32Array.from({ length: 18 }, (_, i) => i)),
    "c.bias": numbers([1], Float32Array.of(0.5)),
  };
  const image = numbers([3, 4, 2], Float32Array.from({ length: 24 }, (_, i) => (i % 5) - 2));
  const pixel = (/** @type {number} */ y, /** @type {number} */ x, /** @type {number} */ c) =>
    y < 0 || y > 2 || x < 0 || x > 3 ? 0 : image.data[(y * 4 + x) * 2 + c];
  const found = convolution(new Weights(tensors, new PlainKernels()), "c", { stride: 2, around: 1 })(image);
  assert.deepEqual(found.shape, [2, 2, 1]);
  const wanted = [];
  for (const y of [0, 1]) {
    for (const x of [0, 1]) {
      let sum = 0.5;
      for (let c = 0; c < 2; c++) {
        for (let dy = 0; dy < 3; dy++) {
          for (let dx = 0; dx < 3; dx++) {
            sum += (9 * c + 3 * dy + dx) * pixel(2 * y + dy - 1, 2 * x + dx - 1, c);
          }
        }
      }
      wanted.push(sum);
    }
  }
  near(found.data, wanted);
});

test("the largest of each square", () => {
  const image = numbers([2, 5, 1], Float32Array.of(1, 2, -3, -4, 9, 4, 3, -1, -2, 9));
  assert.deepEqual([...maxPool(image).data], [4, -1]);
});

test("patches are cut row by row, channel by channel", () => {
  const image = numbers([2, 2, 4], Float32Array.from({ length: 16 }, (_, i) => i));
  assert.deepEqual([...cutPatches(image, 2).data], [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]);
});

test("strides of a stem multiply to the side of a patch", () => {
  assert.deepEqual(stemStrides(4), [2, 1, 1, 2, 1]);
  assert.deepEqual(stemStrides(14), [2, 1, 1, 1, 7]);
  assert.deepEqual(stemStrides(7), [1, 7]);
});

test("buckets of distances", () => {
  assert.deepEqual([0, 1, 7, 8, 11, 127, 128].map((d) => bucket(d, 16, 128)), [0, 1, 7, 8, 8, 15, 15]);
});

test("a rotation turns neighbouring coordinates by an angle of the place", () => {
  const spec = /** @type {any} */ ({ kind: "rotary", base: 100 });
  const weights = new Weights({}, new PlainKernels());
  const placed = buildPositions(spec, { weights, path: "", width: 4, headWidth: 4 }).at(3);
  const q = numbers([1, 1, 4], Float32Array.of(1, 0, 0, 1));
  near(placed.rotate(q, 2).data, [Math.cos(2), Math.sin(2), -Math.sin(0.2), Math.cos(0.2)]);
});

test("of several ends the first ends an answer", () => {
  assert.deepEqual([[1, 9, 9, 9], [9, 9, 9, 9], [1, 9, 2, 9], [1, 2, 3, 4]].map((said) => ended(said, 9)), [[1, 9], [9], [1, 9, 2, 9], [1, 2, 3, 4]]);
  assert.deepEqual(ended([9, 9], null), [9, 9]);
});
