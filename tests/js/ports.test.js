// @ts-check
import assert from "node:assert/strict";
import test from "node:test";
import { pack, readFrame, unpack, writeFrame } from "../../src/attnlab/explorer/js/ports/frames.js";
import { PortError, requestPort } from "../../src/attnlab/explorer/js/ports/requests.js";
import { socketPort } from "../../src/attnlab/explorer/js/ports/socket.js";
import { widgetPort } from "../../src/attnlab/explorer/js/ports/widget.js";

const PATTERN = { shape: [1, 3], data: Float32Array.of(0.25, 0.5, 0.25) };
const PIXELS = { shape: [5], data: Uint8Array.of(1, 2, 3, 4, 5) };

test("numbers go into a frame and come back", () => {
  const message = { id: 7, text: "größer → 3", list: [PIXELS, null, true, { deep: PATTERN }] };
  assert.deepEqual(readFrame(writeFrame(message).buffer), message);
});

test("numbers begin at multiples of 4, in the frame too", () => {
  for (const text of ["", "a", "ab", "abc"]) {
    const frame = writeFrame({ text, both: [PIXELS, PATTERN] });
    assert.equal(frame.length % 4, 0);
    const { plain } = pack({ text, both: [PIXELS, PATTERN] });
    assert.deepEqual(plain.both, [{ shape: [5], at: 0, type: "u8" }, { shape: [1, 3], at: 8, type: "f32" }]);
    assert.equal(readFrame(frame.buffer).both[1].data.byteOffset % 4, 0);
  }
});

test("part of a buffer is sent, not all of it", () => {
  const part = { shape: [2], data: PATTERN.data.subarray(1) };
  const { plain, numbers } = pack(part);
  assert.deepEqual(unpack(plain, numbers.buffer), part);
});

/** @returns {{sent: any[], port: import("../../src/attnlab/explorer/js/types.js").Port, receive: (message: any) => void,
 *   fail: (error: PortError) => void}} */
function plainPort() {
  /** @type {any[]} */
  const sent = [];
  return { sent, ...requestPort((message) => sent.push(message), () => {}) };
}

test("replies find their requests in any order", async () => {
  const { sent, port, receive } = plainPort();
  const list = port.list();
  const open = port.open("zoo:adder");
  assert.deepEqual(sent, [{ id: 1, kind: "list" }, { id: 2, kind: "open", run: "zoo:adder" }]);
  receive({ id: 2, ok: true, value: "subject" });
  receive({ id: 1, ok: true, value: [] });
  receive({ id: 99, ok: true, value: "nobody asked" });
  assert.deepEqual(await Promise.all([list, open]), [[], "subject"]);
});

test("a refusal is an error for people; a dropped question says that it was dropped", async () => {
  const { port, receive } = plainPort();
  const question = { input: { text: "1" }, other: null, edits: [], snapshot: null, want: { patterns: true, guesses: false, neurons: null } };
  const [first, second] = [port.ask(question), port.ask(question)];
  receive({ id: 1, ok: false, error: "", dropped: true });
  receive({ id: 2, ok: false, error: "write it as 374+814" });
  await assert.rejects(first, { name: "PortError", dropped: true, lost: false });
  await assert.rejects(second, { message: "write it as 374+814", dropped: false });
});

test("a job says how far it is and can be cancelled", async () => {
  const { sent, port, receive } = plainPort();
  /** @type {number[][]} */
  const heard = [];
  const { result, cancel } = port.start({ analysis: "heads", input: null, examples: 7, split: "valid" }, (...far) => heard.push(far));
  receive({ id: 1, progress: [3, 7] });
  cancel();
  assert.deepEqual(sent[1], { id: 2, kind: "cancel", run: "", job: 1 });
  receive({ id: 2, ok: true, value: true });
  receive({ id: 1, ok: false, error: "", dropped: true });
  await assert.rejects(result, { dropped: true });
  assert.deepEqual(heard, [[3, 7]]);
});

test("what waits when the connection goes is told so", async () => {
  const { port, fail } = plainPort();
  const list = port.list();
  fail(new PortError("gone", { lost: true }));
  await assert.rejects(list, { message: "gone", lost: true });
});

/** A socket without a network. */
class FakeSocket {
  static OPEN = 1;
  /** @type {FakeSocket[]} */
  static all = [];
  readyState = 0;
  /** @type {any[]} */
  sent = [];
  /** @type {() => void} */
  onopen = () => {};
  /** @type {(event: {data: ArrayBuffer}) => void} */
  onmessage = () => {};
  /** @type {(event: {reason: string}) => void} */
  onclose = () => {};

  /** @param {URL} url */
  constructor(url) {
    this.url = url.href;
    FakeSocket.all.push(this);
  }

  /** @param {Uint8Array<ArrayBuffer>} frame */
  send(frame) {
    this.sent.push(readFrame(frame.buffer));
  }

  open() {
    this.readyState = 1;
    this.onopen();
  }

  close() {}
}

test("a socket is opened when something is asked, and again after it was lost", async () => {
  Reflect.set(globalThis, "WebSocket", FakeSocket);
  const port = socketPort(new URL("http://127.0.0.1:8000/token/socket#run=a"));
  assert.equal(FakeSocket.all.length, 0);
  const first = port.list();
  const [socket] = FakeSocket.all;
  assert.equal(socket?.url, "ws://127.0.0.1:8000/token/socket");
  assert.deepEqual(socket?.sent, []);
  socket?.open();
  assert.deepEqual(socket?.sent, [{ id: 1, kind: "list" }]);
  socket?.onmessage({ data: writeFrame({ id: 1, ok: true, value: [PATTERN] }).buffer });
  assert.deepEqual(await first, [PATTERN]);
  const lost = port.list();
  socket?.onclose({ reason: "" });
  await assert.rejects(lost, { lost: true, message: "the connection to attnlab is gone; is it still running?" });
  port.list().catch(() => {});
  assert.equal(FakeSocket.all.length, 2);
  port.close();
});

test("a widget's numbers travel as one buffer, wherever it begins", async () => {
  /** @type {any[]} */
  const sent = [];
  /** @type {Map<string, (...given: any[]) => void>} */
  const listeners = new Map();
  const port = widgetPort({
    get: () => null,
    set: () => {},
    save_changes: () => {},
    send: (content, _, buffers) => sent.push([content, buffers]),
    on: (event, listener) => listeners.set(event, listener),
    off: (event) => listeners.delete(event),
  });
  const read = port.read(PIXELS.data);
  assert.deepEqual(sent[0][0], { id: 1, kind: "read", run: "", picture: { shape: [5], at: 0, type: "u8" } });
  assert.equal(sent[0][1][0].byteLength, 8);
  const shifted = new Uint8Array([9, ...new Uint8Array(PATTERN.data.buffer)]);
  const value = { shape: [1, 3], at: 0, type: "f32" };
  listeners.get("msg:custom")?.({ id: 1, ok: true, value }, [new DataView(shifted.buffer, 1)]);
  assert.deepEqual(await read, PATTERN);
  port.close();
  assert.equal(listeners.size, 0);
});
