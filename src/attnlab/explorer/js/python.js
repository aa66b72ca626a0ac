// @ts-check
/**
 * How Python reads and writes text, where JavaScript does it otherwise: readers of tasks say the same
 * sentences in a page as in Python.
 */

/** @typedef {typeof import("./python.js")} Python */

/** What Python takes for white space, as a part of a class of a regular expression. */
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const ENDS = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const BETWEEN = new RegExp(`[${SPACE}]+`, "u");
const UNPRINTABLE = /(?! )[\p{C}\p{Z}\\]/u;
/** @type {Record<string, string>} */
const ESCAPES = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/**
 * `text.strip()`
 * @param {string} text
 */
export function strip(text) {
  return text.replace(ENDS, "");
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
 * `int(digits)` of decimal digits of any script. Every script has its ten digits in order, and the first of
 * a row of such scripts is a 0.
 * @param {string} digits
 */
export function int(digits) {
  let value = 0;
  for (const sign of digits) {
    const code = sign.codePointAt(0) ?? 0;
    let first = code;
    while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first--;
    value = 10 * value + ((code - first) % 10);
  }
  return value;
}

/**
 * `f"{number:,}"` of a whole number
 * @param {number} number
 */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
