// @ts-check
/** The port of a hand-out: the model runs in the page, and nothing is asked of anybody. */

import { readPicture } from "../inputs/decode.js";
import { ablateMany, ablateOne } from "../local/ablate.js";
import { explainOne } from "../local/explain.js";
import { measureHeads } from "../local/heads.js";
import { inSlices } from "../local/slices.js";
import { SPACE, brief, grouped, repr, shortened, split, strip } from "../python.js";

/** @import {Diagnosis, Input, Job, Port, Question, Scene, Subject, Values} from "../types.js" */
/** @import {Analysis, Asked, Given} from "../local/asked.js" */
/** @import {StoredExamples} from "../local/stored.js" */

/**
 * How a task's texts are read and its answers said: the module of `Task.reader()`.
 * @typedef {object} Reader
 * @property {(text: string, facts: any, python: typeof PYTHON) => {tokens: number[], labels: string[],
 *   name: string, truth: string | null, targets: number[] | null}} read
 * @property {(tokens: number[], facts: any) => string} answer
 * @property {(count: number, facts: any) => string[]} [places] names of the tokens of an answer of so many
 */

const PYTHON = { SPACE, brief, grouped, repr, shortened, split, strip };
const MOST_TOKENS = 512; // of an input, as in Python: patterns are shown whole

/**
 * @param {object} parts
 * @param {Subject} parts.subject
 * @param {Reader} parts.reader
 * @param {any} parts.facts what the reader must know
 * @param {Record<string, StoredExamples>} parts.examples by split
 * @param {(other: Given | null) => Asked} parts.askedWith the input that swapped values come from
 * @param {Diagnosis | null} parts.findings kept when the file was written
 * @param {(question: Omit<Question, "input" | "other"> & {input: Given, other: Given | null}) => Scene} parts.look
 * @returns {Port}
 */
export function localPort({ subject, reader, facts, examples, askedWith, findings, look }) {
  const image = subject.task.image;

  /** @param {Input} input @returns {Given} */
  function given(input) {
    if ("example" in input) return storedIn(input.example.split).at(input.example.index);
    if ("pixels" in input) return drawn(input.pixels);
    const { targets, ...read } = reader.read(input.text, facts, PYTHON);
    if (read.tokens.length > MOST_TOKENS) {
      throw new Error(
        `the input has ${grouped(read.tokens.length)} tokens; at most ${MOST_TOKENS} can be explored`,
      );
    }
    return targets ? { ...read, target: targets } : read;
  }

  /** @param {Values} pixels @returns {Given} */
  function drawn(pixels) {
    const shape = image && [image.channels, image.height, image.width];
    if (!shape) throw new Error(`inputs of the task ${repr(subject.task.kind)} are no images`);
    if (String(shape) !== String(pixels.shape)) {
      throw new Error(`the image is ${pixels.shape.join(" x ")}; it must be ${shape.join(" x ")}`);
    }
    return { name: "the drawing", labels: [], truth: null, pixels };
  }

  /** @param {string} name */
  function storedIn(name) {
    const found = examples[name];
    if (found) return found;
    throw new Error(`this file has no examples of ${repr(name)}; known: ${Object.keys(examples).join(", ")}`);
  }

  /** @param {Job} job @returns {Analysis} */
  function analysis(job) {
    if (job.analysis === "doctor") throw new Error("a diagnosis is made with Python: attnlab doctor");
    const { analysis, input, examples: count, split: from, edits = [], other = null } = job;
    const stored = storedIn(from);
    const asked = askedWith(other && given(other));
    const one = input && given(input);
    if (analysis === "explain") {
      if (!one) throw new Error("occlusion explains one input; choose this input");
      return explainOne(asked, one, edits, stored.all());
    }
    const many = one ? [one] : stored.all(count ?? undefined);
    if (analysis === "heads") return measureHeads(asked, many, edits);
    return one ? ablateOne(asked, one, edits) : ablateMany(asked, many, edits);
  }

  return {
    list: async () => [{ name: subject.name, title: subject.title, task: subject.task.kind, accuracy: null }],
    async open(name) {
      if (name === subject.name) return subject;
      throw new Error(`this file holds ${subject.name} and no other run`);
    },
    async ask({ input, other, ...rest }) {
      if (rest.snapshot !== null) throw new Error("this file carries no snapshots of the training");
      return look({ ...rest, input: given(input), other: other && given(other) });
    },
    examples: async ({ split: name, ...wanted }) => storedIn(name).page(wanted),
    async read(bytes) {
      if (!image || !subject.abilities.pictures) throw new Error("this model reads no pictures");
      return readPicture(bytes, image);
    },
    findings: async () => findings,
    start: (job, onProgress) => inSlices(() => analysis(job), onProgress),
    close() {},
  };
}
