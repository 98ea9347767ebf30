// SPDX-License-Identifier: Apache-2.0
/** Names of several respondents on one device, for apps that pass respondents' keys; loaded on demand. */

import { bytesOf, hex } from "./canonical.js";
import { InvalidInput, RandomnessError } from "./errors.js";

/**
 * Return the names of a respondent's ledger, each a hash keyed with this store's salt: of the key in NFC without spaces
 * around it, and, for answers stored before keys were normalised, of the key as given.
 */
export async function namesOf(/** @type {string} */ key, /** @type {import("./store.js").Store} */ store) {
  if (typeof key !== "string") throw new InvalidInput("field_type", "respondent", "no_respondent");
  if (!key.trim()) throw new InvalidInput("field_missing", "respondent", "no_respondent");
  const fresh = new Uint8Array(32);
  try {
    crypto.getRandomValues(fresh);
  } catch {
    throw new RandomnessError();
  }
  const salt = await store.change("salt", 0, (known) => !known && fresh);
  const hmac = await crypto.subtle.importKey("raw", salt, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const spellings = [...new Set([key.normalize("NFC").trim(), key])];
  return Promise.all(spellings.map(async (one) => hex(new Uint8Array(await crypto.subtle.sign("HMAC", hmac, bytesOf(one))))));
}
