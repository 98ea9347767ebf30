// SPDX-License-Identifier: Apache-2.0
/** The hosted page without a network: it says so, and a service worker opens it again (service.js). */

import { make } from "./fields.js";
import { directionOf, stringsFor } from "./words.js";
import { OFFLINE } from "./words_hosted.js";

const QUIET_MS = 1000; // the form comes first
const RETRY_MS = 15_000;
const FOLDER = "/sdk/v1/page/", SCRIPT = `${FOLDER}service.js`;

/** Ask the server for something public, without being recognised. */
const ask = () => fetch("/v1/keys/chain", { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" });

/** Say above the form whether there is a network; `reply` is the server's first one. Returns the node that says it. */
export function sayOffline(/** @type {HTMLElement} */ survey, /** @type {Promise<unknown>} */ reply) {
  const said = make("div", { role: "status", id: "offline" });
  said.style.fontWeight = "600"; // not in hosted.css, which the first bytes contain
  let isLost = false, language = "en";
  const show = () => {
    // What it says is true only of a form: an answer that was given has its own message, and so has an error.
    const isSaid = (isLost || !navigator.onLine) && survey.shadowRoot?.querySelector("form");
    const own = /** @type {import("./words.js").Strings} */ (stringsFor(language)).offline, text = isSaid ? own ?? OFFLINE : "", spoken = own ? language : "en";
    Object.assign(said, { lang: spoken, dir: directionOf(spoken) });
    said.style.marginBlockEnd = text && "1.25em";
    if (said.textContent !== text) said.textContent = text;
  };
  // A browser may have a network without having this server.
  const wait = async (/** @type {Promise<unknown>} */ reply) => {
    isLost = await reply.then(() => false, () => true);
    show();
    if (isLost) setTimeout(() => wait(ask()), RETRY_MS);
  };
  wait(reply);
  globalThis.addEventListener("offline", show);
  globalThis.addEventListener("online", () => {
    isLost = false;
    show();
  });
  survey.addEventListener("frankly-language", (event) => {
    ({ language } = /** @type {CustomEvent} */ (event).detail);
    queueMicrotask(show); // the element shows it after the event
  });
  return said;
}

/** Let a service worker keep the page once its survey is open. Nothing depends on it. */
export function keep(/** @type {HTMLElement} */ survey) {
  const { serviceWorker, connection } = /** @type {Navigator & {connection?: {saveData: boolean}}} */ (navigator);
  if (!serviceWorker || connection?.saveData) return;
  const tell = () => serviceWorker.controller?.postMessage(performance.getEntriesByType("resource").map(({ name }) => name));
  const start = async () => {
    serviceWorker.addEventListener("controllerchange", tell);
    survey.addEventListener("frankly-language", tell);
    tell();
    const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("frankly-page", { createScriptURL: () => SCRIPT });
    // The script of a worker is in a scope of its own, that of its address.
    for (const scope of ["/s/", FOLDER]) await serviceWorker.register(policy?.createScriptURL("") ?? SCRIPT, { scope });
  };
  survey.addEventListener("frankly-opened", () => setTimeout(() => start().catch(() => undefined), QUIET_MS), { once: true });
}
