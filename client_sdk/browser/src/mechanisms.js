// SPDX-License-Identifier: Apache-2.0
/** The kinds of mechanism, in whole numbers and sampled exactly (docs/protocol.md §§1, 7): tables; kinds.js and agreement.js hold the kinds that few surveys use. */

import { DocumentRejected, RandomnessError } from "./errors.js";
import { parts } from "./parts.js";
import { integer } from "./schema.js";

/**
 * @typedef {(bits: number) => number} RandomBits returns this number of random bits, 1 to 48, as a whole number
 * @typedef {number | string | number[]} SymbolJson a symbol in a report's JSON
 * @typedef {object} Common
 * @property {number} bits
 * @property {number} answers
 * @property {bigint} reports number of symbols that can be sent; 0 for kinds that never need it
 * @property {(truth: number, draw: RandomBits) => SymbolJson} sample
 * @property {SymbolJson} longest a symbol with the longest JSON
 * @property {string} shape the parameter that determines the number of answers
 * @property {(claim: import("./audit.js").Claim) => number} [units] time for verifying a claim, in the units of audit.js; tables and products need none of their own
 * @property {(notion: string, joint: bigint[][]) => Iterable<import("./ratios.js").Candidate>} [extremes] ratios that a common notion compares, for kinds that are no tables
 * @typedef {Common & {kind: "dense", weights: number[][]}} Dense
 * @typedef {Common & {kind: "unary", keep: number, flip: number}} Unary
 * @typedef {Common & {kind: "subset", size: number, inside: number}} Subset
 * @typedef {Common & {kind: "product", factors: Dense[], parts: (truth: number) => number[], columns: () => Iterable<bigint[]>, worst: () => import("./ratios.js").Candidate}} Product
 * @typedef {Dense | Unary | Subset | Product} Numbered a mechanism whose answers are numbered
 * @typedef {ReturnType<typeof import("./agreement.js").read>} Agreement
 * @typedef {{params: string[], read: (params: any, field: string) => Mechanism, questions?: number, counts?: number}} Kind the largest number of questions of a block, and of counts in its design prior
 * @typedef {Numbered | Agreement} Mechanism
 */

export const MAX_REPORTS = 4096;
const MAX_ANSWERS = 256;

/** Return random bits of the operating system. There is no fallback. @type {RandomBits} */
export function systemBits(bits) {
  const words = new Uint32Array(2);
  try {
    crypto.getRandomValues(words);
  } catch {
    throw new RandomnessError();
  }
  return Math.floor((words[0] * 2 ** 16 + (words[1] & 0xffff)) / 2 ** (48 - bits)); // below 2^48: exact
}

/** Return an exactly uniform number on 0 … n − 1 by rejection sampling; the number of draws does not depend on the truth. */
export function drawBelow(/** @type {number} */ n, /** @type {RandomBits} */ draw) {
  const bits = n > 1 ? (n - 1).toString(2).length : 0;
  for (;;) {
    const u = bits ? draw(bits) : 0;
    if (u < n) return u;
  }
}

export const fault = (/** @type {string} */ field, /** @type {import("./errors.js").Said} */ ...said) => new DocumentRejected("weights", field, ...said);

/** Throw unless the parameters, in the order of `highs`, are whole numbers from 0 (or their entry in `lows`) to their entry in `highs`. */
export function requireWhole(/** @type {any} */ params, /** @type {string} */ at, /** @type {Record<string, number>} */ highs, /** @type {Record<string, number>} */ lows = {}) {
  for (const [name, high] of Object.entries(highs)) integer(lows[name], high, "weights")(params[name], `${at}.${name}`);
}

export const isTable = (/** @type {any} */ value) =>
  Array.isArray(value) && value.every((row) => Array.isArray(row) && row.length <= MAX_REPORTS);

export const LOWS = { bits: 4, answers: 2, size: 1 };

/** Q(y|x) = weights[x][y] / 2^bits. @returns {Dense} */
export function dense(/** @type {any} */ { bits, weights }, /** @type {string} */ field, at = `${field}.weights`) {
  if (!isTable(weights)) throw fault(at, "no_table");
  requireWhole({ bits }, field, { bits: 48 }, LOWS);
  const width = weights[0]?.length;
  if (weights.length < 2 || weights.length > MAX_ANSWERS) throw fault(at, "rows", MAX_ANSWERS);
  if (!width) throw fault(at, "columns", MAX_REPORTS);
  weights.forEach((/** @type {number[]} */ row, /** @type {number} */ x) => {
    if (row.length !== width) throw fault(`${at}[${x}]`, "row_width", width);
    if (!row.every((w) => Number.isSafeInteger(w) && w >= 0)) throw fault(`${at}[${x}]`, "no_weights");
    // A sum beyond the exact range can only grow, so it cannot return to 2^bits.
    if (row.reduce((a, b) => a + b) !== 2 ** bits) throw fault(`${at}[${x}]`, "row_sum", bits);
  });
  if (!weights[0].every((/** @type {number} */ _, /** @type {number} */ y) => weights.some((/** @type {number[]} */ row) => row[y]))) throw fault(at, "never_sent");
  /** @type {number[][] | undefined} */
  let thresholds;
  return {
    kind: "dense", bits, weights, answers: weights.length, reports: BigInt(width), longest: width - 1, shape: "weights",
    sample(truth, draw) {
      // All rows are computed at once: a cache of single rows would reveal which answers have been given.
      thresholds ??= weights.map((/** @type {number[]} */ row) => {
        let total = 0;
        return row.map((w) => (total += w));
      });
      const u = draw(bits);
      let y = 0;
      for (const threshold of /** @type {number[][]} */ (thresholds)[truth]) y += Number(u >= threshold); // all are compared, so the time does not depend on the draw
      return y;
    },
  };
}

/** Return a kind by its name: the parameters in a document, and their reader, which refuses invalid ones with reason "weights". Unless its part is loaded, a kind is unknown. @returns {Record<string, Kind>} */
export const kinds = () => ({ dense: { params: ["bits", "weights"], read: dense }, ...parts.kinds?.KINDS, ...parts.agreement?.KINDS });
