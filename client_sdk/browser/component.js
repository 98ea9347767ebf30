// SPDX-License-Identifier: Apache-2.0
/** Common parts of the components for React and Vue: events, attributes, and a client that lives as long as a component. */

import { Client } from "./src/index.js";
import "./src/element.js";

/** The element's events, without their prefix `frankly-`. */
export const EVENTS = ["opened", "planned", "sealed", "sent", "queued", "refused", "log_renamed", "language", "error"];

/** Return the attributes that are rendered; not the link, which `openIn` sets. */
export const attributesOf = (/** @type {import("./component.d.ts").Attributes} */ { cap, store, token, finalSurveys }) =>
  ({ cap, store, token: token ?? undefined, "final-surveys": finalSurveys?.join(" ") });

/** Set the properties of an element, then its link: the element reads them when its link is set. */
export function openIn(/** @type {import("./element.d.ts").FranklySurvey} */ element, /** @type {import("./component.d.ts").Opened} */ { link, options, strings }) {
  Object.assign(element, { ...(options && { options }), ...(strings && { strings }) });
  if (link) element.setAttribute("link", link);
  else element.removeAttribute("link");
}

/** @type {import("./component.d.ts").FranklyState} */
export const OPENING = { status: "opening", client: null, error: null };
/** @type {import("./component.d.ts").FranklyState} */
export const DISABLED = { status: "disabled", client: null, error: null };

/** Open a client, and pass its states to `set`; return a function that ends this and closes the client. */
export function openClient(/** @type {string} */ link, /** @type {import("./frankly.d.ts").Options} */ options, /** @type {(state: import("./component.d.ts").FranklyState) => void} */ set) {
  let isOver = false, /** @type {Client | undefined} */ client;
  set(OPENING);
  Client.open(link, options).then((opened) => {
    if (isOver) return opened.close();
    client = opened;
    set(/** @type {any} */ ({ status: "ready", client, error: null }));
  }, (error) => isOver || set({ status: "failed", client: null, error }));
  return () => {
    isOver = true;
    client?.close();
  };
}
