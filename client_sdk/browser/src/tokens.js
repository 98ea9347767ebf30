// SPDX-License-Identifier: Apache-2.0
/** Tokens of surveys (docs/protocol.md §10); loaded when a survey requires one. */

import { bytesOf, unbase64, unhex } from "./canonical.js";
import { InvalidInput } from "./errors.js";

/** Throw if the survey's rule refuses the token; called before anything is drawn. */
export async function checkToken(/** @type {import("./documents.js").Survey} */ { token: rule, survey }, /** @type {string | null} */ token) {
  const refuse = (/** @type {string} */ key) => new InvalidInput("token_invalid", "token", key);
  if (!rule) throw refuse("this survey takes no token");
  if (token === null) throw refuse("this survey needs the token you were given");
  const raw = fromUrl(token);
  if (rule.key === null ? raw?.length === 32 : raw && (await isSignedBy(rule.key, raw, survey))) return;
  throw refuse("the token is not valid for this survey; use the one that you were given");
}

async function isSignedBy(/** @type {string} */ key, /** @type {Uint8Array} */ raw, /** @type {string} */ survey) {
  const context = bytesOf("frankly.token/1\0");
  const message = Uint8Array.of(...raw.slice(0, 32), ...context, ...unhex(survey), ...raw.slice(32, 64));
  const name = { name: "RSA-PSS", hash: "SHA-384" };
  try {
    const issuer = await crypto.subtle.importKey("spki", /** @type {any} */ (fromUrl(key)), name, false, ["verify"]);
    const { modulusLength: size } = /** @type {RsaHashedKeyAlgorithm} */ (issuer.algorithm);
    if (size < 2048 || size > 4096) return false;
    return await crypto.subtle.verify({ name: "RSA-PSS", saltLength: 48 }, issuer, raw.slice(64), message);
  } catch {
    return false;
  }
}

/** Read base64url without padding, in its one canonical spelling: the server accepts no other. */
function fromUrl(/** @type {unknown} */ text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
  const given = text.replaceAll("-", "+").replaceAll("_", "/"), bytes = unbase64(given + "=".repeat((4 - (given.length % 4)) % 4));
  return bytes && btoa(String.fromCharCode(...bytes)).replace(/=+$/, "") === given ? bytes : undefined;
}
