// @ts-check
/**
 * Drawing digits with mouse, finger or pen. The model sees them as MNIST has its digits, and what it sees is
 * shown beside. Cells of a grid are drawn into one by one.
 */

import { h, setAttribute, setText } from "../html.js";
import { begun, continued, emptyDrawing, rendered, strokesIn, undoable, undone, wiped } from "./drawing.js";
import { eachFrame, ownInputs, pixelsOf, show } from "./pixels.js";
import { PEN, smooth, thickness } from "./strokes.js";

/** @import {ImageForm, InputApp, Model, View} from "../types.js" */
/** @import {Point} from "./strokes.js" */

/** Pixels along a cell of the canvas. */
const FINE = 280;
/** Width of the pen on the canvas, in cells: that of a digit which fills most of its cell. */
const NIB = PEN / 25;

/** @type {(app: InputApp) => View} */
export function create(app) {
  const own = ownInputs();
  let drawing = emptyDrawing(null);
  /** @type {ImageForm | null} */
  let form = null;
  /** @type {number | null} */
  let pointer = null;
  let cell = 0;

  const canvas = h("canvas", {
    class: "draw-area", role: "img", dataset: { name: `${app.slot}-draw` },
    onpointerdown: down, onpointermove: move, onpointerup: up, onpointercancel: up,
  });
  const seen = h("canvas", { class: "seen-pixels", role: "img", "aria-label": "What the model sees" });
  const undo = h("button", { type: "button", onclick: () => change(undone(drawing)) }, "Undo stroke");
  const clear = h("button", { type: "button", onclick: () => change(wiped(drawing)) }, "Clear");
  const hint = h("p", { class: "hint" });
  const element = h("div", { class: "input-form" },
    hint,
    h("div", { class: "draw-row" }, canvas, h("figure", { class: "seen" }, seen, h("figcaption", null, "what the model sees"))),
    h("div", { class: "tools" }, undo, clear));
  const ask = eachFrame(() => {
    if (!form) return;
    const pixels = rendered(drawing, form);
    show(seen, pixels);
    app.dispatch({ type: app.slot, input: own.made(pixels) });
  });
  const redraw = eachFrame(paint);

  /** @type {(next: typeof drawing) => void} */
  function change(next) {
    drawing = next;
    redraw();
    ask();
  }

  /** @type {(event: PointerEvent) => void} */
  function down(event) {
    if (!form || pointer !== null || event.button !== 0) return;
    event.preventDefault();
    pointer = event.pointerId;
    canvas.setPointerCapture(pointer);
    const { column, row } = place(event, form);
    cell = clamp(Math.floor(row), form.rows) * form.columns + clamp(Math.floor(column), form.columns);
    change(begun(drawing, cell, pointAt(event, form)));
  }

  /** @type {(event: PointerEvent) => void} */
  function move(event) {
    if (!form || event.pointerId !== pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const points = (events.length ? events : [event]).map((each) => pointAt(each, /** @type {ImageForm} */ (form)));
    change(points.reduce(continued, drawing));
  }

  /** @type {(event: PointerEvent) => void} */
  function up(event) {
    if (event.pointerId === pointer) pointer = null;
  }

  /** Where a pointer is, in cells. @type {(event: PointerEvent, form: ImageForm) => {column: number, row: number}} */
  function place(event, { rows, columns }) {
    const box = canvas.getBoundingClientRect();
    return {
      column: ((event.clientX - box.left) / box.width) * columns,
      row: ((event.clientY - box.top) / box.height) * rows,
    };
  }

  /** Where it is in the cell that is drawn into. @type {(event: PointerEvent, form: ImageForm) => Point} */
  function pointAt(event, given) {
    const { column, row } = place(event, given);
    return {
      x: Math.min(1, Math.max(0, column - (cell % given.columns))),
      y: Math.min(1, Math.max(0, row - Math.floor(cell / given.columns))),
      pressure: event.pointerType === "pen" ? event.pressure : 0.5,
    };
  }

  function paint() {
    const context = canvas.getContext("2d");
    if (!form || !context) return;
    const { rows, columns } = form;
    const size = { width: FINE * columns, height: FINE * rows };
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    context.fillStyle = "#0b0c0d";
    context.fillRect(0, 0, size.width, size.height);
    for (let number = 0; number < rows * columns; number++) {
      const strokes = strokesIn(drawing, number);
      if (strokes.length) strokes.forEach((stroke) => paintStroke(context, stroke, number));
      else paintBase(context, number);
    }
    context.fillStyle = "#6b7075";
    for (let row = 1; row < rows; row++) context.fillRect(0, FINE * row - 1, size.width, 2);
    for (let column = 1; column < columns; column++) context.fillRect(FINE * column - 1, 0, 2, size.height);
    undo.disabled = !undoable(drawing);
    setText(undo, undo.disabled || drawing.strokes.length ? "Undo stroke" : "Undo clear");
  }

  /** @type {(context: CanvasRenderingContext2D, stroke: Point[], number: number) => void} */
  function paintStroke(context, stroke, number) {
    const { columns } = /** @type {ImageForm} */ (form);
    const [left, top] = [number % columns, Math.floor(number / columns)];
    context.strokeStyle = "#ffffff";
    context.lineCap = "round";
    const points = smooth(stroke);
    points.forEach((to, at) => {
      const from = points[Math.max(0, at - 1)];
      context.lineWidth = FINE * NIB * thickness(to);
      context.beginPath();
      context.moveTo(FINE * (left + from.x), FINE * (top + from.y));
      context.lineTo(FINE * (left + to.x), FINE * (top + to.y));
      context.stroke();
    });
  }

  /** The picture under the strokes. @type {(context: CanvasRenderingContext2D, number: number) => void} */
  function paintBase(context, number) {
    if (!drawing.base || !form) return;
    const whole = h("canvas", null);
    show(whole, drawing.base);
    const [column, row] = [number % form.columns, Math.floor(number / form.columns)];
    const [width, height] = [form.width / form.columns, form.height / form.rows];
    context.imageSmoothingEnabled = false;
    context.drawImage(whole, column * width, row * height, width, height, column * FINE, row * FINE, FINE, FINE);
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    const image = model.subject.task.image;
    if (!image) return;
    const several = image.rows * image.columns > 1;
    setText(hint, several ? "Draw a digit in each cell." : "Draw a digit: its size and place do not matter.");
    setAttribute(canvas, "aria-label", "Drawing area. To draw with the keyboard, choose Pixels above.");
    const fresh = form !== image;
    form = image;
    const pixels = pixelsOf(model, app.slot);
    if (!own.has(model.state[app.slot]) && pixels && (fresh || pixels !== drawing.base)) {
      drawing = emptyDrawing(pixels);
      show(seen, pixels);
      redraw();
    } else if (fresh) {
      show(seen, rendered(drawing, image));
      redraw();
    }
  }

  return { element, render };
}

/** @type {(value: number, count: number) => number} */
function clamp(value, count) {
  return Math.min(count - 1, Math.max(0, value));
}
