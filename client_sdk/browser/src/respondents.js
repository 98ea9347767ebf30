// SPDX-License-Identifier: Apache-2.0
/** Several people on one device, for apps that name them: loaded when one does. */

import { bytesOf, hex } from "./canonical.js";
import { RandomnessError } from "./errors.js";

/** The name a respondent's ledger is kept under: a hash keyed with this store's own salt. */
export async function nameOf(/** @type {string} */ key, /** @type {import("./store.js").Store} */ store) {
  const fresh = new Uint8Array(32);
  try {
    crypto.getRandomValues(fresh);
  } catch {
    throw new RandomnessError();
  }
  const salt = await store.change("salt", 0, (known) => !known && fresh);
  const hmac = await crypto.subtle.importKey("raw", salt, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", hmac, bytesOf(key))));
}
