// @ts-check
/** A port to Python in a notebook: messages of a widget, the numbers as their one buffer. */

import { pack, unpack } from "./frames.js";
import { requestPort } from "./requests.js";

/** @import {Port} from "../types.js" */
/**
 * What anywidget gives of a widget's model.
 * @typedef {{get: (name: string) => any, set: (name: string, value: any) => void, save_changes: () => void,
 *   send: (content: any, callbacks?: any, buffers?: ArrayBuffer[]) => void,
 *   on: (event: string, listener: (...given: any[]) => void) => void,
 *   off: (event: string, listener: (...given: any[]) => void) => void}} WidgetModel
 */

/** @param {WidgetModel} model @returns {Port} */
export function widgetPort(model) {
  const { port, receive } = requestPort(
    (message) => {
      const { plain, numbers } = pack(message);
      model.send(plain, undefined, [numbers.buffer]);
    },
    () => model.off("msg:custom", onMessage),
  );

  /** @param {any} content @param {DataView[]} buffers */
  function onMessage(content, buffers) {
    const [numbers] = buffers;
    if (!numbers) receive(content);
    else receive(unpack(content, ...aligned(numbers)));
  }

  model.on("msg:custom", onMessage);
  return port;
}

/** The bytes, and where they begin, which must be a multiple of 4. @param {DataView} view @returns {[ArrayBufferLike, number]} */
function aligned({ buffer, byteOffset, byteLength }) {
  if (byteOffset % 4 === 0) return [buffer, byteOffset];
  return [buffer.slice(byteOffset, byteOffset + byteLength), 0];
}
