// SPDX-License-Identifier: Apache-2.0
/** Verification of a survey in a worker, loaded for surveys that would keep the page busy (docs/browser.md). */

const PATIENCE_MS = 30_000; // the longest time that loading any part may take
const ADDRESS = new URL("./verifier.js", import.meta.url).href;
/** The worker's address, as a TrustedScriptURL for pages that require trusted types. @type {any} */
let trusted;

/**
 * Return a worker's result for a survey's bytes: null if every promise is kept, otherwise reason, field and words.
 * Resolves to undefined if no worker can run: the bundle is from another origin, the page is a local file, the page's
 * policy forbids workers, or the browser is too old.
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
