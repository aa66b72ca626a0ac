// @ts-check
/** A port to the server: one socket, opened when something is asked, and again after it was lost. */

import { readFrame, writeFrame } from "./frames.js";
import { PortError, requestPort } from "./requests.js";

/** @import {Port} from "../types.js" */

const LOST = "the connection to attnlab is gone; is it still running?";

/** @param {URL} address of the socket, also with http @returns {Port} */
export function socketPort(address) {
  const url = new URL(address);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  /** @type {WebSocket | null} */
  let socket = null;
  /** What is to be sent when the socket is open. @type {Uint8Array<ArrayBuffer>[]} */
  let unsent = [];

  function connect() {
    const opened = new WebSocket(url);
    opened.binaryType = "arraybuffer";
    opened.onopen = () => {
      if (socket !== opened) return;
      for (const frame of unsent) opened.send(frame);
      unsent = [];
    };
    opened.onmessage = ({ data }) => receive(readFrame(data));
    opened.onclose = ({ reason }) => {
      if (socket !== opened) return;
      socket = null;
      unsent = [];
      fail(new PortError(reason || LOST, { lost: true }));
    };
    return opened;
  }

  const { port, receive, fail } = requestPort(
    (message) => {
      socket ??= connect();
      const frame = writeFrame(message);
      if (socket.readyState === WebSocket.OPEN) socket.send(frame);
      else unsent.push(frame);
    },
    () => {
      const open = socket;
      socket = null;
      open?.close();
    },
  );
  return port;
}
