// @ts-check
/** The page that `attnlab explore` serves: the app, and a socket to the server that the page came from. */

import { mount } from "./app.js";
import { socketPort } from "./ports/socket.js";

const root = /** @type {HTMLElement} */ (document.getElementById("explorer"));

/** Begins as the address says. */
export function begin() {
  const port = socketPort(new URL("socket", location.href));
  const page = mount(root, port, { hash: true });
  return () => {
    page.destroy();
    port.close();
  };
}

/** Ends what began with the page. */
export const end = begin();
