// @ts-check
/**
 * The reader of a task whose inputs nobody writes: it only says answers in words.
 *
 * @typedef {object} Facts
 * @property {string} kind
 * @property {string[]} signs of tokens of an answer, or of classes
 * @property {string} separator between them
 * @property {number | null} end the token behind an answer
 */

/**
 * @param {string} text
 * @param {Facts} task
 * @param {import("../explorer/js/python.js").Python} python
 * @returns {never}
 */
export function read(text, task, python) {
  throw new Error(`inputs of the task ${python.repr(task.kind)} cannot be written as text`);
}

/**
 * A class, or tokens up to the end.
 * @param {number[]} tokens
 * @param {Facts} task
 */
export function answer(tokens, task) {
  const until = task.end === null ? -1 : tokens.indexOf(task.end);
  const said = until < 0 ? tokens : tokens.slice(0, until);
  return said.map((token) => task.signs[token]).join(task.separator);
}
