// @ts-check
/** Painting pixels one by one: with a pointer along a line, or with the keyboard. */

/** @import {Values} from "../types.js" */

/** @typedef {{row: number, column: number}} Pixel */

/**
 * A colour for each channel, 0 to 255. A soft brush also inks the neighbours, half as much, as a pen does.
 * @typedef {{colour: number[], size: number, soft: boolean}} Brush
 */

/**
 * Paint around a pixel, in place.
 * @type {(pixels: Values, at: Pixel, brush: Brush) => void}
 */
export function dab({ shape, data }, { row, column }, { colour, size, soft }) {
  const [channels, height, width] = shape;
  const first = -Math.floor((size - 1) / 2);
  /** @type {(y: number, x: number, share: number) => void} */
  const put = (y, x, share) => {
    if (y < 0 || x < 0 || y >= height || x >= width) return;
    for (let channel = 0; channel < channels; channel++) {
      const at = (channel * height + y) * width + x;
      data[at] = share === 1 ? colour[channel] : Math.max(data[at], Math.round(share * colour[channel]));
    }
  };
  for (let y = row + first; y < row + first + size; y++) {
    for (let x = column + first; x < column + first + size; x++) put(y, x, 1);
  }
  if (!soft) return;
  for (const [y, x] of [[row - 1, column], [row + 1, column], [row, column - 1], [row, column + 1]]) put(y, x, 0.5);
}

/**
 * The pixels on the way from one to another, both included.
 * @type {(from: Pixel, to: Pixel) => Pixel[]}
 */
export function way(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column), 1);
  return Array.from({ length: steps + 1 }, (_, at) => ({
    row: Math.round(from.row + (at / steps) * (to.row - from.row)),
    column: Math.round(from.column + (at / steps) * (to.column - from.column)),
  }));
}

/**
 * Where an arrow key leads, with Ctrl four at a time; Home and End lead along the row, with Ctrl to the corners.
 * null for other keys.
 * @type {(at: Pixel, key: string, control: boolean, height: number, width: number) => Pixel | null}
 */
export function moved({ row, column }, key, control, height, width) {
  const by = control ? 4 : 1;
  switch (key) {
    case "ArrowUp": return { row: Math.max(0, row - by), column };
    case "ArrowDown": return { row: Math.min(height - 1, row + by), column };
    case "ArrowLeft": return { row, column: Math.max(0, column - by) };
    case "ArrowRight": return { row, column: Math.min(width - 1, column + by) };
    case "Home": return { row: control ? 0 : row, column: 0 };
    case "End": return { row: control ? height - 1 : row, column: width - 1 };
    default: return null;
  }
}

/** @type {(text: string) => number[]} `#rrggbb` as three numbers */
export function colourOf(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}
