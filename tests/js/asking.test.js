// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { covers, createAsker } from "../../src/attnlab/explorer/js/asking.js";
import { emptyState } from "../../src/attnlab/explorer/js/store.js";
import { SUBJECT, fakePort } from "./fake_port.js";

/** @import {State} from "../../src/attnlab/explorer/js/types.js" */

const START = { ...emptyState("fake"), input: { text: "abc" } };
const off = /** @type {const} */ ({ op: "off", at: "encoder.0.self.1", to: "zero" });

/** @param {State} [state] */
function asking(state = START) {
  const fake = fakePort();
  const now = { state, changes: 0 };
  const asker = createAsker(fake.port, SUBJECT, () => now.state, () => { now.changes += 1; });
  return {
    ...fake, asker, now,
    /** @param {Partial<State>} change */
    become(change) {
      now.state = { ...now.state, ...change };
      asker.pump();
    },
  };
}

test("one question at a time, then the newest state decides", async () => {
  const { asker, asked, answer, become } = asking();
  asker.pump();
  become({ input: { text: "abcd" } });
  become({ input: { text: "abcde" } });
  assert.equal(asked.length, 1);
  await answer();
  assert.deepEqual(asked.map(({ input }) => input), [{ text: "abc" }, { text: "abcde" }]);
  assert.equal(asker.look().complete, false);
  await answer();
  const { scenes, complete } = asker.look();
  assert.equal(scenes.clean?.input.name, "abcde");
  assert.ok(complete);
  become({ input: { text: "abc" } });
  assert.equal(asked.length, 2, "the first answer was kept");
});

test("the clean scene is asked once, the edited one for each set of edits", async () => {
  const { asker, asked, answer, become } = asking();
  asker.pump();
  await answer();
  become({ edits: [off] });
  await answer();
  assert.deepEqual(asked.map(({ edits }) => edits), [[], [off]]);
  assert.equal(asker.look().scenes.edited?.answer.tokens[0].label, "y");
  become({ edits: [] });
  assert.equal(asker.look().scenes.edited, null);
  become({ edits: [off] });
  assert.equal(asked.length, 2);
  assert.ok(asker.look().complete);
});

test("with edits the clean patterns are asked for only if they are shown", async () => {
  const { asker, asked, answer, become } = asking({ ...START, edits: [off] });
  asker.pump();
  await answer();
  await answer();
  assert.deepEqual(asked.map(({ want }) => want.patterns), [false, true]);
  become({ show: "change" });
  await answer();
  assert.deepEqual(asked[2].want.patterns, true);
  assert.deepEqual(asked[2].edits, []);
});

test("a view asks for what it shows, and what was there stays", async () => {
  const { asker, asked, answer, become } = asking();
  asker.pump();
  await answer();
  become({ view: "guesses" });
  await answer();
  become({ view: "neurons", feed: "decoder.0.feed" });
  await answer();
  assert.deepEqual(asked.map(({ want }) => want), [
    { patterns: true, guesses: false, neurons: null }, { patterns: false, guesses: true, neurons: null },
    { patterns: false, guesses: false, neurons: "decoder.0.feed" },
  ]);
  for (const view of /** @type {const} */ (["heads", "guesses", "ask"])) become({ view });
  assert.equal(asked.length, 3);
  const { clean } = asker.look().scenes;
  assert.deepEqual([Object.keys(clean?.patterns ?? {}).length, clean?.guesses.length, clean?.neurons?.path], [3, 1, "decoder.0.feed"]);
});

test("swaps wait for another input, and painted rows for one of their length", async () => {
  const swap = /** @type {const} */ ({ op: "swap", at: "encoder.0" });
  const painted = { op: /** @type {const} */ ("pattern"), at: "decoder.0.cross.1", rows: { 1: [0, 1, 0] } };
  const { asker, asked, answer, become } = asking({ ...START, edits: [swap, painted] });
  asker.pump();
  await answer();
  await answer();
  assert.deepEqual(asked[1].edits, [painted]);
  become({ other: { text: "xyz" }, input: { text: "abcd" } });
  await answer();
  await answer();
  await answer();
  assert.deepEqual(asked.slice(2).map(({ input, other, edits }) => [input, other, edits]), [
    [{ text: "abcd" }, null, []], [{ text: "xyz" }, null, []], [{ text: "abcd" }, { text: "xyz" }, [swap]],
  ]);
});

test("what is refused is said and not asked again", async () => {
  const { asker, asked, refuse, become, now } = asking();
  asker.pump();
  await refuse(new Error("'abc' is not a sum"));
  assert.deepEqual(asker.look().error, { at: "input", message: "'abc' is not a sum", lost: false });
  assert.ok(asker.look().complete);
  become({ view: "guesses" });
  assert.equal(asked.length, 1);
  become({ input: { text: "abcd" } });
  assert.equal(asker.look().error, null);
  assert.equal(now.changes, 1);
});

test("a lost connection is tried again, more and more seldom", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { asker, asked, refuse, answer } = asking();
  const real = async (/** @type {Promise<void>} */ done) => {
    for (let i = 0; i < 9; i += 1) await Promise.resolve();
    context.mock.timers.tick(0);
    await done;
  };
  asker.pump();
  await real(refuse(Object.assign(new Error("gone"), { lost: true })));
  assert.equal(asker.look().error?.lost, true);
  context.mock.timers.tick(999);
  assert.equal(asked.length, 1);
  context.mock.timers.tick(1);
  assert.equal(asked.length, 2);
  await real(refuse(Object.assign(new Error("gone"), { lost: true })));
  context.mock.timers.tick(1999);
  assert.equal(asked.length, 2);
  context.mock.timers.tick(1);
  await real(answer());
  assert.equal(asker.look().error, null);
  assert.ok(asker.look().complete);
});

test("an overtaken question is asked again if it is still wanted", async () => {
  const { asker, asked, refuse } = asking();
  asker.pump();
  await refuse(Object.assign(new Error(""), { dropped: true }));
  assert.equal(asked.length, 2);
  assert.equal(asker.look().error, null);
});

test("a closed asker is silent", async () => {
  const { asker, answer, now } = asking();
  asker.pump();
  asker.close();
  await answer();
  assert.equal(now.changes, 0);
});

test("what is there is enough if it has all that is wanted", () => {
  const all = { patterns: true, guesses: true, neurons: "a" };
  const none = { patterns: false, guesses: false, neurons: null };
  assert.ok(covers(all, none) && covers(none, none) && covers(all, all));
  assert.ok(!covers(none, { ...none, patterns: true }) && !covers(none, { ...none, guesses: true }));
  assert.ok(!covers(all, { ...none, neurons: "b" }));
});
