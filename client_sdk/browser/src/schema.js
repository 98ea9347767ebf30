// SPDX-License-Identifier: Apache-2.0
/** Reading parsed JSON field by field: every key named, every type checked, nothing unknown let through (step 4). */

import { DocumentRejected } from "./errors.js";

/** @template T @typedef {(value: any, field: string) => T} Read */

/** The error for a field that does not fit the schema. */
export const reject = (/** @type {string} */ detail, /** @type {string | null} */ field) => new DocumentRejected("schema", detail, field);

export function record(/** @type {any} */ value, /** @type {string | null} */ field, /** @type {string[]} */ keys) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw reject("expected an object", field);
  const path = (/** @type {string} */ key) => (field ? `${field}.${key}` : key);
  const found = Object.keys(value);
  const wrong = [...found.filter((key) => !keys.includes(key)), ...keys.filter((key) => !Object.hasOwn(value, key))].sort()[0];
  if (wrong !== undefined) throw reject(found.includes(wrong) ? "unknown field" : "missing field", path(wrong));
  return value;
}

/** @template T @returns {T[]} */
export function items(
  /** @type {any} */ value, /** @type {string} */ field, /** @type {number} */ low, /** @type {number} */ high, /** @type {Read<T>} */ read,
) {
  if (!Array.isArray(value) || value.length < low || value.length > high)
    throw reject(`expected a list of ${low} to ${high} entries`, field);
  return value.map((entry, i) => read(entry, `${field}[${i}]`));
}

/** @returns {number} */
export function integer(/** @type {any} */ value, /** @type {string} */ field, low = 0, high = Number.MAX_SAFE_INTEGER) {
  if (!Number.isSafeInteger(value) || value < low || value > high) throw reject(`expected a whole number from ${low} to ${high}`, field);
  return value;
}

/** [p, q] as given: a level is never rounded. @returns {[number, number]} */
export function ratio(/** @type {any} */ value, /** @type {string} */ field, low = 1) {
  if (!Array.isArray(value) || value.length !== 2) throw reject("expected a ratio of two whole numbers", field);
  return [integer(value[0], `${field}[0]`, low), integer(value[1], `${field}[1]`, 1)];
}

/** @returns {boolean} */
export function flag(/** @type {any} */ value, /** @type {string} */ field) {
  if (typeof value !== "boolean") throw reject("expected true or false", field);
  return value;
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const ASCII = /^[\0-\x7f]$/;

/** A text of 1 to `most` characters that is safe to show. Joiners are fine between two characters not in ASCII. */
export function text(/** @type {any} */ value, /** @type {string} */ field, most = 4000) {
  const characters = typeof value === "string" && value.length <= 2 * most ? [...value] : [];
  if (!characters.length || characters.length > most) throw reject(`expected a text of 1 to ${most} characters`, field);
  const unsafe = UNSAFE.test(value) && characters.some((c, i) => {
    if (!UNSAFE.test(c)) return false;
    const inside = i > 0 && i < characters.length - 1 && !ASCII.test(characters[i - 1]) && !ASCII.test(characters[i + 1]);
    return !(inside && (c === "\u200c" || c === "\u200d"));
  });
  if (unsafe) throw reject("the text holds a character which cannot be shown safely", field);
  return /** @type {string} */ (value);
}

/** A text per language, for exactly the document's languages. @returns {Record<string, string>} */
export function words(/** @type {any} */ value, /** @type {string} */ field, /** @type {string[]} */ languages) {
  for (const [key, said] of Object.entries(record(value, field, languages))) text(said, `${field}.${key}`);
  return value;
}

const matching = (/** @type {RegExp} */ pattern, /** @type {string} */ expected) => (/** @type {any} */ value, /** @type {string} */ field) => {
  if (typeof value !== "string" || !pattern.test(value)) throw reject(`expected ${expected}`, field);
  return value;
};
export const identifier = matching(/^[a-z0-9][a-z0-9_-]{0,63}$/, "an id of a-z, 0-9, - and _");
export const digest = matching(/^sha256:[0-9a-f]{64}$/, "sha256: and 64 hex digits");
export const hex128 = matching(/^[0-9a-f]{32}$/, "32 lower-case hex digits");
export const hex256 = matching(/^[0-9a-f]{64}$/, "64 lower-case hex digits");
export const language = matching(/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, "a language tag such as en");

/** Milliseconds since 1970 of a time written YYYY-MM-DDTHH:MM:SSZ. */
export function moment(/** @type {any} */ value, /** @type {string} */ field) {
  const at = typeof value === "string" && /^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) ? Date.parse(value) : NaN;
  if (Number.isNaN(at) || time(at) !== value) throw reject("a time is written YYYY-MM-DDTHH:MM:SSZ, in UTC", field);
  return at;
}

/** The only form of time in our documents. */
export const time = (/** @type {number} */ at) => new Date(at).toISOString().replace(/\.\d+/, "");

/** @template T @returns {T | null} */
export const optional = (/** @type {any} */ value, /** @type {string} */ field, /** @type {Read<T>} */ read) =>
  value === null ? null : read(value, field);

export function distinct(/** @type {string[]} */ names, /** @type {string} */ field) {
  if (new Set(names).size !== names.length) throw reject("two entries have the same id", field);
}
