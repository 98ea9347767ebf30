// SPDX-License-Identifier: Apache-2.0
/** Verifying a survey in a worker, loaded for surveys that would keep the page busy (docs/browser.md). */

const PATIENCE_MS = 30_000; // as long as any part may take to load
const ADDRESS = new URL("./verifier.js", import.meta.url).href;
/** The address as pages take it that accept no other script. @type {any} */
let trusted;

/**
 * The verdict of a worker on a survey's bytes: null if every promise is kept, otherwise reason, field and words; undefined
 * where there is no worker: a bundle of another origin, a page from a file, a policy that allows none, an old browser.
 * @returns {Promise<null | [string, string, string, ...any[]] | undefined>}
 */
export const verifyBeside = (/** @type {Uint8Array} */ payload, /** @type {string} */ digest) => new Promise((resolve) => {
  try {
    trusted ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy("frankly", { createScriptURL: () => ADDRESS }).createScriptURL("") ?? ADDRESS;
    const worker = new Worker(trusted, { type: "module" });
    const end = (/** @type {any} */ verdict) => {
      clearTimeout(timer);
      worker.terminate();
      resolve(verdict);
    };
    const timer = setTimeout(end, PATIENCE_MS);
    worker.onmessage = ({ data }) => end(data);
    worker.onerror = worker.onmessageerror = () => end(undefined);
    worker.postMessage({ payload, digest });
  } catch {
    resolve(undefined);
  }
});
