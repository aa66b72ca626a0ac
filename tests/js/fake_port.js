// @ts-check
/** A port without a model: small scenes, answered when the test says so. */

/** @import {Port, Question, Scene, Subject, Values} from "../../src/attnlab/explorer/js/types.js" */

/** @type {Subject} */
export const SUBJECT = {
  name: "fake", title: "A made-up model", facts: [],
  task: {
    kind: "fake", noun: "text", input: "text", placeholder: "", suggestions: ["abc"], image: null,
    labels: ["x", "y", "z"], places: ["first", "second"], answer: "sequence", note: "",
    splits: { valid: [{ name: "all", count: 7 }] }, tour: [],
  },
  model: {
    kind: "seq2seq", parameters: 11,
    sites: [
      { path: "encoder.0.self", stack: "encoder", layer: 0, kind: "self", heads: 2, queries: "input", keys: "input" },
      { path: "decoder.0.self", stack: "decoder", layer: 0, kind: "self", heads: 3, queries: "answer", keys: "answer" },
      { path: "decoder.0.cross", stack: "decoder", layer: 0, kind: "cross", heads: 3, queries: "answer", keys: "input" },
    ],
    layers: [
      { path: "encoder.0", parts: ["encoder.0.self", "encoder.0.feed"] },
      { path: "decoder.0", parts: ["decoder.0.self", "decoder.0.cross", "decoder.0.feed"] },
    ],
    feeds: [{ path: "encoder.0.feed", hidden: 5 }, { path: "decoder.0.feed", hidden: 5 }],
    streams: [{ path: "decoder.0.out", name: "after layer 1" }], patches: null,
  },
  snapshots: [], baselines: ["zero", "mean", "resample"],
  abilities: { ablate: true, explain: true, heads: true, pictures: false, snapshots: false, findings: true }, source: "server",
};

/** @param {...number} shape @returns {Values} */
export function values(...shape) {
  const size = shape.reduce((product, side) => product * side, 1);
  return { shape, data: Float32Array.from({ length: size }, (_, i) => ((7 * i) % 13) / 13) };
}

/** The scene of an input with `keys` letters and an answer of two tokens. @param {Question} question @returns {Scene} */
export function sceneOf({ input, want, edits }) {
  const name = "text" in input ? input.text : "example";
  const labels = { input: [...name], answer: ["start", "x"], places: ["first", "second"] };
  const size = { input: name.length, answer: 2, places: 2 };
  /** @type {[string, Values][]} */
  const patterns = want.patterns ? SUBJECT.model.sites.map(({ path, heads, queries, keys }) => [path, values(heads, size[queries], size[keys])]) : [];
  const token = { label: edits.length ? "y" : "x", place: "first", probability: 0.7, top: /** @type {[string, number][]} */ ([["x", 0.7]]) };
  return {
    input: { name, labels: labels.input, truth: "xx", pixels: null },
    answer: { text: "xx", probability: 0.49, correct: true, tokens: [token, { ...token, place: "second" }] },
    labels, patterns: Object.fromEntries(patterns),
    guesses: want.guesses ? [{ path: "decoder.0.out", values: values(2, 3) }] : [],
    neurons: want.neurons ? { path: want.neurons, values: values(2, 5) } : null, seconds: 0,
  };
}

/** @returns {{port: Port, asked: Question[], answer: () => Promise<void>, refuse: (error: Error) => Promise<void>}} */
export function fakePort() {
  /** @type {Question[]} */
  const asked = [];
  /** @type {{question: Question, resolve: (scene: Scene) => void, reject: (error: Error) => void}[]} */
  const waiting = [];
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  const never = () => Promise.reject(new Error("not in this test"));
  const port = {
    findings: async () => null,
    list: () => Promise.resolve([]), open: () => Promise.resolve(SUBJECT), examples: never, read: never, close() {},
    start: () => ({ result: never(), cancel() {} }),
    ask: (/** @type {Question} */ question) => {
      asked.push(question);
      return new Promise((resolve, reject) => waiting.push({ question, resolve, reject }));
    },
  };
  return {
    port, asked,
    async answer() {
      const first = waiting.shift();
      first?.resolve(sceneOf(first.question));
      await settled();
    },
    async refuse(error) {
      waiting.shift()?.reject(error);
      await settled();
    },
  };
}
