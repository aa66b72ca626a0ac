// @ts-check
/** What analyses in a page find, as figures: SVG as text, since a model may be asked where there is no page. */

import { changeScale, colourOf, inkOn } from "../colours.js";
import { plain } from "./asked.js";

/** @import {Values} from "../types.js" */
/** @import {Scale} from "../colours.js" */

const MARGIN = 16;
const LINE = 22;
const LETTER = 7.5;
const BARS = 320;
const CELL = 44;
const PANEL = 196;
const [MORE, LESS] = ["#0072b2", "#d55e00"];

/** A bar for each value, to the right of 0 or to its left. @param {string} title @param {[string, number, string][]} rows name, value, value as text */
export function bars(title, rows) {
  const room = LETTER * Math.max(...rows.map(([name]) => name.length)) + 8;
  const most = Math.max(...rows.map(([, value]) => Math.abs(value))) || 1;
  const left = rows.some(([, value]) => value < 0) ? Math.max(0, ...rows.map(([, value]) => -value)) / most : 0;
  const unit = BARS / (1 + left) / most;
  const zero = room + left * most * unit;
  const end = LETTER * Math.max(...rows.map(([, , text]) => text.length)) + 8;
  const body = rows.flatMap(([name, value, text], at) => {
    const [y, length] = [at * LINE, Math.abs(value) * unit];
    return [
      words(room - 8, y + 15, name, "end"),
      rectangle(value < 0 ? zero - length : zero, y + 3, Math.max(length, 0.5), LINE - 6, value < 0 ? LESS : MORE),
      words(Math.max(zero, zero + value * unit) + 6, y + 15, text, "start"),
    ];
  });
  return framed(title, body, room + BARS + end, rows.length * LINE);
}

/** Values by row and column, purple below 0 and orange above. @param {string} title @param {string[]} rows @param {string[]} columns @param {number[][]} values */
export function map(title, rows, columns, values) {
  const room = LETTER * Math.max(...rows.map((name) => name.length)) + 8;
  const scale = changeScale(Math.max(...values.flat().map(Math.abs)));
  const body = [
    ...columns.map((name, column) => words(room + (column + 0.5) * CELL, 14, name, "middle")),
    ...rows.map((name, row) => words(room - 8, LINE + (row + 0.5) * LINE + 5, name, "end")),
    ...values.flatMap((line, row) => line.flatMap((value, column) => {
      const [x, y] = [room + column * CELL, LINE + row * LINE];
      return [rectangle(x, y, CELL, LINE, colourOf(scale, value)), words(x + CELL / 2, y + 15, plain(value, 1), "middle", inkOn(scale, value))];
    })),
  ];
  return framed(title, body, room + columns.length * CELL, (rows.length + 1) * LINE);
}

/**
 * Values of patches over the picture, a panel for each name.
 * @param {string} title @param {Values} pixels @param {{rows: number, columns: number}} grid @param {string[]} names
 * @param {number[][]} values of each patch by name
 */
export function overPixels(title, pixels, grid, names, values) {
  const scale = changeScale(Math.max(...values.flat().map(Math.abs)));
  const [, height, width] = pixels.shape;
  const tall = (PANEL * height) / width;
  const body = names.flatMap((name, at) => {
    const x = at * (PANEL + MARGIN);
    return [words(x, 14, name, "start"), `<g transform="translate(${x} ${LINE})">`, ...patchesOf(grid, values, at, scale, PANEL, tall), ...inkOf(pixels, PANEL / width), "</g>"];
  });
  return framed(title, body, names.length * (PANEL + MARGIN) - MARGIN, LINE + tall);
}

/** @param {{rows: number, columns: number}} grid @param {number[][]} values @param {number} at @param {Scale} scale @param {number} wide @param {number} tall */
function patchesOf({ rows, columns }, values, at, scale, wide, tall) {
  return values.map((each, patch) => rectangle(
    ((patch % columns) * wide) / columns, (Math.floor(patch / columns) * tall) / rows, wide / columns, tall / rows, colourOf(scale, each[at])));
}

/** What is drawn, as black that is as strong as the pixel. @param {Values} pixels @param {number} side */
function inkOf({ shape, data }, side) {
  const [, height, width] = shape;
  return Array.from({ length: height * width }, (_, i) => data[i] < 32 ? "" : rectangle(
    (i % width) * side, Math.floor(i / width) * side, side, side, "#000", data[i] / 255 * 0.6)).filter(Boolean);
}

/** @param {string} title @param {string[]} body @param {number} width @param {number} height */
function framed(title, body, width, height) {
  const wide = Math.ceil(2 * MARGIN + Math.max(width, LETTER * title.length));
  const tall = Math.ceil(2 * MARGIN + LINE + height);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${tall}" viewBox="0 0 ${wide} ${tall}" font-family="system-ui, sans-serif" font-size="13">`
    + `<rect width="${wide}" height="${tall}" fill="#fff"/>${words(MARGIN, MARGIN + 12, title, "start", "#000")}`
    + `<g transform="translate(${MARGIN} ${MARGIN + LINE})">${body.join("")}</g></svg>`;
}

/** @param {number} x @param {number} y @param {string} text @param {"start" | "middle" | "end"} anchor @param {string} [fill] */
function words(x, y, text, anchor, fill = "#1b2433") {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="${fill}">${escaped(text)}</text>`;
}

/** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} fill @param {number} [opacity] */
function rectangle(x, y, width, height, fill, opacity = 1) {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"${opacity < 1 ? ` opacity="${round(opacity)}"` : ""}/>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** @param {number} value */
function round(value) {
  return Number(value.toFixed(2));
}
