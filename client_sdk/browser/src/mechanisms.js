// SPDX-License-Identifier: Apache-2.0
/** The kinds of mechanism, in whole numbers and sampled exactly (docs/protocol.md §§1, 7); agreement.js holds the kind of forms. */

import { DocumentRejected, RandomnessError } from "./errors.js";
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
 * @typedef {Common & {kind: "dense", weights: number[][]}} Dense
 * @typedef {Common & {kind: "unary", keep: number, flip: number}} Unary
 * @typedef {Common & {kind: "subset", size: number, inside: number}} Subset
 * @typedef {Common & {kind: "product", factors: Dense[], parts: (truth: number) => number[]}} Product
 * @typedef {Dense | Unary | Subset | Product} Numbered a mechanism whose answers are numbered
 * @typedef {ReturnType<typeof import("./agreement.js").read>} Agreement
 * @typedef {Numbered | Agreement} Mechanism
 */

export const MAX_REPORTS = 4096;
const MAX_ANSWERS = 256, MAX_SET_ANSWERS = 1000;

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

const fault = (/** @type {string} */ field, /** @type {import("./errors.js").Said} */ ...said) => new DocumentRejected("weights", field, ...said);

/** Throw unless the parameters, in the order of `highs`, are whole numbers from 0 (or their entry in `lows`) to their entry in `highs`. */
function requireWhole(/** @type {any} */ params, /** @type {string} */ at, /** @type {Record<string, number>} */ highs, /** @type {Record<string, number>} */ lows = {}) {
  for (const [name, high] of Object.entries(highs)) integer(lows[name], high, "weights")(params[name], `${at}.${name}`);
}

const isTable = (/** @type {any} */ value) =>
  Array.isArray(value) && value.every((row) => Array.isArray(row) && row.length <= MAX_REPORTS);

const LOWS = { bits: 4, answers: 2, size: 1 };

/** Q(y|x) = weights[x][y] / 2^bits. @returns {Dense} */
function dense(/** @type {any} */ { bits, weights }, /** @type {string} */ field, at = `${field}.weights`) {
  if (!isTable(weights)) throw fault(at, "no_table");
  requireWhole({ bits }, field, { bits: 48 }, LOWS);
  const width = weights[0]?.length;
  if (weights.length < 2 || weights.length > MAX_ANSWERS) throw fault(at, "rows", MAX_ANSWERS);
  if (!width) throw fault(at, "columns", MAX_REPORTS);
  weights.forEach((/** @type {number[]} */ row, /** @type {number} */ x) => {
    if (row.length !== width) throw fault(`${at}[${x}]`, "row_width", width);
    if (!row.every((w) => Number.isSafeInteger(w) && w >= 0)) throw fault(`${at}[${x}]`, "no_weights");
    // A sum that leaves the exact range only grows, so it cannot return to 2^bits.
    if (row.reduce((a, b) => a + b) !== 2 ** bits) throw fault(`${at}[${x}]`, "row_sum", bits);
  });
  if (!weights[0].every((/** @type {number} */ _, /** @type {number} */ y) => weights.some((/** @type {number[]} */ row) => row[y]))) throw fault(at, "never_sent");
  /** @type {number[][] | undefined} */
  let thresholds;
  return {
    kind: "dense", bits, weights, answers: weights.length, reports: BigInt(width), longest: width - 1, shape: "weights",
    sample(truth, draw) {
      // All rows at once: a cache of single rows would reveal which answers have been given.
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

/** Bit x of the report is 1 with chance keep/2^bits for the true answer, flip/2^bits for any other. @returns {Unary} */
function unary(/** @type {any} */ params, /** @type {string} */ field) {
  const { bits, answers, keep, flip } = params;
  requireWhole(params, field, { bits: 48, answers: MAX_SET_ANSWERS, keep: 2 ** bits, flip: 2 ** bits }, LOWS);
  if (keep === flip) throw fault(`${field}.flip`, "keep_is_flip");
  return {
    kind: "unary", bits, answers, keep, flip, reports: 0n, longest: mask([], answers), shape: "answers",
    sample(truth, draw) {
      const draws = Array.from({ length: answers }, () => draw(bits));
      return mask(draws.map((u, x) => [u < flip, u < keep][Number(x === truth)]), answers);
    },
  };
}

/** A uniform set of `size` answers; the truth is in it with chance inside/2^bits. @returns {Subset} */
function subset(/** @type {any} */ params, /** @type {string} */ field) {
  const { bits, answers, size, inside } = params;
  requireWhole(params, field, { bits: 48, answers: MAX_SET_ANSWERS, size: answers - 1, inside: 2 ** bits }, LOWS);
  return {
    kind: "subset", bits, answers, size, inside, reports: 0n, longest: mask([], answers), shape: "answers",
    sample(truth, draw) {
      const isIn = draw(bits) < inside;
      const others = Array.from({ length: answers - 1 }, (_, x) => x + Number(x >= truth));
      for (let i = 0; i < size; i++) {
        const j = i + drawBelow(answers - 1 - i, draw);
        [others[i], others[j]] = [others[j], others[i]];
      }
      const chosen = others.slice(0, size);
      chosen[size - 1] = [chosen[size - 1], truth][Number(isIn)];
      const bitsOf = new Array(answers).fill(false);
      for (const x of chosen) bitsOf[x] = true;
      return mask(bitsOf, answers);
    },
  };
}

/** Independent parts of an answer, each with its own table; the last part is fastest. @returns {Product} */
function productOf(/** @type {any} */ { bits, factors }, /** @type {string} */ field) {
  const at = `${field}.factors`;
  if (!Array.isArray(factors) || !factors.every(isTable)) throw fault(at, "no_table");
  if (factors.length < 2 || factors.length > 16) throw fault(at, "factors");
  const tables = factors.map((weights, j) => dense({ bits, weights }, field, `${at}[${j}].weights`));
  const answers = tables.reduce((all, factor) => all * factor.answers, 1);
  if (answers > MAX_SET_ANSWERS) throw fault(at, "factor_answers", MAX_SET_ANSWERS);
  const parts = (/** @type {number} */ truth) => tables.reduceRight((/** @type {number[]} */ found, factor) => {
    const part = truth % factor.answers;
    truth = (truth - part) / factor.answers;
    return [part, ...found];
  }, []);
  return {
    kind: "product", bits, answers, factors: tables, parts,
    reports: tables.reduce((all, factor) => all * factor.reports, 1n),
    longest: tables.map((factor) => /** @type {number} */ (factor.longest)), shape: "factors",
    sample(truth, draw) {
      const given = parts(truth);
      return tables.map((factor, j) => /** @type {number} */ (factor.sample(given[j], draw)));
    },
  };
}

/** Return a set of answers as ⌈answers/4⌉ hex digits; bit x stands for answer x. */
function mask(/** @type {boolean[]} */ bits, /** @type {number} */ answers) {
  const digits = Array.from({ length: Math.ceil(answers / 4) }, (_, i) =>
    [0, 1, 2, 3].reduce((all, k) => all + Number(bits[4 * i + k] ?? false) * 2 ** k, 0).toString(16));
  return digits.reverse().join("");
}

/** The kinds by name: the parameters in a document, and their reader, which refuses invalid ones with reason "weights". */
export const KINDS = {
  dense: { params: ["bits", "weights"], read: dense },
  unary: { params: ["bits", "answers", "keep", "flip"], read: unary },
  subset: { params: ["bits", "answers", "size", "inside"], read: subset },
  product: { params: ["bits", "factors"], read: productOf },
};
