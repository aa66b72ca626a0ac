// @ts-check
/**
 * Pictures that are pasted or dropped, wherever on the page that is: those brought to the second input are its,
 * all others are the input's. A text that is pasted stays where it belongs.
 */

import { reach } from "../html.js";

/**
 * Call `take` with files that are brought; gives back what ends it.
 * @param {HTMLElement} root of the explorer @param {HTMLElement | null} own where they are taken alone; null: everywhere
 * @param {(files: FileList) => void} take
 */
export function watchFiles(root, own, take) {
  const where = own ?? reach(root);

  /** @param {Event} event */
  function over(event) {
    if (!/** @type {DragEvent} */ (event).dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // else the browser would leave the page for the file
    event.stopPropagation();
  }

  /** @param {Event} event */
  function brought(event) {
    const { files } = (event instanceof ClipboardEvent ? event.clipboardData : /** @type {DragEvent} */ (event).dataTransfer) ?? {};
    if (!files?.length) return;
    event.preventDefault();
    event.stopPropagation();
    take(files);
  }

  /** @type {[string, (event: Event) => void][]} */
  const heard = [["dragover", over], ["drop", brought], ["paste", brought]];
  for (const [name, listen] of heard) where.addEventListener(name, listen);
  return () => {
    for (const [name, listen] of heard) where.removeEventListener(name, listen);
  };
}
