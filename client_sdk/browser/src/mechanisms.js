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
 *
 * What only some kinds have, and callers ask for; without it the general case holds, that of one joint answer and of listed reports.
 * @typedef {object} Own
 * @property {Dense[]} [factors] the tables of the answer's parts, the last part fastest; a table is its own
 * @property {() => Iterable<bigint[]>} [columns] for every report its weights under all answers; the general case needs no more than these two
 * @property {import("./sets.js").Shape} [sets] the sets of answers that are its reports
 * @property {(notion: string) => [key: string, ...values: any[]] | undefined} [refusal] why a notion cannot be promised
 * @property {number} [work] units for verifying any claim, if its claims cost the same
 * @property {(claim: import("./audit.js").Claim) => number | undefined} [units] units for verifying a claim, and
 * @property {(claim: import("./audit.js").Claim, joint: bigint[][]) => Iterable<import("./ratios.js").Candidate> | undefined} [extremes]
 *   the ratios that it compares; both are undefined for notions of rare.js
 * @property {(sizes: number[], path: string) => number} [counts]
 *   number of counts in the design prior of a block with questions of these sizes; throws if the mechanism is not for them
 * @property {(positions: number[]) => any} [truthOf] the truth as `sample` reads it, from the positions of the choices
 * @property {() => number[]} [questionsDrawn] the smallest and the largest number of questions that a report is about
 *
 * @typedef {Common & Own} Any
 * @typedef {{kind: "dense", weights: number[][], factors: Dense[], columns: () => bigint[][]} & Any} Dense
 * @typedef {Any & Required<Pick<Own, "sets">> & {held: bigint, missed: bigint}} Sets weight of a report whose set holds the true answer, and of any other
 * @typedef {Sets & {kind: "unary", keep: number, flip: number}} Unary
 * @typedef {Sets & {kind: "subset", size: number, inside: number}} Subset
 * @typedef {Any & {kind: "product", factors: Dense[], columns: () => Iterable<bigint[]>}} Product
 * @typedef {Dense | Product} Listed
 * @typedef {Listed | Unary | Subset} Numbered a mechanism whose answers are numbered
 * @typedef {Own & ReturnType<typeof import("./agreement.js").read>} Agreement
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
  /** Kept, because every claim needs them. @type {bigint[][] | undefined} */
  let columns;
  return {
    kind: "dense", bits, weights, answers: weights.length, reports: BigInt(width), longest: width - 1, shape: "weights",
    get factors() {
      return [this];
    },
    columns: () =>
      (columns ??= weights[0].map((/** @type {number} */ _, /** @type {number} */ y) => weights.map((/** @type {number[]} */ row) => BigInt(row[y])))),
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
