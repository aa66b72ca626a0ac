// @ts-check
/** The line of Python that does what the page shows. */

/** @import {Edit, Input, State} from "./types.js" */

/** A string literal of Python. @param {string} text */
export function quoted(text) {
  const safe = JSON.stringify(text);
  return safe.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** An array of the pixels in a file of saved numbers. @param {string} name @param {"clean" | "other"} scene @param {Input | null} input */
function reading(name, scene, input) {
  if (input === null || !("pixels" in input)) return [];
  return [`${name} = np.array(saved["${scene}"]["input"]["pixels"]["data"], "uint8").reshape(${input.pixels.shape.join(", ")})`];
}

/** An input as `Run.predict` takes it; pixels are those of an array. @param {Input} input @param {string} name */
function argument(input, name) {
  if ("text" in input) return quoted(input.text);
  if ("example" in input) return quoted(`${input.example.split}:${input.example.index}`);
  return name;
}

/** @param {Input | null} input */
function isDrawn(input) {
  return input !== null && "pixels" in input;
}

/** JSON as Python writes it: the edits hold no true, false or null. @param {Edit} edit */
function literal(edit) {
  return JSON.stringify(edit, null, 1).replace(/\n\s*/g, " ").replace(/([{[]) /g, "$1").replace(/ ([}\]])/g, "$1");
}

/**
 * `edits` are those that apply. Only heads switched off the same way are `without`; anything else is `changed`.
 * @param {State} state @param {Edit[]} edits @param {boolean} allHeads whether all edits concern heads
 * @param {string} [saved] the file of saved numbers, which holds what is drawn
 * @returns {string} a script that prints the answer; pixels are called `drawn` and `second`
 */
export function pythonLine(state, edits, allHeads, saved = "numbers.json") {
  const load = ["import attnlab as al", "", `run = al.load(${quoted(state.run)})`];
  if (!state.input) return load.join("\n");
  const swaps = edits.some((edit) => edit.op === "swap");
  const arrays = [...reading("drawn", "clean", state.input), ...(swaps ? reading("second", "other", state.other) : [])];
  const open = arrays.length ? [`saved = json.loads(Path(${quoted(saved)}).read_text())`, ...arrays] : [];
  const ask = `answer = run.predict(${argument(state.input, "drawn")})`;
  const act = edits.length || state.snapshot !== null ? [`with ${context(state, edits, allHeads)}:`, `    ${ask}`] : [ask];
  return [...(open.length ? ["import json", "from pathlib import Path", "import numpy as np"] : []), ...load, ...open, ...act, "print(answer.text, answer.probability)"].join("\n");
}

/**
 * The same for a wrapped model, which Python has as `model`, and the examples as `data`.
 * @param {State} state @param {Edit[]} edits
 */
export function wrappedLine({ input, other }, edits) {
  const row = (/** @type {Input | null} */ each) => (each && "example" in each ? `data[${each.example.index}:${each.example.index + 1}]` : "");
  if (!row(input)) return "";
  const ask = `print(model(*${row(input)}.inputs).softmax(-1))`;
  const made = edits.some((edit) => edit.op === "off" && edit.to !== "zero");
  const swaps = other && edits.some((edit) => edit.op === "swap");
  const words = [...edits.map(literal), ...(made ? ["data=data"] : []), ...(swaps ? [`other=${row(other)}`] : [])];
  return ["# model and data are what this page explores", ...(edits.length ? [`with model.changed(${words.join(", ")}):`, `    ${ask}`] : [ask])].join("\n");
}

/** @param {State} state @param {Edit[]} edits @param {boolean} allHeads */
function context(state, edits, allHeads) {
  const first = edits[0];
  const to = first?.op === "off" ? first.to : "resample";
  const plain = edits.length > 0 && state.snapshot === null && allHeads && to !== "resample" && edits.every((edit) => edit.op === "off" && edit.to === to);
  if (plain) return `run.without(${[...edits.map(({ at }) => quoted(at)), `to=${quoted(to)}`].join(", ")})`;
  const needsOther = state.other && edits.some((edit) => edit.op === "swap");
  const other = needsOther && state.other ? [`other=${argument(state.other, "second")}`] : [];
  const snapshot = state.snapshot === null ? [] : [`snapshot=${state.snapshot}`];
  return `run.changed(${[...edits.map(literal), ...other, ...snapshot].join(", ")})`;
}

/** Whether the line names an array that the page cannot write out. @param {State} state */
export function namesPixels(state) {
  return isDrawn(state.input) || isDrawn(state.other);
}

/** What saved files are called, without their ending. @param {State} state */
export function fileName(state) {
  return `${state.run}-${state.view}`.replace(/[^\w.-]+/g, "-");
}
