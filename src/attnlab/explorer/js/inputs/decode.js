// @ts-check
/**
 * A picture file as a task has its images, where no Python is there to read it: the browser decodes it, then
 * the rules of `attnlab/data/pictures.py` and `attnlab/data/image_files.py` follow.
 */

import { grey, map, resized } from "./ink.js";
import { readDigits } from "./paper.js";

/** @import {ImageForm, Values} from "../types.js" */
/** @import {Grey} from "./ink.js" */

const MOST_PIXELS = 50_000_000;
/** Pixels along a side after which a picture is made smaller; a digit needs 20. */
const LONGEST = 1024;

/**
 * The pixels that a model is given of a picture file.
 * @param {Uint8Array} bytes
 * @param {ImageForm} form
 * @returns {Promise<Values>}
 */
export async function readPicture(bytes, form) {
  return toPixels(await decoded(bytes, form.ink ? LONGEST : Infinity), form);
}

/** @type {(image: Rgba, form: ImageForm) => Values} */
export function toPixels(image, form) {
  const shape = [form.channels, form.height, form.width];
  if (form.ink) return { shape, data: readDigits(onPaper(image), form.rows, form.columns) };
  const planes = form.channels === 1 ? [luma(image)] : [0, 1, 2].map((channel) => plane(image, channel));
  const laid = planes.map((values) => map(values, (value, at) => white(value, image.data[4 * at + 3])));
  const fitted = laid.map((values) => resized(values, form.height, form.width).data);
  return { shape, data: Uint8Array.from(fitted.flatMap((values) => [...values]), Math.round) };
}

/** @type {(bytes: Uint8Array, longest: number) => Promise<ImageData>} */
async function decoded(bytes, longest) {
  const image = await createImageBitmap(new Blob([new Uint8Array(bytes)])).catch(() => {
    throw new Error("this is not a picture that the browser can read; use PNG, JPEG, GIF or WebP");
  });
  if (image.width * image.height > MOST_PIXELS) {
    const size = `${image.width.toLocaleString("en")} x ${image.height.toLocaleString("en")} pixels`;
    throw new Error(`the picture has ${size}, more than ${MOST_PIXELS.toLocaleString("en")}; make it smaller`);
  }
  const factor = Math.max(1, Math.floor(Math.max(image.width, image.height) / longest));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(image.width / factor);
  canvas.height = Math.ceil(image.height / factor);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("the browser gives no canvas to read the picture with");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** @typedef {{width: number, height: number, data: Uint8ClampedArray}} Rgba */

/**
 * Brightness (ITU-R 601) of each pixel from 0 to 255, whatever is behind it.
 * @type {(image: Rgba) => Grey}
 */
function luma({ width, height, data }) {
  const bright = grey(height, width);
  for (let at = 0; at < width * height; at++) {
    bright.data[at] = (19595 * data[4 * at] + 38470 * data[4 * at + 1] + 7471 * data[4 * at + 2] + 32768) >> 16;
  }
  return bright;
}

/** @type {(image: Rgba, channel: number) => Grey} */
function plane({ width, height, data }, channel) {
  return map(grey(height, width), (_, at) => data[4 * at + channel]);
}

/** @type {(value: number, opaque: number) => number} */
function white(value, opaque) {
  return value + (255 - value) * (1 - opaque / 255);
}

/**
 * Grey values; what is transparent gets the paper of the edge, or what stands out against the ink.
 * @type {(image: Rgba) => Grey}
 */
function onPaper(image) {
  const bright = map(luma(image), (value) => value / 255);
  const opaque = Float64Array.from({ length: bright.data.length }, (_, at) => image.data[4 * at + 3] / 255);
  if (opaque.every((value) => value === 1)) return bright;
  const paper = paperBehind(bright, opaque);
  return map(bright, (value, at) => value * opaque[at] + paper * (1 - opaque[at]));
}

/** @type {(bright: Grey, opaque: Float64Array) => number} */
function paperBehind({ width, height, data }, opaque) {
  const edge = [...data.keys()].filter((at) => {
    const [row, column] = [Math.floor(at / width), at % width];
    return row === 0 || row === height - 1 || column === 0 || column === width - 1;
  });
  const solid = edge.filter((at) => opaque[at] > 0.5).map((at) => data[at]).sort((a, b) => a - b);
  if (solid.length > edge.length / 2) return solid[solid.length >> 1];
  const total = opaque.reduce((sum, value) => sum + value, 0);
  const ink = data.reduce((sum, value, at) => sum + value * opaque[at], 0) / Math.max(total, 1e-9);
  return ink < 0.5 ? 1 : 0;
}
