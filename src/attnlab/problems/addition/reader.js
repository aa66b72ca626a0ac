// @ts-check
/**
 * The reader of sums: `task.py` in JavaScript.
 *
 * @typedef {object} Facts
 * @property {number} digits of an operand
 * @property {"most" | "least"} order which digit comes first
 * @property {number} low the smallest operand
 * @property {number} high the largest operand
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
  const [first, second] = [digitsOf(a, task.digits, task), digitsOf(b, task.digits, task)];
  const tokens = [...first, PLUS, ...second];
  const targets = [...digitsOf(a + b, task.digits + 1, task), END];
  const labels = tokens.map((token) => task.symbols[token]);
  return { tokens, labels, name: `${a}+${b}`, truth: answer(targets, task), targets };
}

/**
 * The number that tokens spell, or their symbols if they spell none.
 * @param {number[]} tokens
 * @param {Facts} task
 */
export function answer(tokens, task) {
  const digits = tokens.slice(0, -1);
  if (tokens.at(-1) !== END || digits.some((token) => token > 9)) {
    return tokens.map((token) => task.symbols[token]).join("");
  }
  return String(Number((task.order === "least" ? digits.reverse() : digits).join("")));
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
  if (!match) throw new Error(`${python.brief(plain)} is no sum of two numbers; write it as 374+814`);
  return [match[1], match[2]].map((written) => {
    const number = written.replace(/^0+(?=.)/, "");
    const value = number.length > task.digits ? NaN : Number(number);
    if (value >= task.low && value <= task.high) return value;
    throw new Error(`${python.shortened(number)} is outside ${task.low} to ${task.high}, the operands that this model has learned`);
  });
}

/**
 * Digits of a number in the order of the task.
 * @param {number} number
 * @param {number} count
 * @param {Facts} task
 */
function digitsOf(number, count, task) {
  const digits = [...String(number).padStart(count, "0")].map(Number);
  return task.order === "least" ? digits.reverse() : digits;
}
