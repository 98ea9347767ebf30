// SPDX-License-Identifier: Apache-2.0
/**
 * The hosted page opens the survey named by its own address, including the pin. This file is small, so that the
 * questions can be read while the element is loaded and verifies the survey; until then, nothing can be entered.
 */

import { preview } from "./preview.js";

const { pathname, hash, href } = location, main = /** @type {HTMLElement} */ (document.querySelector("main"));
const pin = /^#sha256=([0-9a-f]{64})(?:&source=[\w-]+)?(?:&invite=[0-9A-Za-z-]+)?(?:&id=[\w.~-]+)?$/.exec(hash)?.[1], path = `/v1${pathname.replace(/^\/s\//, "/surveys/")}/document${pin ? `?digest=sha256:${pin}` : ""}`;
/** @type {Map<string, Promise<Response>>} */
const early = new Map();
// These requests replace the same requests of the SDK. They contain no information beyond the page's address.
for (const one of [path, "/v1/keys/chain"]) {
  const reply = fetch(one, { credentials: "omit", referrerPolicy: "no-referrer", redirect: "manual", cache: "no-store", mode: "cors" });
  reply.catch(() => undefined);
  early.set(new URL(one, href).href, reply);
}

/** Return the reply that has arrived or is pending; other requests, and repeated ones, go to the network. @type {typeof fetch} */
const fetcher = (address, options) => {
  const reply = early.get(String(address));
  early.delete(String(address));
  return reply ?? fetch(address, options);
};

/** @type {HTMLElement | undefined} */
let shown;
let isOver = false; // true once the element shows the survey or an error, or has failed to load
const first = /** @type {Promise<Response>} */ (early.get(new URL(path, href).href));
first.then((reply) => reply.clone().text()).then((envelope) => {
  if (isOver) return;
  shown = preview(envelope, navigator.languages);
  main.prepend(shown);
}).catch(() => undefined); // the element shows the error

// Not a static import: the worker loads the element's file and must not run this one.
Promise.all([import("./element.js"), import("./seams.js"), import("./offline.js")]).then(([{ FranklySurvey }, { SEAMS }, { keep, sayOffline }]) => {
  const survey = new FranklySurvey();
  survey.options = /** @type {import("../frankly.d.ts").Options} */ ({ [SEAMS]: { fetch: fetcher } });
  survey.setAttribute("served", "");
  survey.hidden = true; // hidden while it has no content
  const { returnTo, completionCode } = main.dataset;
  const open = () => {
    // The panel's id of the person is known only here. Its characters stay as they are in an address.
    const id = /&id=([\w.~-]+)$/.exec(location.hash)?.[1] ?? "";
    if (returnTo) survey.setAttribute("return-to", returnTo.replace("{id}", id));
    survey.setAttribute("link", location.href);
  };
  if (completionCode) survey.setAttribute("completion-code", completionCode);
  open();
  globalThis.addEventListener("hashchange", open); // the visitor has followed a link with another pin
  survey.addEventListener("frankly-language", (event) => {
    document.documentElement.lang = /** @type {CustomEvent} */ (event).detail.language;
  });
  for (const name of ["frankly-opened", "frankly-language"]) survey.addEventListener(name, () => queueMicrotask(() => {
    const title = /** @type {HTMLElement | null} */ (survey.shadowRoot?.querySelector("h1"))?.textContent;
    document.title = title || document.title;
    if (!title && !survey.shadowRoot?.querySelector("[role=alert]")) return;
    isOver = true;
    survey.hidden = false;
    shown?.remove();
  }));
  keep(survey);
  main.append(sayOffline(survey, first), survey);
}, () => {
  isOver = true;
  shown?.remove();
  const alert = document.createElement("p");
  alert.role = "alert";
  alert.dir = "auto";
  alert.textContent = main.dataset.failed ?? ""; // from the server, in the visitor's language
  main.append(alert);
});
