// @ts-check
/**
 * Which scenes a state needs, asked one after the other, kept, and asked again where the connection was lost.
 * At most one question is under way: the newest state decides what is asked next, so no answer waits behind
 * one that nobody needs.
 */

import { activeEdits, editText } from "./edits.js";
import { inputKey } from "./store.js";

/** @import {Edit, Input, Port, Question, Scene, State, Subject, Trouble, Want} from "./types.js" */
/** @typedef {"input" | "other" | "edits"} Slot */
/** @typedef {{slot: Slot, key: string, question: Question}} Need */
/** @typedef {{clean: Scene | null, edited: Scene | null, other: Scene | null}} Scenes */

const MOST_KEPT = 32;
const FIRST_RETRY = 1000;
const LAST_RETRY = 10000;

/** What the chosen view shows. @param {State} state @param {Subject} subject @returns {Want} */
export function wantOf(state, subject) {
  const feed = state.view === "neurons" ? (state.feed ?? subject.model.feeds[0]?.path ?? null) : null;
  return { patterns: state.view === "heads", guesses: state.view === "guesses", neurons: feed };
}

/**
 * @param {Port} port @param {Subject} subject
 * @param {() => State} state
 * @param {() => void} onChange  a scene has come, or an error
 */
export function createAsker(port, subject, state, onChange) {
  /** @type {Map<string, {scene: Scene, want: Want}>} */
  const kept = new Map();
  /** @type {Map<string, Trouble>} */
  const refused = new Map();
  /** @type {string | null} */
  let underWay = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry;
  /** @type {Trouble | null} */
  let lost = null;
  let pause = FIRST_RETRY;
  let closed = false;

  /** @param {string} key @param {Want} want */
  function find(key, want) {
    const entry = kept.get(key);
    return entry && covers(entry.want, want) ? entry.scene : null;
  }

  /** @param {Need} need */
  function keep({ key, question }, /** @type {Scene} */ scene) {
    const old = kept.get(key);
    kept.delete(key);
    kept.set(key, old ? joined(old, { scene, want: question.want }) : { scene, want: question.want });
    const oldest = kept.keys().next().value;
    if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  }

  /** What the state needs, with what is there already; the clean scene first, since edits are fitted to it. */
  function needs() {
    const now = state();
    if (!now.input) return [];
    const { input } = now;
    const want = wantOf(now, subject);
    const plain = needOf("input", input, now.edits.length && now.show === "edited" ? { ...want, patterns: false } : want);
    const clean = find(plain.key, plain.question.want);
    const list = [plain];
    if (now.other) list.push(needOf("other", now.other, { ...want, guesses: false, neurons: null }));
    if (clean) {
      const edits = activeEdits(now, subject, clean);
      if (edits.length) list.push(needOf("edits", input, want, edits));
    }
    return list;
  }

  /** @param {Slot} slot @param {Input} input @param {Want} want @param {Edit[]} edits @returns {Need} */
  function needOf(slot, input, want, edits = []) {
    const { other, snapshot } = state();
    const swapped = edits.some((edit) => edit.op === "swap") ? other : null;
    const question = { input, other: swapped, edits, snapshot, want };
    const parts = [inputKey(input), String(snapshot), swapped ? inputKey(swapped) : "", edits.map(editText).join("!")];
    return { slot, key: parts.join("|"), question };
  }

  /** Ask for the first thing that is missing, unless something is under way. */
  function pump() {
    if (underWay !== null || closed || retry !== undefined) return;
    const next = needs().find((need) => !find(need.key, need.question.want) && !refused.has(need.key));
    if (!next) return;
    underWay = next.key;
    port.ask(next.question).then(
      (scene) => arrived(next, () => keep(next, scene)),
      (error) => arrived(next, () => fail(next, error)),
    );
  }

  /** @param {Need} need @param {() => void} note */
  function arrived(need, note) {
    underWay = null;
    if (closed) return;
    lost = null;
    note();
    if (!lost) pause = FIRST_RETRY;
    pump();
    onChange();
  }

  /** @param {Need} need @param {any} error */
  function fail(need, error) {
    if (error?.dropped) return;
    const trouble = { at: need.slot, message: String(error?.message || error), lost: Boolean(error?.lost) };
    if (!trouble.lost) {
      refused.set(need.key, trouble);
      return;
    }
    lost = { ...trouble, message: "The connection is lost; trying again." };
    retry = setTimeout(again, pause);
    pause = Math.min(LAST_RETRY, 2 * pause);
  }

  function again() {
    retry = undefined;
    pump();
  }

  return {
    pump,
    /** The scenes of the state and what is wrong; `complete` where nothing more is to come. */
    look() {
      /** @type {Scenes} */
      const scenes = { clean: null, edited: null, other: null };
      /** @type {Trouble | null} */
      let error = lost;
      let complete = true;
      for (const { slot, key, question } of needs()) {
        const scene = find(key, question.want);
        const trouble = refused.get(key);
        scenes[slot === "input" ? "clean" : slot === "edits" ? "edited" : "other"] = scene;
        if (trouble) error ??= { ...trouble, at: slot };
        else if (!scene) complete = false;
      }
      return { scenes, error, complete };
    },
    close() {
      closed = true;
      clearTimeout(retry);
    },
  };
}

/** Whether what is there is enough. @param {Want} have @param {Want} want */
export function covers(have, want) {
  const patterns = have.patterns === true || want.patterns === false;
  return patterns && (have.guesses || !want.guesses) && (want.neurons === null || have.neurons === want.neurons);
}

/**
 * Two scenes of one question that differ in what was wanted.
 * @param {{scene: Scene, want: Want}} old @param {{scene: Scene, want: Want}} young
 */
function joined(old, young) {
  const neurons = young.want.neurons ? young : old;
  const scene = {
    ...young.scene,
    patterns: young.want.patterns ? young.scene.patterns : old.scene.patterns,
    guesses: young.want.guesses ? young.scene.guesses : old.scene.guesses,
    neurons: neurons.scene.neurons,
  };
  const want = {
    patterns: young.want.patterns || old.want.patterns,
    guesses: young.want.guesses || old.want.guesses,
    neurons: neurons.want.neurons,
  };
  return { scene, want };
}
