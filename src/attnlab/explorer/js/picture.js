// @ts-check
/** The view as one SVG: the answer, and heads, guesses or neurons beneath. */

import { colourOf, glowScale, inkOn, weightScale } from "./colours.js";
import { at, drawMatrix, drawPixels } from "./draw.js";
import { h, svg } from "./html.js";
import { chosenHead } from "./views/heads.js";
import { gridOf } from "./views/guesses.js";
import { percent } from "./views/answer.js";
import { DRAWN, matrixOf, peaks, tokensAt } from "./views/neurons.js";
import { onPatches, overPicture } from "./views/over_picture.js";
import { shownPattern, shownScene } from "./views/patterns.js";

/** @import {Model, Neurons, Patches, Scene, Values} from "./types.js" */
/** @import {Scale} from "./colours.js" */
/** @import {Matrix} from "./draw.js" */
/** @typedef {{nodes: SVGElement[], width: number, height: number}} Drawing */

const MARGIN = 24;
const LINE = 22;
const SMALL = 64;
const LARGE = 320;
const GAP = 14;
const FONT = "system-ui, sans-serif";

/** @param {Model} model @returns {{text: string, width: number, height: number}} */
export function pictureOf(model) {
  const title = heading(model);
  const body = bodyOf(model);
  const width = Math.ceil(2 * MARGIN + Math.max(title.width, body.width));
  const height = Math.ceil(2 * MARGIN + title.height + body.height);
  const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": 13, fill: "#1b2433" },
    svg("rect", { width, height, fill: "#fff" }),
    svg("g", { transform: `translate(${MARGIN} ${MARGIN})` }, title.nodes),
    svg("g", { transform: `translate(${MARGIN} ${MARGIN + title.height})` }, body.nodes));
  return { text: new XMLSerializer().serializeToString(picture), width, height };
}

/** @param {Model} model @returns {Drawing} */
function heading({ state, clean, edited }) {
  const lines = [state.run];
  if (clean) lines.push(`${clean.input.name} → ${clean.answer.text} (${percent(clean.answer.probability)})`);
  if (edited) lines.push(`with edits → ${edited.answer.text} (${percent(edited.answer.probability)})`);
  const nodes = lines.map((line, index) => svg("text", { y: (index + 0.7) * LINE, "font-weight": index ? 400 : 600 }, line));
  return { nodes, width: 8 * Math.max(...lines.map((line) => line.length)), height: lines.length * LINE + GAP };
}

/** @param {Model} model @returns {Drawing} */
function bodyOf(model) {
  const scene = shownScene(model);
  if (!scene) return { nodes: [], width: 0, height: 0 };
  if (model.state.view === "guesses" && scene.guesses.length) return guessDrawing(model, scene);
  if (model.state.view === "neurons" && scene.neurons) return neuronDrawing(model, scene, scene.neurons);
  if (Object.keys(scene.patterns).length) return headsDrawing(model, scene);
  return { nodes: [], width: 0, height: 0 };
}

/** @param {Model} model @param {Scene} scene @returns {Drawing} */
function headsDrawing(model, scene) {
  const { sites } = model.subject.model;
  const small = sites.map((site, row) => svg("g", { transform: `translate(0 ${row * (SMALL + GAP + LINE)})` },
    svg("text", { y: 12, "font-size": 11 }, site.path),
    Array.from({ length: site.heads }, (_, head) => {
      const pattern = shownPattern(model, `${site.path}.${head}`);
      const patches = overPicture(model.subject, scene, site);
      const shown = pattern && patches ? onPatches(pattern.matrix, pattern.scale, patches, null) : pattern;
      return shown && svg("g", { transform: `translate(${head * (SMALL + GAP)} ${LINE - 4})` }, cells(shown.matrix, shown.scale, SMALL / shown.matrix.columns, SMALL / shown.matrix.rows));
    })));
  const width = Math.max(...sites.map(({ heads }) => heads)) * (SMALL + GAP) + 2 * GAP;
  const large = largeDrawing(model, scene, chosenHead(model));
  return {
    nodes: [...small, svg("g", { transform: `translate(${width} 0)` }, large.nodes)],
    width: width + large.width, height: Math.max(sites.length * (SMALL + GAP + LINE), large.height),
  };
}

/** @param {Model} model @param {Scene} scene @param {string} head @returns {Drawing} */
function largeDrawing(model, scene, head) {
  const shown = shownPattern(model, head);
  const site = model.subject.model.sites.find(({ path }) => head.startsWith(`${path}.`));
  if (!shown || !site) return { nodes: [], width: 0, height: 0 };
  const patches = overPicture(model.subject, scene, site);
  if (patches && scene.input.pixels) return litDrawing(head, shown.matrix, shown.scale, patches, scene.input.pixels);
  return mapDrawing(head, shown.matrix, shown.scale, scene.labels[site.queries], scene.labels[site.keys]);
}

/** What each patch receives, over the picture. @param {string} title @param {Matrix} matrix @param {Scale} scale @param {Patches} patches @param {Values} pixels @returns {Drawing} */
function litDrawing(title, matrix, scale, patches, pixels) {
  const [below, above] = [h("canvas"), h("canvas")];
  const shown = onPatches(matrix, scale, patches, null);
  drawPixels(below, pixels);
  drawMatrix(above, shown.matrix, scale.low < 0 ? shown.scale : glowScale(shown.scale.high));
  const [, tall = 1, wide = 1] = pixels.shape;
  const [width, height] = [LARGE, Math.round((LARGE * tall) / wide)];
  const images = [below, above].map((canvas) => svg("image", { y: LINE, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated", href: canvas.toDataURL() }));
  const caption = svg("text", { y: LINE + height + 18, "font-size": 11 }, "what each patch receives, mean over queries");
  return { nodes: [svg("text", { y: 12, "font-weight": 600 }, title), ...images, caption], width, height: height + 2 * LINE };
}

/** @param {Model} model @param {Scene} scene @param {Neurons} neurons @returns {Drawing} */
function neuronDrawing(model, scene, neurons) {
  const chosen = peaks(neurons, DRAWN);
  const { names } = tokensAt(model, scene, neurons.path);
  return mapDrawing(`Neurons of ${neurons.path}`, matrixOf(neurons, chosen), weightScale(chosen[0]?.value ?? 1), names, chosen.map(({ neuron }) => String(neuron)));
}

/** A map with its labels. @param {string} title @param {Matrix} matrix @param {Scale} scale @param {string[]} rows @param {string[]} columns @returns {Drawing} */
function mapDrawing(title, matrix, scale, rows, columns) {
  const side = Math.max(4, Math.min(26, 480 / Math.max(rows.length, columns.length)));
  const room = 10 + 7 * Math.max(...rows.map((name) => name.length));
  const above = LINE + 10 + (columns.some((name) => name.length > 2) ? 7 * Math.max(...columns.map((name) => name.length)) : 14);
  const labels = side < 9 ? [] : [
    ...rows.map((name, row) => svg("text", { x: room - 6, y: above + (row + 0.68) * side, "text-anchor": "end", "font-size": 11 }, name)),
    ...columns.map((name, column) => svg("text", { transform: `translate(${room + (column + 0.68) * side} ${above - 5}) rotate(-90)`, "font-size": 11 }, name)),
  ];
  return {
    nodes: [svg("text", { y: 12, "font-weight": 600 }, title), ...labels, svg("g", { transform: `translate(${room} ${above})` }, cells(matrix, scale, side, side))],
    width: room + columns.length * side, height: above + rows.length * side,
  };
}

/** @param {Matrix} matrix @param {Scale} scale @param {number} width @param {number} height */
function cells(matrix, scale, width, height) {
  return Array.from({ length: matrix.rows * matrix.columns }, (_, i) => {
    const [row, column] = [Math.floor(i / matrix.columns), i % matrix.columns];
    return svg("rect", { x: round(column * width), y: round(row * height), width: round(width + 0.2), height: round(height + 0.2), fill: colourOf(scale, at(matrix, row, column)) });
  });
}

/** @param {Model} model @param {Scene} scene @returns {Drawing} */
function guessDrawing(model, scene) {
  const { rows, columns, cells: content } = gridOf(model, scene);
  const [room, width, height] = [130, 70, 30];
  const scale = weightScale(1);
  const nodes = [
    ...columns.map((name, column) => svg("text", { x: room + (column + 0.5) * width, y: 12, "text-anchor": "middle", "font-size": 11 }, name)),
    ...rows.flatMap((name, row) => [
      svg("text", { x: room - 8, y: LINE + (row + 0.65) * height, "text-anchor": "end" }, name),
      ...content[row].map(({ sign, text, probability }, column) => svg("g", { transform: `translate(${room + column * width} ${LINE + row * height})` },
        svg("rect", { width: width - 2, height: height - 2, fill: colourOf(scale, probability) }),
        svg("text", { x: width / 2, y: 0.65 * height, "text-anchor": "middle", fill: inkOn(scale, probability) }, `${sign} ${text}`.trim()))),
    ]),
  ];
  return { nodes, width: room + columns.length * width, height: LINE + rows.length * height };
}

/** @param {number} value */
function round(value) {
  return Number(value.toFixed(2));
}
