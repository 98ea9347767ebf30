// SPDX-License-Identifier: Apache-2.0
/** Tokens of surveys (docs/protocol.md §10); loaded when a survey requires one. */

import { bytesOf, sha256, unbase64, unhex } from "./canonical.js";
import { InvalidInput } from "./errors.js";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; // Crockford's base 32
const CODE_LENGTH = 16;

/** Return the token rule of a source; without sources, the survey's. Throws InvalidInput for an unknown source. */
export function ruleFor(/** @type {import("./survey.js").Token | null} */ rule, /** @type {unknown} */ source) {
  if (!rule?.rules) return rule;
  if (typeof source === "string" && Object.hasOwn(rule.rules, source)) return rule.rules[source];
  throw new InvalidInput("strata_invalid", `strata.${rule.question}`, "not one of the question's choices");
}

/**
 * Return the token to send: `token`, or the one that an invite code stands for. Throws for a mistyped code, or if the
 * rule of the survey, or of the `source`, refuses the token; called before anything is drawn.
 */
export async function checkToken(/** @type {import("./survey.js").Survey} */ { token: whole, survey }, /** @type {string | null} */ token, /** @type {unknown} */ source = undefined) {
  const refuse = (/** @type {string} */ key) => new InvalidInput("token_invalid", "token", key), rule = ruleFor(whole, source);
  if (!rule) throw refuse("this survey takes no token");
  if (token === null) throw refuse("this survey needs the token you were given");
  const code = rule.key === null && typeof token === "string" ? token.replace(/[\s–-]+/g, "") : "";
  if (code.length === CODE_LENGTH) return toUrl(await tokenOfCode(code, survey));
  const raw = fromUrl(token);
  if (rule.key ? raw && (await isSignedBy(rule.key, raw, survey)) : raw?.length === 32) return token;
  throw refuse("the token is not valid for this survey; use the one that you were given");
}

/** Return the 32 bytes of a code's token. The check character makes Σ αⁱcᵢ zero over GF(32), where α⁵ = α² + 1. */
async function tokenOfCode(/** @type {string} */ code, /** @type {string} */ survey) {
  const plain = code.toUpperCase().replace(/[IL]/g, "1").replaceAll("O", "0"), digits = [...plain].map((one) => ALPHABET.indexOf(one));
  const sum = digits.reduce((sum, digit) => (sum << 1) ^ (sum & 16 ? 0b100101 : 0) ^ digit, 0);
  if (digits.length !== CODE_LENGTH || digits.includes(-1) || sum)
    throw new InvalidInput("token_invalid", "token", "this code has a typing mistake: compare it with your invitation, and type it again");
  return sha256(Uint8Array.of(...bytesOf("frankly.invite/1\0"), ...unhex(survey), ...bytesOf(plain)));
}

/** Return base64url without padding. */
export const toUrl = (/** @type {Uint8Array} */ bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

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
export function fromUrl(/** @type {unknown} */ text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
  const given = text.replaceAll("-", "+").replaceAll("_", "/"), bytes = unbase64(given + "=".repeat((4 - (given.length % 4)) % 4));
  return bytes && btoa(String.fromCharCode(...bytes)).replace(/=+$/, "") === given ? bytes : undefined;
}
