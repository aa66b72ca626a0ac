// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  assemble,
  constant,
  get,
  plus,
  repeat,
  set,
  signed,
  unsigned,
} from "../../src/attnlab/explorer/js/engine/assembler.js";
import { fusedMultiplyAdd, multiplyAdd } from "../../src/attnlab/explorer/js/engine/assembler.js";
import {
  makeKernels,
  plainProduct,
  PlainKernels,
  SimdKernels,
} from "../../src/attnlab/explorer/js/engine/kernels.js";
import { simdAvailable, simdModule } from "../../src/attnlab/explorer/js/engine/simd.js";

let state = 1;
/** Numbers between -1 and 1, the same in every run. @param {number} count */
const drawn = (count) =>
  Float32Array.from({ length: count }, () => {
    state = (state * 48271) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  });

/** @param {Float32Array} a @param {Float32Array} b */
function same(a, b) {
  assert.equal(a.length, b.length);
  a.forEach((each, i) => assert.ok(Math.abs(each - b[i]) < 1e-4, `${each} is not ${b[i]} at ${i}`));
}

const SHAPES = [
  [1, 1, 1], [1, 7, 3], [2, 3, 5], [4, 4, 8], [5, 13, 7], [11, 64, 16], [17, 31, 33], [3, 0, 5], [0, 5, 3],
];

test("a product by hand", () => {
  const a = Float32Array.of(1, 2, 3, 4, 5, 6); // 2 x 3
  const weight = Float32Array.of(1, 0, -1, 2, 2, 2); // 2 columns
  const bias = Float32Array.of(10, 20);
  for (const kernels of [new PlainKernels(), makeKernels()]) {
    assert.deepEqual([...kernels.product(a, 2, kernels.lay(weight, 2, bias))], [8, 32, 8, 50]);
    assert.deepEqual([...kernels.once(a, 2, weight, 2)], [-2, 12, -2, 30]);
  }
});

test("instructions give what plain loops give, for all sizes", { skip: !simdAvailable() }, () => {
  const simd = new SimdKernels();
  for (const [rows, inner, columns] of SHAPES) {
    const [a, weight, bias] = [drawn(rows * inner), drawn(inner * columns), drawn(columns)];
    const wanted = plainProduct(a, rows, weight, columns, bias);
    same(simd.product(a, rows, simd.lay(weight, columns, bias)), wanted);
    same(simd.once(a, rows, weight, columns), plainProduct(a, rows, weight, columns));
  }
});

test("what does not come again may be large", () => {
  const kernels = makeKernels();
  const [a, weight] = [drawn(40 * 50), drawn(50 * 60)];
  same(kernels.once(a, 40, weight, 60), plainProduct(a, 40, weight, 60));
});

test("what is laid out stays while the memory grows", () => {
  for (const kernels of [makeKernels(), new PlainKernels()]) {
    const [a, first, second] = [drawn(3 * 5), drawn(5 * 7), drawn(5 * 7000)];
    const small = kernels.lay(first, 7);
    const before = kernels.product(a, 3, small);
    const large = kernels.lay(second, 7000);
    const room = kernels.room(3, large);
    room.set(a);
    same(kernels.product(room, 3, large), plainProduct(a, 3, second, 7000));
    same(kernels.product(a, 3, small), before);
  }
});

test("rows may be more than a product needs", () => {
  const kernels = makeKernels("plain");
  const laid = kernels.lay(drawn(6), 2);
  const room = kernels.room(5, laid);
  room.set(drawn(15));
  assert.equal(kernels.product(room, 2, laid).length, 4);
  assert.equal(kernels.name, "plain");
});

test("both ways to multiply and add are modules of WebAssembly", () => {
  assert.ok(WebAssembly.validate(simdModule(multiplyAdd)));
  assert.ok(simdModule(fusedMultiplyAdd).length < 4096); // what a page may compile at once
});

test("integers are written seven bits at a time", () => {
  assert.deepEqual(unsigned(0), [0]);
  assert.deepEqual(unsigned(624485), [0xe5, 0x8e, 0x26]);
  assert.deepEqual(signed(-123456), [0xc0, 0xbb, 0x78]);
  assert.deepEqual(signed(63), [63]);
  assert.deepEqual(signed(64), [0xc0, 0]);
  assert.deepEqual(signed(-64), [0x40]);
});

test("a loop runs as often as its counter says", () => {
  const body = [repeat(0, set(1, plus(get(1), constant(3)))), [constant(8), get(1), 0x36, 2, 0]];
  const memory = new WebAssembly.Memory({ initial: 1 });
  const procedure = { name: "run", parameters: 1, integers: 1, vectors: 0, body };
  const module = new WebAssembly.Module(assemble([procedure]));
  const { run } = /** @type {{run: (n: number) => void}} */ (
    /** @type {unknown} */ (new WebAssembly.Instance(module, { env: { memory } }).exports)
  );
  for (const times of [0, 1, 5]) {
    run(times);
    assert.equal(new Int32Array(memory.buffer)[2], 3 * times);
  }
});
