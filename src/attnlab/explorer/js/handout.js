// @ts-check
/** Where a hand-out begins: what the page carries becomes a model, a port, and the explorer on the page. */

import { mount } from "./app.js";
import { makeModel, placesOf } from "./engine/engine.js";
import { StoredExamples } from "./local/stored.js";
import { unpackWeights } from "./packed.js";
import { localPort } from "./ports/local.js";

/** @import {Diagnosis, Subject, Values} from "./types.js" */
/** @import {Description, EngineInput} from "./engine/types.js" */
/** @import {Model} from "./engine/engine.js" */
/** @import {Asked, Given} from "./local/asked.js" */
/** @import {Stored} from "./local/stored.js" */
/** @import {PackedWeights} from "./packed.js" */
/** @import {Reader} from "./ports/local.js" */

/**
 * What `explorer/handout.py` writes into the page.
 * @typedef {object} Handout
 * @property {Subject} subject
 * @property {Description} description
 * @property {PackedWeights} weights
 * @property {PackedWeights | null} means of training examples, by tap
 * @property {Stored} others to resample from
 * @property {string[]} symbols a sign for each logit
 * @property {Record<string, Stored>} examples by split
 * @property {unknown} facts what the reader must know
 * @property {Diagnosis | null} findings what the run kept of the doctor
 */

/**
 * The model that a page carries, and the port that asks it.
 * @param {Handout} handout
 * @param {Reader} reader
 */
export function unpacked(handout, reader) {
  const { subject, description, facts, symbols } = handout;
  const places = (/** @type {number} */ count) => reader.places?.(count, facts) ?? placesOf(subject.task.places, count);
  const words = { symbols, places, answer: (/** @type {number[]} */ said) => reader.answer(said, facts) };
  const image = subject.task.image;
  const shape = image ? [image.channels, image.height, image.width] : [];
  const baselines = {
    means: handout.means ? unpackWeights(handout.means) : undefined,
    examples: new StoredExamples("other", handout.others, shape).all().map(withAnswer),
  };
  const model = makeModel(description, unpackWeights(handout.weights), { words, baselines });
  const examples = Object.fromEntries(
    Object.entries(handout.examples).map(([split, stored]) => [split, new StoredExamples(split, stored, shape)]),
  );
  const look = (/** @type {any} */ question) => model.scene(question);
  const askedWith = (/** @type {Given | null} */ other) => askedOf(handout, model, places, other);
  return { model, port: localPort({ subject, reader, facts, examples, askedWith, findings: handout.findings, look }) };
}

/**
 * An example whose decoder is fed the right answer.
 * @param {Given} given
 * @returns {EngineInput & {answer?: number[]}}
 */
function withAnswer(given) {
  const input = /** @type {EngineInput} */ (given); // pixels are bytes
  return { ...input, answer: input.target };
}

/**
 * What the model says to examples, and its logits: to be held against what Python says.
 * @param {{model: Model, port: unknown}} opened
 * @param {Stored} stored
 * @param {number[]} shape of an image
 */
export function answered({ model }, stored, shape) {
  return new StoredExamples("checked", stored, shape).all().map((given) => {
    const { said, logits } = model.look(/** @type {EngineInput} */ (given));
    return { said, logits: [...logits.data] };
  });
}

/**
 * @param {Handout} handout
 * @param {Model} model
 * @param {Asked["places"]} places
 * @param {Given | null} other
 * @returns {Asked}
 */
function askedOf({ subject, description, symbols }, model, places, other) {
  const engine = (/** @type {any} */ given) => /** @type {EngineInput} */ (given); // pixels are bytes
  const lender = other && engine(other);
  return {
    name: subject.name,
    noun: subject.task.noun,
    sites: subject.model.sites,
    places,
    window: description.model.window ?? 0,
    patches: subject.model.patches,
    ink: subject.task.image?.ink ?? false,
    look: (given, edits, want) => model.scene({ input: engine(given), other: lender, edits, want }),
    logits: (given, said, edits) => model.logits(engine(given), said, edits, lender),
    answer: (given, edits) => model.answer(engine(given), edits, lender),
    label: (token) => symbols[token] ?? String(token),
  };
}

/**
 * Show the explorer in a page that carries a hand-out.
 * @param {Reader} reader
 */
export function start(reader) {
  const element = /** @type {HTMLElement} */ (document.getElementById("handout"));
  const root = /** @type {HTMLElement} */ (document.getElementById("explorer"));
  /** @type {Handout} */
  const handout = JSON.parse(element.textContent ?? "");
  element.remove();
  const { model, port } = unpacked(handout, reader);
  return { model, port, app: mount(root, port, { run: handout.subject.name, hash: true }) };
}
