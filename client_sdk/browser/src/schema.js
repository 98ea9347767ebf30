// SPDX-License-Identifier: Apache-2.0
/**
 * Readers of parsed JSON (step 4). A reader is called with a value and its path, and returns the result or throws an
 * error; readers of objects and lists are composed of readers of their elements. Types are checked, and unknown keys
 * are refused. If there are several faults, the first in reading order is reported.
 */

import { DocumentRejected, UnsupportedDocument } from "./errors.js";

/**
 * A reader is also passed the fields of the outermost object that have been read so far, for rules such as "a text per
 * language of the document", and the object that contains the value, with its path.
 * @template T @typedef {(value: any, path: string, root?: any, holder?: any, at?: string) => T} Read
 */

/** Return the error for a field that does not fit the schema. */
export const reject = (/** @type {string | null} */ field, /** @type {import("./errors.js").Said} */ ...said) => new DocumentRejected("schema", field, ...said);

/** Return the path of a field or list entry. */
export const under = (/** @type {string} */ path, /** @type {string} */ name) => (path ? `${path}.${name}` : name);

const isObject = (/** @type {any} */ value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Throw unless the value is an object with exactly these keys; keys in `perhaps` are optional. */
export function requireKeys(/** @type {any} */ value, /** @type {string} */ path, /** @type {string[]} */ keys, /** @type {string[]} */ perhaps = []) {
  if (!isObject(value)) throw reject(path, "no_object");
  const found = Object.keys(value);
  const wrong = [...found.filter((key) => !keys.includes(key) && !perhaps.includes(key)), ...keys.filter((key) => !found.includes(key))].sort()[0];
  if (wrong !== undefined) throw reject(under(path, wrong), found.includes(wrong) ? "unknown_field" : "missing_field");
}

/**
 * Return a reader of an object with these fields, read in this order; `more` names keys that other readers read. The
 * fields in `perhaps` are optional and read last. @returns {Read<any>}
 */
export const object = (
  /** @type {Record<string, Read<any>>} */ parts, /** @type {string[]} */ more = [], /** @type {Record<string, Read<any>>} */ perhaps = {},
) => (value, path, root) => {
  requireKeys(value, path, [...Object.keys(parts), ...more], Object.keys(perhaps));
  /** @type {Record<string, any>} */
  const read = {};
  for (const [name, part] of Object.entries({ ...parts, ...perhaps }))
    if (Object.hasOwn(value, name)) read[name] = part(value[name], under(path, name), root ?? read, value, path);
  return read;
};

/** Return the entry of `table` that an object's field `key` names; undefined if the field is missing, which the object's reader reports. */
export function chosen(/** @type {any} */ value, /** @type {string} */ path, /** @type {string} */ key, /** @type {Record<string, any>} */ table) {
  if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
  if (typeof value[key] !== "string" || !Object.hasOwn(table, value[key])) throw new UnsupportedDocument(path, "unknown_name", key);
  return table[value[key]];
}

/** Return a reader of a list; if `nameOf` is given, no two entries may have the same name. @template T @returns {Read<T[]>} */
export const list = (
  /** @type {number} */ low, /** @type {number} */ high, /** @type {Read<T>} */ read, /** @type {((entry: T) => any) | undefined} */ nameOf = undefined,
) => (value, path, root) => {
  if (!Array.isArray(value) || value.length < low || value.length > high) throw reject(path, "no_list", low, high);
  const entries = value.map((entry, i) => read(entry, `${path}[${i}]`, root));
  if (nameOf) requireDistinct(entries.map(nameOf), path);
  return entries;
};

/** Throw if two names are equal. */
export function requireDistinct(/** @type {any[]} */ names, /** @type {string} */ path) {
  if (new Set(names).size !== names.length) throw reject(path, "same_id");
}

/** Return a reader of a whole number from `low` to `high`. @returns {Read<number>} */
export const integer = (low = 0, high = Number.MAX_SAFE_INTEGER, reason = "schema") => (value, path) => {
  if (!Number.isSafeInteger(value) || value < low || value > high) throw new DocumentRejected(reason, path, "no_integer", low, high);
  return value;
};

/** Return a reader of [p, q], two whole numbers, so that a level is never rounded. @returns {Read<[number, number]>} */
export const ratio = (low = 1) => (value, path) => {
  if (!Array.isArray(value) || value.length !== 2) throw reject(path, "no_ratio");
  return [integer(low)(value[0], `${path}[0]`), integer(1)(value[1], `${path}[1]`)];
};

/** @type {Read<boolean>} */
export const flag = (value, path) => {
  if (typeof value !== "boolean") throw reject(path, "no_flag");
  return value;
};

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const ASCII = /^[\0-\x7f]$/;

/**
 * Return a reader of a text of 1 to `most` characters that is safe to show. Joiners are safe between two characters
 * that are not ASCII.
 * @returns {Read<string>}
 */
export const text = (most = 4000) => (value, path) => {
  const characters = typeof value === "string" && value.length <= 2 * most ? [...value] : [];
  if (!characters.length || characters.length > most) throw reject(path, "no_text", most);
  const isJoiner = (/** @type {string} */ c, /** @type {number} */ i) =>
    (c === "\u200c" || c === "\u200d") && i > 0 && i < characters.length - 1 && !ASCII.test(characters[i - 1]) && !ASCII.test(characters[i + 1]);
  if (UNSAFE.test(value) && characters.some((c, i) => UNSAFE.test(c) && !isJoiner(c, i))) throw reject(path, "unsafe_text");
  return value;
};

/** Read a text per language, for exactly the document's languages. @type {Read<Record<string, string>>} */
export const words = (value, path, root) => {
  requireKeys(value, path, root.languages);
  for (const [language, said] of Object.entries(value)) text()(said, under(path, language));
  return value;
};

/** Return a reader of a text that matches the pattern. @returns {Read<string>} */
export const matching = (/** @type {RegExp} */ pattern, /** @type {string} */ key) => (value, path) => {
  if (typeof value !== "string" || !pattern.test(value)) throw reject(path, key);
  return value;
};
export const identifier = matching(/^[a-z0-9][a-z0-9_-]{0,63}$/, "no_id");
export const digest = matching(/^sha256:[0-9a-f]{64}$/, "no_digest");
export const hex128 = matching(/^[0-9a-f]{32}$/, "no_hex32");
export const hex256 = matching(/^[0-9a-f]{64}$/, "no_hex64");
export const language = matching(/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, "no_language");
export const base64url = matching(/^[A-Za-z0-9_-]{64,2000}$/, "no_key");

/** Read a time written YYYY-MM-DDTHH:MM:SSZ, as milliseconds since 1970. @type {Read<number>} */
export const moment = (value, path) => {
  const at = typeof value === "string" && /^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) ? Date.parse(value) : NaN;
  if (Number.isNaN(at) || time(at) !== value) throw reject(path, "no_time");
  return at;
};

/** Return a time as YYYY-MM-DDTHH:MM:SSZ, the only time format in documents. */
export const time = (/** @type {number} */ at) => new Date(at).toISOString().replace(/\.\d+/, "");

/** Return a reader that also accepts null. @template T @returns {Read<T | null>} */
export const optional = (/** @type {Read<T>} */ read) => (value, path, root) => (value === null ? null : read(value, path, root));

/** Return the value unchanged; another reader checks it. @type {Read<any>} */
export const any = (value) => value;
