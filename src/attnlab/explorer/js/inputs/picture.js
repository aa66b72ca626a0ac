// @ts-check
/** A picture file as input: chosen here, or brought by `bring.js`. Python reads it where there is one, else the page. */

import { h, newId, setText } from "../html.js";
import { readPicture } from "./decode.js";
import { pixelsOf, show } from "./pixels.js";

/** @import {InputApp, Model, PictureView, Subject} from "../types.js" */

/** Larger files are read in the page: Python takes no larger message. */
const MOST_SENT = 7 * 2 ** 20;

/** @type {(app: InputApp) => PictureView} */
export function create(app) {
  const id = newId("picture");
  /** @type {Subject | null} */
  let subject = null;
  let asked = 0;

  const chooser = h("input", {
    id, type: "file", accept: "image/*", class: "unseen", dataset: { name: `${app.slot}-file` }, "aria-describedby": `${id}-error`,
    onchange: () => take(chooser.files),
  });
  const preview = h("canvas", { class: "seen-pixels", role: "img", "aria-label": "What the model sees" });
  const error = h("p", { id: `${id}-error`, class: "input-error", role: "alert" });
  const hint = h("p", { class: "hint" });
  const zone = h("div", { class: "drop-zone" },
    h("label", { for: id, class: "button" }, "Choose a picture"), chooser, h("p", null, "or drop it here, or paste it"),
    h("figure", { class: "seen" }, preview, h("figcaption", null, "what the model sees")));
  const element = h("div", { class: "input-form" }, hint, zone, error);

  /** @type {(files: FileList | null) => Promise<void>} */
  async function take(files) {
    const file = files?.[0];
    const image = subject?.task.image;
    if (!file || !subject || !image) return;
    const number = ++asked;
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const sent = subject.abilities.pictures && bytes.length <= MOST_SENT;
      const pixels = await (sent ? app.port.read(bytes) : readPicture(bytes, image));
      if (number !== asked) return;
      setText(error, "");
      app.dispatch({ type: app.slot, input: { pixels } });
    } catch (problem) {
      if (number === asked) setText(error, problem instanceof Error ? problem.message : String(problem));
    }
    chooser.value = "";
  }

  /** @type {(model: Model) => void} */
  function render(model) {
    subject = model.subject;
    const image = subject.task.image;
    setText(hint, image?.ink
      ? "A photo, a scan or a screenshot: dark on light or light on dark. It is cropped, scaled and centred."
      : "The picture is scaled to the size that the model was trained with.");
    const pixels = pixelsOf(model, app.slot);
    preview.hidden = !pixels;
    if (pixels) show(preview, pixels);
  }

  return { element, render, take };
}
