// @ts-check
/**
 * Strokes of a pen, and what they look like in MNIST. Points lie between 0 and 1 from the left and from the
 * top of a cell, so a stroke does not depend on the size of the screen. A stroke is kept as a line, and drawn
 * anew in the size that MNIST gives a digit: its pen is as thick in small digits as in large ones.
 */

import { BOX, grey, largest, placed, resized } from "./ink.js";

/** @import {Grey} from "./ink.js" */

/**
 * @typedef {{x: number, y: number, pressure: number}} Point
 * @typedef {Point[]} Stroke
 */

/** Width of the pen in pixels of the 20 x 20 (the median of MNIST is measured in tests/test_explorer_ink.py). */
export const PEN = 2.4;
/** Small pixels along a pixel of the 20 x 20. */
const FINE = 4;
/** A drawing counts as at least so large, so that a dot does not become a disc that fills the picture. */
const SMALLEST = 0.2;
/** Points nearer than this to the one before are left out. */
const NEAR = 0.008;

/** @type {(point: Point) => number} */
export function thickness({ pressure }) {
  return 0.6 + 0.8 * pressure; // a mouse has a pressure of 0.5
}

/**
 * A stroke with one more point.
 * @type {(stroke: Stroke, point: Point) => Stroke}
 */
export function extended(stroke, point) {
  const last = stroke.at(-1);
  if (last && Math.hypot(point.x - last.x, point.y - last.y) < NEAR) return stroke;
  return [...stroke, point];
}

/**
 * Rounded corners (Chaikin, 1974): each is cut off twice. The ends stay.
 * @type {(stroke: Stroke, times?: number) => Stroke}
 */
export function smooth(stroke, times = 2) {
  if (times === 0 || stroke.length < 3) return stroke;
  const cutOff = stroke.slice(1).flatMap((to, at) => [between(stroke[at], to, 0.25), between(stroke[at], to, 0.75)]);
  return smooth([stroke[0], ...cutOff.slice(1, -1), stroke[stroke.length - 1]], times - 1);
}

/** @type {(from: Point, to: Point, share: number) => Point} */
function between(from, to, share) {
  return {
    x: from.x + share * (to.x - from.x),
    y: from.y + share * (to.y - from.y),
    pressure: from.pressure + share * (to.pressure - from.pressure),
  };
}

/**
 * Strokes as a digit of MNIST; null where nothing is drawn.
 * @type {(strokes: Stroke[]) => Uint8Array | null}
 */
export function digit(strokes) {
  const smoothed = strokes.filter((stroke) => stroke.length > 0).map((stroke) => smooth(stroke));
  const points = smoothed.flat();
  if (points.length === 0) return null;
  const radius = (PEN / 2) * largest(points.map(thickness));
  const [left, wide] = span(points.map((point) => point.x));
  const [top, high] = span(points.map((point) => point.y));
  const scale = (BOX - 2 * radius) / Math.max(wide, high, SMALLEST); // pixels of the 20 x 20 along a cell
  const [height, width] = [high, wide].map((side) => Math.ceil(side * scale + 2 * radius - 1e-9));
  const fine = grey(FINE * height, FINE * width);
  const [right, down] = [(width - wide * scale) / 2, (height - high * scale) / 2]; // the box is in the middle
  for (const stroke of smoothed) {
    const line = stroke.map((point) => ({
      x: FINE * ((point.x - left) * scale + right),
      y: FINE * ((point.y - top) * scale + down),
      pressure: (FINE * PEN * thickness(point)) / 2,
    }));
    line.forEach((to, at) => segment(fine, line[Math.max(0, at - 1)], to));
  }
  return placed(resized(fine, height, width));
}

/**
 * Where values begin, and how far they reach.
 * @type {(values: number[]) => [number, number]}
 */
function span(values) {
  const least = -largest(values.map((value) => -value));
  return [least, largest(values) - least];
}

/**
 * Ink along a line between two points, whose `pressure` is the radius of the pen; its edge is one pixel soft.
 * @type {(ink: Grey, from: Point, to: Point) => void}
 */
function segment(ink, from, to) {
  const radius = Math.max(from.pressure, to.pressure) + 1;
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const squared = dx * dx + dy * dy || 1;
  const left = Math.max(0, Math.floor(Math.min(from.x, to.x) - radius));
  const right = Math.min(ink.width - 1, Math.ceil(Math.max(from.x, to.x) + radius));
  const top = Math.max(0, Math.floor(Math.min(from.y, to.y) - radius));
  const bottom = Math.min(ink.height - 1, Math.ceil(Math.max(from.y, to.y) + radius));
  for (let row = top; row <= bottom; row++) {
    for (let column = left; column <= right; column++) {
      const x = column + 0.5 - from.x;
      const y = row + 0.5 - from.y;
      const along = Math.min(1, Math.max(0, (x * dx + y * dy) / squared));
      const away = Math.sqrt((x - along * dx) ** 2 + (y - along * dy) ** 2);
      const value = Math.min(1, from.pressure + along * (to.pressure - from.pressure) + 0.5 - away);
      const at = row * ink.width + column;
      if (value > ink.data[at]) ink.data[at] = value;
    }
  }
}
