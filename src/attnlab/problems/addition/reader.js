// @ts-check
/**
 * The reader of sums: `task.py` in JavaScript.
 *
 * @typedef {object} Facts
 * @property {number} digits of an operand
 * @property {number} [longest] digits that an operand may have, where lengths vary
 * @property {"most" | "least"} order which digit comes first
 * @property {string} low the smallest operand
 * @property {string} high the largest operand
 * @property {string[]} symbols
 */

const PLUS = 10;
const END = 13;

/**
 * A sum, written as `374+814`.
 * @param {string} text
 * @param {Facts} task
 * @param {import("../../explorer/js/python.js").Python} python
 */
export function read(text, task, python) {
  const [a, b] = operands(text, task, python);
  const count = task.longest ? Math.max(String(a).length, String(b).length) : task.digits;
  const tokens = [...digitsOf(a, count, task), PLUS, ...digitsOf(b, count, task)];
  const targets = [...digitsOf(a + b, count + 1, task), END];
  const labels = tokens.map((token) => task.symbols[token]);
  return { tokens, labels, name: `${a}+${b}`, truth: answer(targets, task), targets };
}

/**
 * Names of the tokens of an answer: its columns, and the end.
 * @param {number} count
 * @param {Facts} task
 */
export function places(count, task) {
  const columns = [...Array(count - 1).keys()].map((column) => `10^${column}`);
  return [...(task.order === "least" ? columns : columns.reverse()), "end"];
}

/**
 * The number that tokens spell, or their symbols if they spell none.
 * @param {number[]} tokens
 * @param {Facts} task
 */
export function answer(tokens, task) {
  const digits = tokens.slice(0, Math.max(0, tokens.indexOf(END)));
  const spelt = digits.length > 0 && digits.every((token) => token < 10);
  if (!spelt || tokens.slice(digits.length).some((token) => token !== END)) {
    return tokens.map((token) => task.symbols[token]).join("");
  }
  return String(BigInt((task.order === "least" ? digits.reverse() : digits).join("")));
}

/**
 * @param {string} text
 * @param {Facts} task
 * @param {import("../../explorer/js/python.js").Python} python
 */
function operands(text, task, python) {
  const plain = python.strip(text);
  if (!plain) throw new Error("the line is empty; write a sum such as 374+814");
  const space = `[${python.SPACE}]*`;
  const match = new RegExp(`^([0-9]+)${space}\\+${space}([0-9]+)$`, "u").exec(plain);
  if (!match) throw new Error(`${python.brief(plain)} is not a sum of two numbers; write it as 374+814`);
  return [match[1], match[2]].map((written) => {
    const number = written.replace(/^0+(?=.)/, "");
    if (task.longest && number.length > task.longest) {
      throw new Error(`${python.shortened(number)} has ${number.length.toLocaleString("en")} digits; an operand may have up to ${task.longest}`);
    }
    if (task.longest) return BigInt(number);
    const value = number.length > task.digits ? -1n : BigInt(number);
    if (value >= BigInt(task.low) && value <= BigInt(task.high)) return value;
    throw new Error(`${python.shortened(number)} is outside ${task.low} to ${task.high}, the operands that this model has learned`);
  });
}

/**
 * Digits of a number in the order of the task.
 * @param {bigint} number
 * @param {number} count
 * @param {Facts} task
 */
function digitsOf(number, count, task) {
  const digits = [...String(number).padStart(count, "0")].map(Number);
  return task.order === "least" ? digits.reverse() : digits;
}
