// @ts-check
/**
 * The reader of lists: `task.py` in JavaScript.
 *
 * @typedef {object} Facts
 * @property {number} numbers how many numbers there are, from 0 on
 * @property {number} shortest
 * @property {number} longest
 * @property {string[]} classes unsorted and sorted
 */

const SHOWN = 40; // characters of a wrong input

/**
 * A list, written as `3 5 5 9 8`; commas may stand between the numbers too.
 * @param {string} text
 * @param {Facts} task
 * @param {import("../../explorer/js/python.js").Python} python
 */
export function read(text, task, python) {
  const inner = python.strip(text, " \\t\\r\\n,");
  if (!inner) throw new Error("the list is empty; write numbers such as 3 5 5 9 8");
  const words = inner.split(new RegExp(`[${python.SPACE},]+`, "u"));
  const tokens = words.map((word) => numberOf(word, task, python));
  if (tokens.length < task.shortest || tokens.length > task.longest) {
    const [length, shortest, longest] = [tokens.length, task.shortest, task.longest].map(python.grouped);
    throw new Error(
      `a list of length ${length} is outside ${shortest} to ${longest}, the lengths of this task`,
    );
  }
  const sorted = tokens.every((number, place) => place === 0 || tokens[place - 1] <= number);
  const targets = [Number(sorted)];
  const labels = tokens.map(String);
  return { tokens, labels, name: labels.join(" "), truth: answer(targets, task), targets };
}

/**
 * What a class is called.
 * @param {number[]} tokens
 * @param {Facts} task
 */
export function answer(tokens, task) {
  return task.classes[tokens[0]];
}

/**
 * @param {string} word
 * @param {Facts} task
 * @param {import("../../explorer/js/python.js").Python} python
 */
function numberOf(word, task, python) {
  const shown = [...word].slice(0, SHOWN).join("");
  if (!/^[+-]?[0-9]+$/.test(word)) {
    throw new Error(`${python.repr(shown)} is not a whole number; write a list such as 3 5 5 9 8`);
  }
  const number = Number(word);
  if (word.length > 9 || number < 0 || number >= task.numbers) {
    throw new Error(`${shown} is outside 0 to ${task.numbers - 1}, the numbers of this task`);
  }
  return Math.abs(number); // of -0
}
