// @ts-check
/** The page: connects the store, a port and the views. */

import { createAsker } from "./asking.js";
import { announcer, h, notice } from "./html.js";
import { createStore, emptyState, fromHash, toHash } from "./store.js";
import { createPage } from "./views/page.js";

/** @import {Action, App, Diagnosis, History, Input, Model, Port, RunEntry, State, Subject, Token, Trouble} from "./types.js" */
/** @import {Scenes} from "./asking.js" */
/**
 * @typedef {object} Options
 * @property {string} [run]  which run to open; by default that of the URL, else the first of the list
 * @property {boolean} [hash]  whether the state lives in the URL
 * @property {{get: () => State | null, set: (state: State) => void}} [widget]  where else it lives
 */

const STEP_SECONDS = 0.7;
/** Browsers refuse to change the URL more often. */
const HASH_PAUSE = 250;

/**
 * Show the explorer in `root`.
 *
 * `root.dataset.state` is the number of the last state accepted, `root.dataset.drawn` that of the last one of
 * which everything is drawn, `root.dataset.kept` that of the one in the URL.
 * @param {HTMLElement} root @param {Port} port @param {Options} [options]
 */
export function mount(root, port, options = {}) {
  /** @type {Subject | null} */
  let subject = null;
  /** @type {ReturnType<typeof createAsker> | null} */
  let asker = null;
  /** @type {RunEntry[]} */
  let runs = [];
  /** @type {Trouble | null} */
  let trouble = null;
  /** @type {Token | null} */
  let hovered = null;
  /** @type {Scenes} */
  let scenes = { clean: null, edited: null, other: null };
  /** @type {Diagnosis | null} */
  let diagnosis = null;
  /** @type {Model | null} */
  let drawn = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let player;
  let accepted = 0;
  let opening = 0;
  let frame = 0;
  let alive = true;

  const store = createStore(startState(options), changed);
  const { element: region, announce } = announcer();
  const told = notice();
  /** @type {App} */
  const app = { port, root, dispatch: store.dispatch, hover, announce, tell: told.tell, diagnosed, play, model: () => drawn };
  const page = createPage(app);
  root.classList.add("attnlab");
  root.dataset.state = root.dataset.kept = "0";
  delete root.dataset.drawn;
  root.replaceChildren(page.element, region, told.element);

  /** @param {History} history @param {Action} action */
  function changed({ state }, action) {
    accepted += 1;
    root.dataset.state = String(accepted);
    performance.mark("attnlab:state", { detail: accepted });
    if (state.run !== subject?.name || action.type === "open") open(state.run);
    else if (state.input === null) giveInput();
    if (action.type === "input") play(false);
    asker?.pump();
    remember();
    schedule();
  }

  /** @param {string} name */
  async function open(name) {
    opening += 1;
    const number = opening;
    asker?.close();
    [asker, subject, trouble, hovered] = [null, null, null, null];
    scenes = { clean: null, edited: null, other: null };
    diagnosis = null;
    play(false);
    schedule();
    try {
      const found = await port.open(name);
      if (number !== opening || !alive) return;
      subject = found;
      asker = createAsker(port, found, store.state, arrived);
      if (store.state().input === null) giveInput();
      asker.pump();
    } catch (error) {
      if (number === opening) trouble = runTrouble(error, () => open(name));
    }
    schedule();
  }

  /** @param {any} error @param {() => void} again @returns {Trouble} */
  function runTrouble(error, again) {
    const lost = Boolean(error?.lost);
    if (lost) setTimeout(() => alive && again(), 2000);
    const message = lost ? "The connection is lost; trying again." : String(error?.message || error);
    return { at: "run", message, lost };
  }

  function giveInput() {
    if (subject) store.dispatch({ type: "input", input: firstInput(subject) });
  }

  /** A scene or an error has come: what is complete is drawn at once, the rest with the next frame. */
  function arrived() {
    if (asker?.look().complete) render();
    else schedule();
  }

  function schedule() {
    frame ||= requestAnimationFrame(render);
  }

  function render() {
    cancelAnimationFrame(frame);
    frame = 0;
    if (!alive) return;
    const looked = asker?.look();
    if (looked?.complete) scenes = shownScenes(looked.scenes);
    drawn = subject && modelOf(subject, looked ?? null);
    page.render(drawn, { runs, trouble, state: store.state() });
    if (!subject ? trouble : looked?.complete) finish();
  }

  /** While an input cannot be read, the last answers stay. @param {Scenes} found @returns {Scenes} */
  function shownScenes(found) {
    return found.clean || store.state().input === null ? found : { ...scenes, other: found.other };
  }

  /** @param {Subject} subject @param {{error: Trouble | null, complete: boolean} | null} looked @returns {Model} */
  function modelOf(subject, looked) {
    const { state, past, future } = store.history();
    return {
      state, subject, ...scenes, diagnosis, runs, hover: hovered, playing: player !== undefined,
      busy: !looked?.complete, error: looked?.error ?? trouble,
      canUndo: past.length > 0, canRedo: future.length > 0,
    };
  }

  function finish() {
    if (root.dataset.drawn === String(accepted)) return;
    root.dataset.drawn = String(accepted);
    performance.mark("attnlab:drawn", { detail: accepted });
  }

  /** @param {Token | null} token */
  function hover(token) {
    if (token?.side === hovered?.side && token?.index === hovered?.index) return;
    hovered = token;
    schedule();
  }

  /** @param {Diagnosis | null} found */
  function diagnosed(found) {
    if (found === diagnosis) return;
    diagnosis = found;
    schedule();
  }

  /** @param {boolean} on */
  function play(on) {
    if (on === (player !== undefined)) return;
    clearInterval(player);
    player = undefined;
    if (on) {
      store.dispatch({ type: "step", step: 0 });
      player = setInterval(forward, 1000 * STEP_SECONDS);
    }
    schedule();
  }

  function forward() {
    const tokens = (scenes.edited ?? scenes.clean)?.answer.tokens.length ?? 0;
    const next = (store.state().step ?? tokens) + 1;
    store.dispatch({ type: "step", step: next < tokens ? next : null });
    if (next >= tokens) play(false);
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let saving;
  function remember() {
    options.widget?.set(store.state());
    if (!options.hash || saving !== undefined) return;
    saving = setTimeout(() => {
      saving = undefined;
      history.replaceState(null, "", toHash(store.state()));
      root.dataset.kept = String(accepted);
    }, HASH_PAUSE);
  }

  function onHash() {
    if (saving === undefined && location.hash !== toHash(store.state()))
      store.dispatch({ type: "restore", state: fromHash(location.hash) });
  }

  async function begin() {
    try {
      runs = await port.list();
      const named = store.state().run || runs[0]?.name;
      if (named && named !== store.state().run) store.dispatch({ type: "open", run: named });
      else if (named) await open(named);
      else trouble = { at: "run", message: "There are no runs here; attnlab train makes one.", lost: false };
    } catch (error) {
      trouble = runTrouble(error, begin);
    }
    schedule();
  }

  if (options.hash) addEventListener("hashchange", onHash);
  const unwatch = page.onKey(store.dispatch);
  schedule();
  begin();
  return {
    state: store.state,
    dispatch: store.dispatch,
    app,
    destroy() {
      alive = false;
      clearTimeout(saving); // else it would write this state into the address of whatever comes next
      play(false);
      asker?.close();
      cancelAnimationFrame(frame);
      removeEventListener("hashchange", onHash);
      unwatch();
      told.stop();
      page.destroy();
      root.replaceChildren(h("span"));
    },
  };
}

/** @param {Options} options @returns {State} */
function startState({ run = "", hash, widget }) {
  const given = widget?.get() ?? (hash ? fromHash(location.hash) : null);
  return given && (given.run || !run) ? given : { ...emptyState(run), ...(given ?? {}), run: given?.run || run };
}

/** What is asked first, so that nothing is empty. @param {Subject} subject @returns {Input} */
export function firstInput({ task }) {
  const [text] = task.suggestions;
  if (task.input === "text" && text !== undefined) return { text };
  const [split = "valid"] = Object.keys(task.splits);
  return { example: { split, index: 0 } };
}
