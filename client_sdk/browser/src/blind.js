// SPDX-License-Identifier: Apache-2.0
/**
 * Tokens of an outside issuer: RSA blind signatures of RFC 9474, the requester's side (spec 6.4). WebCrypto has no
 * plain RSA, so the numbers are BigInt, whose arithmetic is not constant-time. This is acceptable, because each secret
 * is used for one request only, on its owner's device.
 */

import { bytesOf, hex, unhex } from "./canonical.js";
import { InvalidInput } from "./errors.js";
import { checkToken, fromUrl, ruleFor, toUrl } from "./tokens.js";

/** @typedef {{saltBytes: number, isRandomized: boolean}} Variant salt of PSS, and whether 32 random bytes precede the message */
/** @typedef {{n: bigint, e: bigint, bits: number, verifier: CryptoKey}} Key */
/** @typedef {{request: Uint8Array, prepared: Uint8Array, inverse: bigint}} Blinded */

/** The RFC's four variants (section 5). @type {Record<string, Variant>} */
export const VARIANTS = {
  "RSABSSA-SHA384-PSS-Randomized": { saltBytes: 48, isRandomized: true },
  "RSABSSA-SHA384-PSSZERO-Randomized": { saltBytes: 0, isRandomized: true },
  "RSABSSA-SHA384-PSS-Deterministic": { saltBytes: 48, isRandomized: false },
  "RSABSSA-SHA384-PSSZERO-Deterministic": { saltBytes: 0, isRandomized: false },
};
const TOKEN = VARIANTS["RSABSSA-SHA384-PSS-Randomized"], PREFIX = 32, NONCE = 32, HASH = 48;

const refused = (/** @type {string} */ field, /** @type {string} */ detail) => new InvalidInput("token_invalid", field, detail);
const random = (/** @type {number} */ size) => crypto.getRandomValues(new Uint8Array(size));
const join = (/** @type {Uint8Array[]} */ ...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const numberOf = (/** @type {Uint8Array} */ bytes) => BigInt(`0x${hex(bytes) || "0"}`);
const bytesOfNumber = (/** @type {bigint} */ value, /** @type {number} */ size) => unhex(value.toString(16).padStart(2 * size, "0"));
const sha384 = async (/** @type {Uint8Array[]} */ ...parts) =>
  new Uint8Array(await crypto.subtle.digest("SHA-384", /** @type {any} */ (join(...parts))));

/** Return base^exponent mod n. */
function power(/** @type {bigint} */ base, /** @type {bigint} */ exponent, /** @type {bigint} */ n) {
  let result = 1n;
  for (const bit of exponent.toString(2)) result = (result * result % n) * (bit === "1" ? base : 1n) % n;
  return result;
}

/** Return the inverse of a mod n, undefined if they have a common factor. */
function inverseOf(/** @type {bigint} */ a, /** @type {bigint} */ n) {
  let [r, next, s, coefficient] = [n, a % n, 0n, 1n];
  while (next) {
    const q = r / next;
    [r, next, s, coefficient] = [next, r - q * next, coefficient, s - q * coefficient];
  }
  return r === 1n ? ((s % n) + n) % n : undefined;
}

/** Read an issuer's key: DER SubjectPublicKeyInfo; throws unless it is an RSA key of 2048 to 4096 bits. @returns {Promise<Key>} */
export async function readKey(/** @type {Uint8Array} */ spki) {
  const algorithm = { name: "RSA-PSS", hash: "SHA-384" };
  try {
    const verifier = await crypto.subtle.importKey("spki", /** @type {any} */ (spki), algorithm, true, ["verify"]);
    const { n, e } = await crypto.subtle.exportKey("jwk", verifier);
    const [modulus, exponent] = [n, e].map((text) => numberOf(/** @type {Uint8Array} */ (fromUrl(text))));
    const bits = modulus.toString(2).length;
    if (bits >= 2048 && bits <= 4096) return { n: modulus, e: exponent, bits, verifier };
  } catch {
    // A key that is not RSA gives the same error.
  }
  throw refused("token.key", "the issuer's key must be RSA with 2048 to 4096 bits");
}

/** Return the message to blind, with a random prefix if the variant has one (section 4.1). */
export const prepare = (/** @type {Uint8Array} */ message, /** @type {Variant} */ variant) => join(variant.isRandomized ? random(PREFIX) : new Uint8Array(), message);

/** Blind a prepared message (section 4.2). @returns {Promise<Blinded>} */
export async function blindMessage(/** @type {Key} */ { n, e, bits }, /** @type {Uint8Array} */ prepared, /** @type {Variant} */ variant) {
  for (;;) {
    // Rejection sampling, so that r is uniform below n.
    const size = Math.ceil(bits / 8), r = numberOf(random(size)) & ((1n << BigInt(bits)) - 1n), inverse = r && r < n ? inverseOf(r, n) : undefined;
    if (inverse) return blindWith({ n, e, bits }, prepared, random(variant.saltBytes), r, inverse);
  }
}

/** Blind with a given salt and factor; for `blindMessage`, and for the vectors of the RFC. */
export async function blindWith(
  /** @type {{n: bigint, e: bigint, bits: number}} */ { n, e, bits }, /** @type {Uint8Array} */ prepared, /** @type {Uint8Array} */ salt,
  /** @type {bigint} */ r, /** @type {bigint} */ inverse,
) {
  const m = numberOf(await encode(prepared, salt, bits - 1));
  if (!inverseOf(m, n)) throw refused("token.key", "the issuer's key is no RSA key");
  return { request: bytesOfNumber(m * power(r, e, n) % n, Math.ceil(bits / 8)), prepared, inverse };
}

/** Return the signature of the prepared message, after checking it (section 4.4). */
export async function finalizeMessage(/** @type {Key} */ { n, bits, verifier }, /** @type {Blinded} */ blinded, /** @type {Uint8Array} */ blindSignature, /** @type {Variant} */ variant) {
  const size = Math.ceil(bits / 8), isBytes = blindSignature instanceof Uint8Array && blindSignature.length === size;
  const z = isBytes ? numberOf(blindSignature) : n, name = { name: "RSA-PSS", saltLength: variant.saltBytes };
  const signature = bytesOfNumber(z * blinded.inverse % n, size);
  if (z < n && (await crypto.subtle.verify(name, verifier, /** @type {any} */ (signature), /** @type {any} */ (blinded.prepared)))) return signature;
  throw refused("blind_signature", "the issuer's response is not a signature of this request; ask the issuer again");
}

/** EMSA-PSS-ENCODE (RFC 8017, section 9.1.1) with SHA-384 and MGF1. */
async function encode(/** @type {Uint8Array} */ message, /** @type {Uint8Array} */ salt, /** @type {number} */ bits) {
  const size = Math.ceil(bits / 8), digest = await sha384(new Uint8Array(8), await sha384(message), salt);
  const block = join(new Uint8Array(size - salt.length - HASH - 2), Uint8Array.of(1), salt);
  /** @type {number[]} */
  const mask = [];
  for (let i = 0; mask.length < block.length; i++) mask.push(...(await sha384(digest, Uint8Array.of(0, 0, 0, i))));
  const masked = block.map((byte, i) => byte ^ mask[i]);
  masked[0] &= 0xff >> (8 * size - bits);
  return join(masked, digest, Uint8Array.of(0xbc));
}

/** Return a request for a token of a survey, or of one of its sources: send `blinded` to the issuer, and keep the rest until it has responded. */
export async function blind(/** @type {import("./survey.js").Survey} */ { token: whole, survey }, /** @type {string | undefined} */ source = undefined) {
  const rule = ruleFor(whole, source);
  if (!rule?.key) throw refused("token", "this survey takes no tokens of an issuer");
  const key = await readKey(/** @type {Uint8Array} */ (fromUrl(rule.key) ?? new Uint8Array()));
  const message = join(bytesOf("frankly.token/1\0"), unhex(survey), random(NONCE));
  const secret = await blindMessage(key, prepare(message, TOKEN), TOKEN);
  return { rule, survey, blinded: secret.request, secret };
}

/** Return the token, in base64url, after checking that the survey's server will accept it. */
export async function finalize(/** @type {Awaited<ReturnType<typeof blind>>} */ { rule, survey, secret }, /** @type {Uint8Array} */ blindSignature) {
  const key = await readKey(/** @type {Uint8Array} */ (fromUrl(rule.key)));
  const signature = await finalizeMessage(key, secret, blindSignature, TOKEN), { prepared } = secret;
  const raw = join(prepared.slice(0, PREFIX), prepared.slice(-NONCE), signature);
  const token = toUrl(raw);
  await checkToken(/** @type {any} */ ({ token: rule, survey }), token);
  return token;
}
