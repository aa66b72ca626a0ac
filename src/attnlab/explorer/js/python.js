// @ts-check
/**
 * How Python reads and writes text, where JavaScript does it otherwise: readers of tasks say the same
 * sentences in a page as in Python.
 */

/** @typedef {typeof import("./python.js")} Python */

/** What Python takes for white space, as a part of a class of a regular expression. */
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

/** Characters of what a user gave that a sentence repeats. */
const ECHOED = 200;
const BETWEEN = new RegExp(`[${SPACE}]+`, "u");
const UNPRINTABLE = /(?! )[\p{C}\p{Z}\\]/u;
/** @type {Record<string, string>} */
const ESCAPES = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/**
 * `text.strip()`, or `text.strip(signs)`; an expression with `+$` would look at a row of n spaces n * n times.
 * @param {string} text
 * @param {string} signs as in a class of a regular expression
 */
export function strip(text, signs = SPACE) {
  const outer = new RegExp(`[${signs}]`, "u");
  let [start, end] = [0, text.length];
  while (start < end && outer.test(text[start])) start++;
  while (end > start && outer.test(text[end - 1])) end--;
  return text.slice(start, end);
}

/**
 * `text.split()`
 * @param {string} text
 */
export function split(text) {
  const whole = strip(text);
  return whole ? whole.split(BETWEEN) : [];
}

/**
 * `repr(text)`
 * @param {string} text
 */
export function repr(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const signs = [...text].map((sign) => (sign === quote ? `\\${sign}` : UNPRINTABLE.test(sign) ? escaped(sign) : sign));
  return quote + signs.join("") + quote;
}

/** @param {string} sign */
function escaped(sign) {
  const code = sign.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (sign in ESCAPES) return ESCAPES[sign];
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/**
 * `errors.brief(text)`
 * @param {string} text
 */
export function brief(text) {
  return shortened(repr(text));
}

/**
 * `errors.shortened(text, ECHOED)`
 * @param {string} text
 */
export function shortened(text) {
  const signs = [...text];
  if (signs.length <= ECHOED) return text;
  const behind = Math.floor((ECHOED - 3) / 2);
  const before = ECHOED - 3 - behind;
  return `${signs.slice(0, before).join("")}...${signs.slice(signs.length - behind).join("")}`;
}

/**
 * `f"{number:,}"` of a whole number
 * @param {number} number
 */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
