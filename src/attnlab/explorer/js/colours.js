// @ts-check
/**
 * Colour scales of heat maps: viridis (van der Walt and Smith, 2015) for weights and PuOr (Brewer) for changes,
 * which are white at 0. Both can be told apart by the colour-blind.
 */

const VIRIDIS =
  "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725";
const PUOR =
  "2d004b 451871 5f3a91 7b6aa8 9990bf b7b1d5 cfcfe5 e4e5f0 f7f7f6 fce8cd fed59f fdbc6b ee9b39 d97b12 bd6109 9e4c07 7f3b08";
const STEPS = 256;

/** @typedef {{pixels: Uint32Array, low: number, high: number}} Scale  pixels: ABGR from low to high */

/** @param {string} anchors @returns {Uint32Array} */
function table(anchors) {
  const colours = anchors.split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: STEPS }, (_, step) => {
    const place = (step / (STEPS - 1)) * (colours.length - 1);
    const at = Math.min(Math.floor(place), colours.length - 2);
    const mixed = [0, 1, 2].map((c) => {
      const from = Number(colours[at]?.[c]);
      return Math.round(from + (place - at) * (Number(colours[at + 1]?.[c]) - from));
    });
    return ((255 << 24) | (Number(mixed[2]) << 16) | (Number(mixed[1]) << 8) | Number(mixed[0])) >>> 0;
  });
}

const WEIGHTS = table(VIRIDIS);
const CHANGES = table(PUOR);
/** Amber that covers more the more there is. */
const GLOW = Uint32Array.from({ length: STEPS }, (_, step) => ((Math.round(225 * Math.sqrt(step / (STEPS - 1))) << 24) | 0x00b0ff) >>> 0);

/** From 0 to `high`. @param {number} [high] @returns {Scale} */
export function weightScale(high = 1) {
  return { pixels: WEIGHTS, low: 0, high: high > 0 ? high : 1 };
}

/** From nothing to `high`, to lie over a picture. @param {number} high @returns {Scale} */
export function glowScale(high) {
  return { pixels: GLOW, low: 0, high: high > 0 ? high : 1 };
}

/** From -most to most. @param {number} most @returns {Scale} */
export function changeScale(most) {
  const high = most > 0 ? most : 1;
  return { pixels: CHANGES, low: -high, high };
}

/** The colour of a value as ABGR. @param {Scale} scale @param {number} value */
export function pixelOf({ pixels, low, high }, value) {
  const place = ((value - low) / (high - low)) * (STEPS - 1);
  return Number(pixels[place > 0 ? Math.min(STEPS - 1, Math.round(place)) : 0]);
}

/** The colour of a value for CSS and SVG. @param {Scale} scale @param {number} value */
export function colourOf(scale, value) {
  const pixel = pixelOf(scale, value);
  return `rgb(${pixel & 255},${(pixel >> 8) & 255},${(pixel >> 16) & 255})`;
}

/** Black or white, whichever is readable on the colour of a value. @param {Scale} scale @param {number} value */
export function inkOn(scale, value) {
  const pixel = pixelOf(scale, value);
  const [red = 0, green = 0, blue = 0] = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255].map(linear);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/** @param {number} channel of sRGB, 0 to 255 */
function linear(channel) {
  const part = channel / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}

/** The scale as a CSS gradient from left to right. @param {Scale} scale */
export function gradient(scale) {
  const stops = Array.from({ length: 9 }, (_, i) => colourOf(scale, scale.low + (i / 8) * (scale.high - scale.low)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
