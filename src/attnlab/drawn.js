// @ts-check
/**
 * The reader of a task made by `@task`: `drawn.py` in JavaScript.
 *
 * @typedef {object} Facts
 * @property {string[]} alphabet
 * @property {string[]} classes none where an answer is a sequence
 * @property {number} input_length symbols of the longest input
 * @property {number} target_length
 * @property {number} end the token that closes an answer, and fills up shorter ones
 * @property {string} known answers that are known, a line each: the input, a tab, the answer
 */

/**
 * Symbols one after the other, or with spaces where they are longer than a letter.
 * @param {string} text
 * @param {Facts} task
 * @param {import("./explorer/js/python.js").Python} python
 */
export function read(text, task, python) {
  const given = spaced(task.alphabet, (each) => [...each].length > 1) ? python.split(text) : [...python.strip(text)];
  for (const each of given) {
    if (!task.alphabet.includes(each)) {
      throw new Error(`${python.brief(each)} is not one of the symbols ${task.alphabet.join(" ")}`);
    }
  }
  if (given.length < 1 || given.length > task.input_length) {
    throw new Error(
      `the input has ${given.length} symbols; this task has inputs of 1 to ${task.input_length}`,
    );
  }
  const name = joined(given, task);
  const targets = targetsOf(name, task);
  return {
    tokens: given.map((each) => task.alphabet.indexOf(each)),
    labels: given,
    name,
    truth: targets && answer(targets, task),
    targets,
  };
}

/**
 * The class, or the symbols up to the end.
 * @param {number[]} tokens
 * @param {Facts} task
 */
export function answer(tokens, task) {
  if (task.classes.length) return task.classes[tokens[0]];
  const until = tokens.indexOf(task.end);
  const signs = [...task.alphabet, "⊣", "⊢"];
  return joined((until < 0 ? tokens : tokens.slice(0, until)).map((token) => signs[token]), task);
}

/** @type {Map<string, Map<string, string>>} */
const READ = new Map();

/**
 * The tokens that are known to be the answer to an input.
 * @param {string} name
 * @param {Facts} task
 * @returns {number[] | null}
 */
function targetsOf(name, task) {
  const known = READ.get(task.known) ?? new Map(task.known.split("\n").map((line) => pair(line)));
  READ.set(task.known, known);
  const said = known.get(name);
  if (said === undefined) return null;
  if (task.classes.length) return [task.classes.indexOf(said)];
  const row = apart(said, task).map((each) => task.alphabet.indexOf(each));
  return [...row, ...Array(task.target_length - row.length).fill(task.end)];
}

/**
 * @param {string} line
 * @returns {[string, string]}
 */
function pair(line) {
  const [given, said] = line.split("\t");
  return [given, said];
}

/**
 * @param {string[]} row
 * @param {Facts} task
 */
function joined(row, task) {
  return row.join(separator(task));
}

/**
 * @param {string} text
 * @param {Facts} task
 */
function apart(text, task) {
  return text === "" ? [] : separator(task) ? text.split(" ") : [...text];
}

/** @param {Facts} task */
function separator(task) {
  return spaced(task.alphabet, (each) => [...each].length !== 1) ? " " : "";
}

/**
 * @param {string[]} alphabet
 * @param {(symbol: string) => boolean} wide
 */
function spaced(alphabet, wide) {
  return alphabet.some(wide);
}
