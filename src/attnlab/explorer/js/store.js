// @ts-check
/** The state, what actions make of it, undo and redo of edits, and the state as the hash of a URL. */

/** @import {Action, Baseline, Edit, History, Input, Showing, State, Values, ViewName} from "./types.js" */

/** @type {readonly ViewName[]} */
export const VIEWS = ["heads", "guesses", "neurons", "ask", "findings", "about"];
/** @type {readonly Baseline[]} */
const BASELINES = ["zero", "mean", "resample"];
/** @type {readonly Showing[]} */
const SHOWINGS = ["edited", "clean", "change"];
const MOST_UNDONE = 200;
const MOST_SCALE = 100;

/** @returns {State} */
export function emptyState(run = "") {
  return {
    run, input: null, other: null, edits: [], snapshot: null, head: null, view: "heads", step: null,
    feed: null, to: "zero", show: "edited",
  };
}

/** @param {State} state @returns {History} */
export function newHistory(state) {
  return { past: [], state, future: [], gesture: null };
}

/**
 * What an action makes of a history; the same object where nothing changes.
 * @param {History} history @param {Action} action @returns {History}
 */
export function reduce(history, action) {
  const { state } = history;
  switch (action.type) {
    case "open": return newHistory({ ...emptyState(action.run), view: state.view, to: state.to });
    case "restore": return newHistory(action.state);
    case "edit": return edited(history, withEdit(state.edits, action.edit), action.gesture ?? null);
    case "remove": return edited(history, state.edits.filter((_, index) => index !== action.index), null);
    case "baseline": return rebased(history, action.to);
    case "clear": return state.edits.length ? edited(history, [], null) : history;
    case "undo": return undo(history);
    case "redo": return redo(history);
    default: return withState(history, changed(state, action));
  }
}

/**
 * @param {State} state
 * @param {Exclude<Action, {type: "open" | "restore" | "edit" | "remove" | "baseline" | "clear" | "undo" | "redo"}>} action
 * @returns {Partial<State>}
 */
function changed(state, action) {
  switch (action.type) {
    case "input": return sameInput(state.input, action.input) ? {} : { input: action.input, step: null };
    case "other": return sameInput(state.other, action.input) ? {} : { other: action.input };
    case "choose": return { head: action.head };
    case "view": return { view: action.view };
    case "step": return { step: action.step };
    case "snapshot": return { snapshot: action.step };
    case "feed": return { feed: action.feed };
    case "show": return { show: action.show };
  }
}

/** @param {History} history @param {Partial<State>} change @returns {History} */
function withState(history, change) {
  const state = { ...history.state, ...change };
  const same = Object.entries(change).every(([key, value]) => Reflect.get(history.state, key) === value);
  return same ? history : { ...history, state, gesture: null };
}

/**
 * @param {History} history @param {Edit[]} edits @param {number | null} gesture @returns {History}
 */
function edited(history, edits, gesture) {
  const goesOn = gesture !== null && gesture === history.gesture;
  const past = goesOn ? history.past : [...history.past, history.state.edits].slice(-MOST_UNDONE);
  return { past, state: { ...history.state, edits }, future: [], gesture };
}

/** What takes the place of what is off, and of what will be. @param {History} history @param {Baseline} to @returns {History} */
function rebased(history, to) {
  const next = withState(history, { to });
  const { edits } = history.state;
  if (edits.every((edit) => edit.op !== "off" || edit.to === to)) return next;
  return edited(next, edits.map((edit) => (edit.op === "off" ? { ...edit, to } : edit)), null);
}

/** @param {History} history @returns {History} */
function undo({ past, state, future }) {
  const edits = past.at(-1);
  if (!edits) return { past, state, future, gesture: null };
  return { past: past.slice(0, -1), state: { ...state, edits }, future: [state.edits, ...future], gesture: null };
}

/** @param {History} history @returns {History} */
function redo({ past, state, future }) {
  const edits = future[0];
  if (!edits) return { past, state, future, gesture: null };
  return { past: [...past, state.edits], state: { ...state, edits }, future: future.slice(1), gesture: null };
}

/**
 * The edits with one more: it replaces an edit of the same kind at the same place. What is switched off the
 * same way a second time is on again; scores times 1 are as they were.
 * @param {readonly Edit[]} edits @param {Edit} edit @returns {Edit[]}
 */
export function withEdit(edits, edit) {
  const at = edits.findIndex((each) => each.op === edit.op && each.at === edit.at);
  const old = edits[at];
  const others = edits.filter((_, index) => index !== at);
  if (edit.op === "off" && old?.op === "off" && old.to === edit.to) return others;
  if (edit.op === "swap" && old) return others;
  if (edit.op === "scale" && edit.by === 1) return others;
  if (edit.op === "pattern" && Object.keys(edit.rows).length === 0) return others;
  return old ? edits.map((each, index) => (index === at ? edit : each)) : [...edits, edit];
}

/** @param {Input | null} a @param {Input | null} b */
export function sameInput(a, b) {
  return a === b || (a !== null && b !== null && inputKey(a) === inputKey(b));
}

/** @type {WeakMap<Input, string>} */
const keys = new WeakMap();

/** A text that is the same for the same input. @param {Input} input */
export function inputKey(input) {
  const known = keys.get(input) ?? inputParams("", input).map((pair) => pair.join("=")).join("&");
  keys.set(input, known);
  return known;
}

/**
 * A store: `dispatch` changes the state and calls `onChange`, where anything changed.
 * @param {State} state @param {(history: History, action: Action) => void} onChange
 */
export function createStore(state, onChange) {
  let history = newHistory(state);
  return {
    state: () => history.state,
    history: () => history,
    /** @param {Action} action */
    dispatch(action) {
      const next = reduce(history, action);
      if (next === history) return;
      history = next;
      onChange(history, action);
    },
  };
}

// --- the state as a hash: #run=zoo:adder&text=374%2B814&edits=off~encoder.0.self.0~zero ---

/** @param {State} state @returns {string} */
export function toHash(state) {
  /** @type {[string, string][]} */
  const pairs = [["run", state.run]];
  if (state.input) pairs.push(...inputParams("", state.input));
  if (state.other) pairs.push(...inputParams("other-", state.other));
  if (state.edits.length) pairs.push(["edits", state.edits.map(editText).join("!")]);
  if (state.snapshot !== null) pairs.push(["snapshot", String(state.snapshot)]);
  if (state.head !== null) pairs.push(["head", state.head]);
  if (state.view !== "heads") pairs.push(["view", state.view]);
  if (state.step !== null) pairs.push(["step", String(state.step)]);
  if (state.feed !== null) pairs.push(["feed", state.feed]);
  if (state.to !== "zero") pairs.push(["to", state.to]);
  if (state.show !== "edited") pairs.push(["show", state.show]);
  return "#" + pairs.map(([key, value]) => `${key}=${escape(value)}`).join("&");
}

/** What may stand in a hash as it is stays readable. @param {string} text */
function escape(text) {
  return encodeURIComponent(text).replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/");
}

/**
 * The state in a hash. What cannot be read there is left out.
 * @param {string} hash @returns {State}
 */
export function fromHash(hash) {
  const given = parsePairs(hash);
  const view = VIEWS.find((name) => name === given.get("view"));
  return {
    run: given.get("run") ?? "",
    input: readInput("", given),
    other: readInput("other-", given),
    edits: (given.get("edits") ?? "").split("!").flatMap(readEdit),
    snapshot: readCount(given.get("snapshot")),
    head: given.get("head") ?? null,
    view: view ?? "heads",
    step: readCount(given.get("step")),
    feed: given.get("feed") ?? null,
    to: BASELINES.find((name) => name === given.get("to")) ?? "zero",
    show: SHOWINGS.find((name) => name === given.get("show")) ?? "edited",
  };
}

/** @param {string} hash @returns {Map<string, string>} */
function parsePairs(hash) {
  /** @type {Map<string, string>} */
  const pairs = new Map();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at < 1) continue;
    try {
      pairs.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
    } catch {
      // a broken escape: this pair is left out
    }
  }
  return pairs;
}

/** @param {string} prefix @param {Input} input @returns {[string, string][]} */
function inputParams(prefix, input) {
  if ("text" in input) return [[`${prefix}text`, input.text]];
  if ("example" in input) return [[`${prefix}example`, `${input.example.split}.${input.example.index}`]];
  return [[`${prefix}pixels`, pixelText(input.pixels)]];
}

/** @param {string} prefix @param {Map<string, string>} given @returns {Input | null} */
function readInput(prefix, given) {
  const text = given.get(`${prefix}text`);
  if (text !== undefined) return { text };
  const example = /^(\w+)\.(\d+)$/.exec(given.get(`${prefix}example`) ?? "");
  if (example) return { example: { split: String(example[1]), index: Number(example[2]) } };
  const pixels = readPixels(given.get(`${prefix}pixels`) ?? "");
  return pixels && { pixels };
}

/** @param {string | undefined} text */
function readCount(text) {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : null;
}

/** `off~encoder.0.self.0~zero`, `pattern~decoder.0.cross.1~3_0.5_0.5~4_1_0`. @param {Edit} edit */
export function editText(edit) {
  switch (edit.op) {
    case "off": return `off~${edit.at}~${edit.to}`;
    case "scale": return `scale~${edit.at}~${edit.by}`;
    case "swap": return `swap~${edit.at}`;
    case "pattern": return ["pattern", edit.at, ...Object.entries(edit.rows).map((row) => row.flat().join("_"))].join("~");
  }
}

/** @param {string} text @returns {Edit[]} one edit, or none where it cannot be read */
function readEdit(text) {
  const [op, at, ...rest] = text.split("~");
  if (!at) return [];
  const to = BASELINES.find((name) => name === rest[0]);
  const by = Number(rest[0] || NaN);
  if (op === "off" && to) return [{ op, at, to }];
  if (op === "scale" && by >= 0 && by <= MOST_SCALE) return [{ op, at, by }];
  if (op === "swap") return [{ op, at }];
  const rows = rest.map((row) => row.split("_").map(Number));
  if (op !== "pattern" || !rows.length || !rows.every(isRow)) return [];
  return [{ op, at, rows: Object.fromEntries(rows.map(([query, ...weights]) => [String(query), weights])) }];
}

/** Whether it is a query and its weights, which sum to 1. @param {number[]} row */
function isRow([query, ...weights]) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const whole = query !== undefined && Number.isInteger(query) && query >= 0;
  return whole && weights.every((weight) => weight >= 0) && Math.abs(total - 1) < 1e-3;
}

/** `1x28x28.` and the bytes, runs of zeros shortened, in base64 for URLs. @param {Values} values */
function pixelText({ shape, data }) {
  /** @type {number[]} */
  const bytes = [];
  for (let i = 0; i < data.length; ) {
    let run = 0;
    while (run < 255 && data[i + run] === 0) run += 1;
    if (run) bytes.push(0, run);
    else bytes.push(Number(data[i]));
    i += run || 1;
  }
  const text = btoa(bytes.map((byte) => String.fromCharCode(byte)).join(""));
  return `${shape.join("x")}.${text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** @param {string} text @returns {Values | null} */
function readPixels(text) {
  const parts = /^(\d{1,4})x(\d{1,4})x(\d{1,4})\.([\w-]*)$/.exec(text);
  if (!parts) return null;
  const shape = parts.slice(1, 4).map(Number);
  const size = shape.reduce((product, side) => product * side, 1);
  /** @type {number[]} */
  const data = [];
  let packed = "";
  try {
    packed = atob(String(parts[4]).replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return null;
  }
  for (let i = 0; i < packed.length && data.length <= size; i += 1) {
    const byte = packed.charCodeAt(i);
    if (byte) data.push(byte);
    else for (let left = packed.charCodeAt((i += 1)); left > 0; left -= 1) data.push(0);
  }
  return data.length === size ? { shape, data: Uint8Array.from(data) } : null;
}
