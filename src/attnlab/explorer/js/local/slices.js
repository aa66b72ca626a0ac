// @ts-check
/** Long work in slices, between which the page draws and listens. */

/** @import {JobResult, Running} from "../types.js" */
/** @import {Analysis} from "./asked.js" */

const SLICE = 12; // milliseconds, less than a frame

/** What a cancelled analysis is rejected with. */
export const CANCELLED = "the analysis was cancelled";

/**
 * @param {() => Analysis} begin called in the first slice
 * @param {(done: number, total: number) => void} onProgress
 * @returns {Running}
 */
export function inSlices(begin, onProgress) {
  let cancelled = false;
  /** @type {Promise<JobResult>} */
  const result = new Promise((resolve, reject) => {
    /** @type {Analysis | null} */
    let analysis = null;
    const slice = () => {
      try {
        if (cancelled) throw new Error(CANCELLED);
        analysis ??= begin();
        const step = slicedBy(analysis);
        if (step.done) return resolve(step.value);
        onProgress(...step.value);
        setTimeout(slice);
      } catch (error) {
        reject(error);
      }
    };
    setTimeout(slice);
  });
  return { result, cancel: () => void (cancelled = true) };
}

/** The last step of a slice. @param {Analysis} analysis */
function slicedBy(analysis) {
  const begun = performance.now();
  let step = analysis.next();
  while (!step.done && performance.now() - begun < SLICE) step = analysis.next();
  return step;
}
