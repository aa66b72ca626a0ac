// @ts-check
/** Pictures as inputs: their pixels, which of them are shown, and how they look on a canvas. */

/** @import {ImageForm, Input, Model, Values} from "../types.js" */

/** A picture of nothing. @type {(form: ImageForm) => Values} */
export function blank({ channels, height, width }) {
  return { shape: [channels, height, width], data: new Uint8Array(channels * height * width) };
}

/** @type {(values: Values) => Values} */
export function copied({ shape, data }) {
  return { shape, data: Uint8Array.from(data) };
}

/**
 * The picture that is the input, also where it is an example; null while it is not known.
 * @type {(model: Model, slot: "input" | "other") => Values | null}
 */
export function pixelsOf(model, slot) {
  const input = model.state[slot];
  if (input && "pixels" in input) return input.pixels;
  const scene = slot === "input" ? model.clean : model.other;
  return input && scene && !model.busy ? scene.input.pixels : null;
}

/**
 * Draw a picture pixel by pixel; style makes it larger.
 * @type {(canvas: HTMLCanvasElement, values: Values) => void}
 */
export function show(canvas, { shape, data }) {
  const [channels, height, width] = shape.length === 3 ? shape : [1, ...shape];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = context.createImageData(width, height);
  const size = width * height;
  for (let at = 0; at < size; at++) {
    for (let colour = 0; colour < 3; colour++) {
      image.data[4 * at + colour] = data[channels === 1 ? at : colour * size + at];
    }
    image.data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/**
 * Work that is done once a frame, however often it is asked for.
 * @type {(work: () => void) => () => void}
 */
export function eachFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

/**
 * Inputs that a tool has made itself, to know them from those that come from elsewhere.
 * @type {() => {made: (pixels: Values) => Input, has: (input: Input | null) => boolean}}
 */
export function ownInputs() {
  /** @type {WeakSet<Values>} */
  const own = new WeakSet();
  return {
    made(pixels) {
      own.add(pixels);
      return { pixels };
    },
    has: (input) => input !== null && "pixels" in input && own.has(input.pixels),
  };
}
