// SPDX-License-Identifier: Apache-2.0
/** Strict JSON, and the canonical form of signed payloads (docs/protocol.md §2). */

import { DocumentRejected } from "./errors.js";

export const MAX_BYTES = 4 * 2 ** 20;
const MAX_DEPTH = 9;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Return the UTF-8 bytes of a text. */
export const bytesOf = (/** @type {string} */ text) => encoder.encode(text);

/** Return the text of UTF-8 bytes; throws TypeError if they are not UTF-8. */
export const textOf = (/** @type {Uint8Array} */ bytes) => utf8.decode(bytes);

/** Return bytes as lower-case hex. */
export const hex = (/** @type {Uint8Array} */ bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** Return the bytes of hex text, which must have been checked. */
export const unhex = (/** @type {string} */ text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** Return the SHA-256 of bytes. */
export const sha256 = async (/** @type {Uint8Array} */ bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes)));

/** Return `sha256:` and the hex SHA-256 of a payload: the identifier of a document. */
export const digestOf = async (/** @type {Uint8Array} */ payload) => `sha256:${hex(await sha256(payload))}`;

/** Return true if two byte strings are equal. */
export const sameBytes = (/** @type {Uint8Array} */ a, /** @type {Uint8Array} */ b) =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

const bad = (/** @type {string} */ key) => new DocumentRejected("canonical", null, key);
/** Return the error for input that is too long. */
export const tooLarge = (/** @type {string | null} */ field = null) => new DocumentRejected("size", field, "too_large");

/** Return the canonical text of a value; throws DocumentRejected("canonical") if it has none. @returns {string} */
export function dumps(/** @type {any} */ value, depth = 1) {
  if (typeof value === "string") {
    const text = JSON.stringify(value);
    if (/\\ud[89a-f]/.test(text) && /[\ud800-\udfff]/u.test(value)) throw bad("surrogates");
    return text;
  }
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw bad("not_whole");
    return String(value);
  }
  if (depth > MAX_DEPTH) throw bad("too_deep");
  if (Array.isArray(value)) return `[${value.map((entry) => dumps(entry, depth + 1)).join()}]`;
  return `{${Object.keys(value)
    .sort()
    .map((key) => {
      if (/[^\0-\x7f]/.test(key)) throw bad("key_not_ascii");
      return `${JSON.stringify(key)}:${dumps(value[key], depth + 1)}`;
    })
    .join()}}`;
}

/**
 * Parse bytes that must be canonical (steps 1 and 4). `JSON.parse` accepts more (duplicate keys, exponents, other
 * spellings, white space); these are detected by serialising the value again and comparing the bytes. `dumps` refuses
 * fractions.
 */
export function loads(/** @type {Uint8Array} */ bytes) {
  if (bytes.length > MAX_BYTES) throw tooLarge();
  let text, value;
  try {
    text = textOf(bytes);
    value = JSON.parse(text);
  } catch {
    throw bad("not_json_utf8");
  }
  if (dumps(value) !== text) throw bad("not_canonical");
  return value;
}

/**
 * Parse JSON that need not be canonical; returns undefined for anything that strict parsing refuses. If a key is named
 * twice, the parsed value has fewer quotation marks than the text.
 */
export function parse(/** @type {Uint8Array} */ bytes, /** @type {number} */ most) {
  if (bytes.length > most) return undefined;
  try {
    const text = textOf(bytes);
    const value = JSON.parse(text);
    const marks = (/** @type {string} */ json) => json.replace(/\\./gs, "").split('"').length;
    return marks(text) === marks(dumps(value)) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Return the bytes of standard base64, undefined for any other text; as in Python, any number of `=` may follow complete groups. */
export function unbase64(/** @type {unknown} */ text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9+/]*=*$/.test(text)) return undefined;
  const digits = text.replace(/=+$/, "");
  const rest = digits.length % 4, marks = text.length - digits.length;
  if (rest === 1 || (rest ? marks !== 4 - rest : marks && !digits)) return undefined;
  const binary = atob(digits);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
