// @ts-check
/**
 * A model of attnlab in JavaScript: weights in, answers and all of their attention out.
 *
 *     const model = makeModel(description, tensors, { words });
 *     const edits = [{ op: "off", at: "decoder.0.cross.1", to: "zero" }];
 *     model.scene({ input: { tokens: [4, 7, 3, 10, 4, 1, 8] }, edits }).answer.text
 *
 * It answers first by greedy decoding; then one pass is fed what it said, and shows what happened. Nothing
 * here needs a page: it runs in workers, in node, and in V8 without either.
 */

import { changesOf, outputTaps } from "./edits.js";
import { makeKernels } from "./kernels.js";
import { buildNet } from "./models.js";
import {
  describeAnswer,
  describeGuesses,
  describeLabels,
  ended,
  feedTap,
  guessTaps,
  patternSites,
} from "./scene.js";
import { Taps } from "./taps.js";
import { Weights } from "./weights.js";

/** @import {Baseline, Edit, Scene} from "../types.js" */
/** @import {Looked} from "./scene.js" */
/** @import {Baselines, Description, EngineInput, EngineQuestion, Words} from "./types.js" */
/** @import {Numbers, Tensors} from "./types.js" */

/** @typedef {{words?: Words, baselines?: Baselines, kernels?: "simd" | "plain"}} Extras */

/**
 * @param {Description} description
 * @param {Tensors} tensors
 * @param {Extras} [extras]
 * @returns {Model}
 */
export function makeModel(description, tensors, extras = {}) {
  return new Model(description, tensors, extras);
}

export class Model {
  #words;
  #baselines;
  #net;
  /** @type {Map<object, Tensors>} z and hidden values of the examples to resample from */
  #resampled = new Map();

  /**
   * @param {Description} description
   * @param {Tensors} tensors
   * @param {Extras} extras
   */
  constructor(description, tensors, { words, baselines = {}, kernels }) {
    this.description = description;
    this.kernels = makeKernels(kernels);
    this.#net = buildNet(description, new Weights(tensors, this.kernels));
    this.#words = words ?? plainWords(description);
    this.#baselines = baselines;
  }

  /**
   * @param {EngineQuestion} question
   * @returns {Scene}
   */
  scene({ input, other = null, edits = [], want = {} }) {
    const started = now();
    const net = this.#net;
    const sites = patternSites(net, want.patterns ?? true);
    const streams = (want.guesses ?? true) ? guessTaps(net) : [];
    const taps = [...sites.map((path) => `${path}.pattern`), ...streams];
    const neurons = want.neurons ? feedTap(net, want.neurons) : null;
    const looked = this.look(input, neurons ? [...taps, neurons] : taps, edits, other);
    const value = (/** @type {string} */ tap) => /** @type {Numbers} */ (looked.taps.seen.get(tap));
    return {
      input: {
        name: input.name ?? "",
        labels: input.labels ?? [],
        truth: input.truth ?? null,
        pixels: input.pixels ?? null,
      },
      answer: describeAnswer(this.description, input, looked, this.#words),
      labels: describeLabels(this.description, input, looked, this.#words),
      patterns: Object.fromEntries(sites.map((path) => [path, value(`${path}.pattern`)])),
      guesses: streams.length ? describeGuesses(this.description, net, looked) : [],
      neurons: want.neurons && neurons ? { path: want.neurons, values: value(neurons) } : null,
      seconds: (now() - started) / 1000,
    };
  }

  /**
   * What the model says, and logits and values at `taps` of a pass that is fed it.
   * @param {EngineInput} input
   * @param {string[]} [taps]
   * @param {Edit[]} [edits]
   * @param {EngineInput | null} [other]
   * @param {number[]} [answer] what is fed in place of what it says
   * @returns {Looked}
   */
  look(input, taps = [], edits = [], other = null, answer) {
    const wanted = new Set(taps);
    const watching = new Taps(this.#changes(edits, input, other), (name) => wanted.has(name));
    const { start, end } = this.description;
    const reading = this.#net.read(input, watching);
    const said = answer ?? ended(reading.greedy(start ?? 0, this.#length(input), watching.unseen()), end);
    const fed = start === null ? [] : [start, ...said.slice(0, -1)];
    return { said, fed, logits: reading.logits(fed, watching), taps: watching };
  }

  /**
   * Logits (T, V) of each token of an answer, while the tokens of `answer` are fed.
   * @param {EngineInput} input
   * @param {number[]} answer
   * @param {Edit[]} [edits]
   * @param {EngineInput | null} [other]
   * @returns {Numbers}
   */
  logits(input, answer, edits = [], other = null) {
    return this.look(input, [], edits, other, answer).logits;
  }

  /**
   * The tokens of the answer alone.
   * @param {EngineInput} input
   * @param {Edit[]} [edits]
   * @param {EngineInput | null} [other]
   * @returns {number[]}
   */
  answer(input, edits = [], other = null) {
    const taps = new Taps(this.#changes(edits, input, other));
    const { start, end } = this.description;
    return ended(this.#net.read(input, taps).greedy(start ?? 0, this.#length(input), taps), end);
  }

  /** How many tokens are said. @param {EngineInput} input */
  #length({ target }) {
    return target?.length ?? this.description.target_length;
  }

  /**
   * @param {Edit[]} edits
   * @param {EngineInput} input
   * @param {EngineInput | null} other
   */
  #changes(edits, input, other) {
    /** @type {Map<string, Tensors | null>} */
    const known = new Map();
    return changesOf(this.#net, edits, (to) => {
      if (!known.has(to)) known.set(to, this.#values(to, input, other));
      return known.get(to) ?? null;
    });
  }

  /**
   * What takes the place of the model's own values.
   * @param {Baseline | "swap"} to
   * @param {EngineInput} input
   * @param {EngineInput | null} other
   * @returns {Tensors | null}
   */
  #values(to, input, other) {
    switch (to) {
      case "zero":
        return null;
      case "mean":
        if (!this.#baselines.means) throw new Error("the means of training examples are not known");
        return this.#baselines.means;
      case "resample":
        return this.#resample(input);
      case "swap":
        if (!other) throw new Error("to swap, another input is needed; give one as other");
        return this.#outputs(other);
    }
  }

  /** @param {EngineInput} input @returns {Tensors} */
  #resample(input) {
    const apart = (/** @type {EngineInput} */ { tokens }) =>
      Math.abs((tokens?.length ?? 0) - (input.tokens?.length ?? 0));
    const [example] = [...(this.#baselines.examples ?? [])].sort((a, b) => apart(a) - apart(b));
    if (!example) throw new Error("there is no example to resample from");
    const found = this.#resampled.get(example) ?? this.#outputs(example, example.answer);
    this.#resampled.set(example, found);
    return found;
  }

  /** z and hidden values of an unedited pass. @param {EngineInput} input @param {number[]} [answer] */
  #outputs(input, answer) {
    const { taps } = this.look(input, outputTaps(this.#net), [], null, answer);
    return Object.fromEntries(taps.seen);
  }
}

/** Numbers where nothing better is known. @param {Description} description @returns {Words} */
function plainWords({ vocabulary, start }) {
  const symbols = [...Array(vocabulary).keys()].map(String);
  const places = (/** @type {number} */ count) => placesOf(start === null ? ["class"] : [], count);
  return { symbols, places, answer: (tokens) => tokens.map((token) => symbols[token]).join(" ") };
}

/**
 * Names of the tokens of an answer, also where these are more than usual.
 * @param {string[]} names
 * @param {number} count
 */
export function placesOf(names, count) {
  return Array.from({ length: count }, (_, place) => names[place] ?? String(place + 1));
}

/** Milliseconds of the best clock there is. */
const now = () => (globalThis.performance ?? Date).now();
