// @ts-check
/** The line of Python that does what the page shows. */

/** @import {Edit, Input, State} from "./types.js" */

/** A string literal of Python. @param {string} text */
export function quoted(text) {
  const safe = JSON.stringify(text);
  return safe.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
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
 * @returns {string} one statement, or a `with` of two lines; pixels are called `drawn` and `second`
 */
export function pythonLine(state, edits, allHeads) {
  const load = `run = al.load(${quoted(state.run)})`;
  if (!state.input) return load;
  const ask = `run.predict(${argument(state.input, "drawn")})`;
  if (!edits.length) return `${load}\n${ask}`;
  return `${load}\nwith ${context(state, edits, allHeads)}:\n    ${ask}`;
}

/** @param {State} state @param {Edit[]} edits @param {boolean} allHeads */
function context(state, edits, allHeads) {
  const first = edits[0];
  const to = first?.op === "off" ? first.to : "resample";
  const plain = allHeads && to !== "resample" && edits.every((edit) => edit.op === "off" && edit.to === to);
  if (plain) return `run.without(${[...edits.map(({ at }) => quoted(at)), `to=${quoted(to)}`].join(", ")})`;
  const needsOther = state.other && edits.some((edit) => edit.op === "swap");
  const other = needsOther && state.other ? [`other=${argument(state.other, "second")}`] : [];
  return `run.changed(${[...edits.map(literal), ...other].join(", ")})`;
}

/** Whether the line names an array that the page cannot write out. @param {State} state */
export function namesPixels(state) {
  return isDrawn(state.input) || isDrawn(state.other);
}
