// @ts-check
/** A job that was started: its progress, how long it will take, a way to cancel it, and what went wrong. */

import { h, setText } from "../html.js";

/** @import {App, Job, Running} from "../types.js" */

/**
 * @template T
 * @param {App} app @param {(found: T) => void} show  what is done with a result
 */
export function createRunning(app, show) {
  const bar = h("progress", { max: 1, "aria-label": "Progress" });
  const where = h("span", { class: "number" });
  const cancel = h("button", { type: "button", onclick: () => stop("Cancelled.") }, "Cancel");
  const running = h("div", { class: "running", hidden: true }, bar, where, cancel);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  /** @type {Running | null} */
  let current = null;

  /** @param {string} message */
  function stop(message) {
    current?.cancel();
    current = null;
    running.hidden = true;
    problem.hidden = !message;
    setText(problem, message);
  }

  /** @param {Job} wanted */
  async function start(wanted) {
    stop("");
    const began = performance.now();
    const job = app.port.start(wanted, (done, total) => {
      bar.max = total || 1;
      bar.value = done;
      setText(where, total > 1 ? `${done} of ${total}${leftWords((performance.now() - began) / 1000, done, total)}` : "");
    });
    current = job;
    bar.removeAttribute("value");
    setText(where, "");
    running.hidden = false;
    try {
      const found = /** @type {T} */ (await job.result);
      if (current !== job) return;
      current = null;
      running.hidden = true;
      show(found);
    } catch (error) {
      if (current === job) stop(error instanceof Error ? error.message : String(error));
    }
  }

  return { elements: [running, problem], start, stop };
}

/** A time as people say it. @param {number} seconds */
export function timeWords(seconds) {
  if (seconds < 3) return "a few seconds";
  if (seconds < 50) return `about ${seconds < 10 ? Math.round(seconds) : 10 * Math.round(seconds / 10)} seconds`;
  const minutes = Math.round(seconds / 60) || 1;
  return `about ${minutes === 1 ? "a minute" : `${minutes} minutes`}`;
}

/** How much longer it takes, once that can be known. @param {number} seconds so far @param {number} done @param {number} total */
export function leftWords(seconds, done, total) {
  return seconds < 2 || done === 0 || done >= total ? "" : `, ${timeWords((seconds * (total - done)) / done)} left`;
}
