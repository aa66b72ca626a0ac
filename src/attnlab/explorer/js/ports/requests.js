// @ts-check
/** Requests that wait for their replies, and the port that is made of a way to send them. */

/** @import {Port} from "../types.js" */

/** An error for people. `dropped`: a newer question overtook; `lost`: the connection is gone for now. */
export class PortError extends Error {
  /** @param {string} message @param {{dropped?: boolean, lost?: boolean}} [how] */
  constructor(message, { dropped = false, lost = false } = {}) {
    super(message);
    this.name = "PortError";
    this.dropped = dropped;
    this.lost = lost;
  }
}

/**
 * @typedef {{resolve: (value: any) => void, reject: (error: Error) => void,
 *   onProgress: (done: number, total: number) => void}} Waiting
 */

/**
 * A port whose requests go through `send`; `receive` takes what comes back, `fail` rejects all that wait.
 * @param {(message: {id: number, kind: string, run?: string}) => void} send
 * @param {() => void} close
 */
export function requestPort(send, close) {
  /** @type {Map<number, Waiting>} */
  const waiting = new Map();
  let last = 0;
  let run = "";

  /**
   * @param {string} kind @param {object} [body] @param {(done: number, total: number) => void} [onProgress]
   * @returns {{id: number, result: Promise<any>}}
   */
  function request(kind, body = {}, onProgress = () => {}) {
    last += 1;
    const id = last;
    const result = new Promise((resolve, reject) => waiting.set(id, { resolve, reject, onProgress }));
    try {
      send({ id, kind, ...(kind === "list" ? {} : { run }), ...body });
    } catch (error) {
      settle(id)?.reject(error instanceof Error ? error : new PortError(String(error)));
    }
    return { id, result };
  }

  /** @param {number} id */
  function settle(id) {
    const found = waiting.get(id);
    waiting.delete(id);
    return found;
  }

  /** @param {any} message */
  function receive(message) {
    if (message.progress) {
      waiting.get(message.id)?.onProgress(message.progress[0], message.progress[1]);
    } else if (message.ok) {
      settle(message.id)?.resolve(message.value);
    } else {
      settle(message.id)?.reject(new PortError(message.error, { dropped: message.dropped === true }));
    }
  }

  /** @param {PortError} error */
  function fail(error) {
    const all = [...waiting.values()];
    waiting.clear();
    for (const each of all) each.reject(error);
  }

  /** @type {Port} */
  const port = {
    list: () => request("list").result,
    open(name) {
      run = name;
      return request("open").result;
    },
    ask: (question) => request("ask", { question }).result,
    examples: (wanted) => request("examples", wanted).result,
    read: (bytes) => request("read", { picture: { shape: [bytes.length], data: bytes } }).result,
    findings: () => request("findings").result,
    start(job, onProgress) {
      const { id, result } = request("start", { job }, onProgress);
      return { result, cancel: () => void request("cancel", { job: id }).result.catch(() => {}) };
    },
    close() {
      fail(new PortError("the page was closed", { dropped: true }));
      close();
    },
  };
  return { port, receive, fail };
}
