// @ts-check
/**
 * Painting a picture pixel by pixel, in its own colours: with a pointer, or with arrow keys and the space bar.
 * Of digits it is the way to draw without a pointer; of other pictures it is the way to draw.
 */

import { h, newId } from "../html.js";
import { colourOf, dab, moved, way } from "./brush.js";
import { blank, copied, eachFrame, ownInputs, pixelsOf, show } from "./pixels.js";

/** @import {ImageForm, InputApp, Model, Values, View} from "../types.js" */
/** @import {Pixel} from "./brush.js" */

const COLOURS = ["#ffffff", "#000000", "#d1242f", "#e3b341", "#2da44e", "#2f81f7"];

/** @type {(app: InputApp) => View} */
export function create(app) {
  const own = ownInputs();
  const id = newId("paint");
  /** @type {ImageForm | null} */
  let form = null;
  /** @type {Values | null} */
  let pixels = null;
  /** @type {Pixel} */
  let at = { row: 0, column: 0 };
  /** @type {Pixel | null} */
  let last = null;

  const canvas = h("canvas", {
    class: "paint-area", tabindex: 0, role: "application", "aria-label": "Pixels", "aria-describedby": `${id}-keys`,
    "aria-roledescription": "pixel grid", dataset: { name: `${app.slot}-paint` },
    onkeydown: key, onpointerdown: down, onpointermove: move, onpointerup: up, onpointercancel: up,
  });
  const cursor = h("div", { class: "paint-cursor", "aria-hidden": "true" });
  const keys = h("p", { id: `${id}-keys`, class: "hint" },
    "Arrow keys move (with Ctrl four at a time), space paints, Delete erases.");
  const colour = h("input", { id: `${id}-colour`, type: "color", value: "#ffffff" });
  const size = h("select", { id: `${id}-size` }, [1, 2, 3, 5, 9].map((side) => h("option", { value: String(side) }, `${side} px`)));
  const swatches = h("span", { class: "swatches", role: "group", "aria-label": "Colours" }, COLOURS.map((each) =>
    h("button", { type: "button", class: "swatch", "aria-label": each, style: { background: each }, onclick: () => (colour.value = each) })));
  const colours = h("span", { class: "tools" }, h("label", { for: `${id}-colour` }, "Colour"), colour, swatches);
  const clear = h("button", { type: "button", onclick: () => form && begin(blank(form)) }, "Clear");
  const element = h("div", { class: "input-form" }, keys,
    h("div", { class: "paint-row" }, canvas, cursor),
    h("div", { class: "tools" }, colours, h("label", { for: `${id}-size` }, "Brush"), size, clear));
  const ask = eachFrame(() => {
    if (!pixels) return;
    show(canvas, pixels);
    app.dispatch({ type: app.slot, input: own.made(copied(pixels)) });
  });

  /** @type {(next: Values) => void} */
  function begin(next) {
    pixels = next;
    ask();
  }

  /** @type {(to: Pixel, erase?: boolean) => void} */
  function paint(to, erase = false) {
    if (!pixels || !form) return;
    const full = form.channels === 1 ? grey(colour.value) : colourOf(colour.value);
    const brush = { colour: erase ? full.map(() => 0) : full, size: Number(size.value), soft: form.ink && !erase };
    for (const pixel of way(last ?? to, to)) dab(pixels, pixel, brush);
    ask();
  }

  /** @type {(event: KeyboardEvent) => void} */
  function key(event) {
    if (!form) return;
    const to = moved(at, event.key, event.ctrlKey, form.height, form.width);
    const paints = event.key === " " || event.key === "Enter";
    const erases = event.key === "Delete" || event.key === "Backspace";
    if (!to && !paints && !erases) return;
    event.preventDefault();
    if (to) go(to);
    else paint(at, erases);
    app.announce(`row ${at.row + 1}, column ${at.column + 1}, ${to ? valueAt() : erases ? "erased" : "painted"}`);
  }

  /** @type {(to: Pixel) => void} */
  function go(to) {
    at = to;
    if (!form) return;
    Object.assign(cursor.style, {
      left: `${(100 * at.column) / form.width}%`, top: `${(100 * at.row) / form.height}%`,
      width: `${100 / form.width}%`, height: `${100 / form.height}%`,
    });
  }

  function valueAt() {
    if (!pixels || !form) return "";
    const size = form.height * form.width;
    const values = Array.from({ length: form.channels }, (_, channel) => pixels?.data[channel * size + at.row * (form?.width ?? 0) + at.column]);
    return `value ${values.join(", ")}`;
  }

  /** @type {(event: PointerEvent) => Pixel} */
  function pixelAt(event) {
    const box = canvas.getBoundingClientRect();
    const { height, width } = /** @type {ImageForm} */ (form);
    return {
      row: Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height))),
      column: Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width))),
    };
  }

  /** @type {(event: PointerEvent) => void} */
  function down(event) {
    if (!form || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    go(pixelAt(event));
    paint(at);
    last = at;
  }

  /** @type {(event: PointerEvent) => void} */
  function move(event) {
    if (!last) return;
    go(pixelAt(event));
    paint(at);
    last = at;
  }

  function up() {
    last = null;
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    const image = model.subject.task.image;
    if (!image) return;
    if (form !== image) {
      form = image;
      pixels = blank(image);
      colours.hidden = image.ink;
      go({ row: Math.floor(image.height / 2), column: Math.floor(image.width / 2) });
      show(canvas, pixels);
    }
    const shown = pixelsOf(model, app.slot);
    if (shown && !own.has(model.state[app.slot])) {
      pixels = copied(shown);
      show(canvas, pixels);
    }
  }

  return { element, render };
}

/** @type {(text: string) => number[]} */
function grey(text) {
  const [red, green, blue] = colourOf(text);
  return [(19595 * red + 38470 * green + 7471 * blue + 32768) >> 16];
}
