// @ts-check
/** The page that `attnlab explore` serves: the app, and a socket to the server that the page came from. */

import { mount } from "./app.js";
import { socketPort } from "./ports/socket.js";

const root = document.getElementById("explorer");
if (root) {
  root.replaceChildren();
  mount(root, socketPort(new URL("socket", location.href)), { hash: true });
}
