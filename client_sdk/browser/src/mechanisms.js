// SPDX-License-Identifier: Apache-2.0
/** The four kinds of mechanism: whole numbers, sampled exactly (docs/protocol.md §§1, 7). */

import { DocumentRejected, RandomnessError } from "./errors.js";
import { rational } from "./rational.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {(bits: number) => number} RandomBits so many random bits, 1 to 48, as a whole number
 * @typedef {number | string | number[]} SymbolJson a symbol as it travels
 * @typedef {object} Common
 * @property {number} bits
 * @property {number} answers
 * @property {bigint} reports how many symbols can be sent; 0 for kinds where nobody asks
 * @property {boolean} unchanged whether every report has one possible truth only
 * @property {(truth: number, draw: RandomBits) => SymbolJson} sample
 * @property {SymbolJson} longest a symbol's JSON as long as any
 * @property {() => Rational} guess chance that the best guess from a report is right, answers being equally likely
 * @typedef {Common & {kind: "dense", weights: number[][]}} Dense
 * @typedef {Common & {kind: "unary", keep: number, flip: number}} Unary
 * @typedef {Common & {kind: "subset", size: number, inside: number}} Subset
 * @typedef {Common & {kind: "product", factors: Dense[], parts: (truth: number) => number[]}} Product
 * @typedef {Dense | Unary | Subset | Product} Mechanism
 */

export const MAX_REPORTS = 4096;
const MAX_ANSWERS = 256, MAX_SET_ANSWERS = 1000;

/** Random bits of the operating system. There is no fallback. @type {RandomBits} */
export function systemBits(bits) {
  const words = new Uint32Array(2);
  try {
    crypto.getRandomValues(words);
  } catch {
    throw new RandomnessError();
  }
  return Math.floor((words[0] * 2 ** 16 + (words[1] & 0xffff)) / 2 ** (48 - bits)); // below 2^48: exact
}

/** Uniform on 0 … n − 1, exactly: draws that do not fit are thrown away, whatever the truth. */
function drawBelow(/** @type {number} */ n, /** @type {RandomBits} */ draw) {
  const bits = n > 1 ? (n - 1).toString(2).length : 0;
  for (;;) {
    const u = bits ? draw(bits) : 0;
    if (u < n) return u;
  }
}

const fault = (/** @type {string} */ detail, /** @type {string} */ field) => new DocumentRejected("weights", detail, field);

function whole(/** @type {any} */ value, /** @type {number} */ low, /** @type {number} */ high, /** @type {string} */ field) {
  if (!Number.isSafeInteger(value) || value < low || value > high) throw fault(`expected a whole number from ${low} to ${high}`, field);
}

const isTable = (/** @type {any} */ value) =>
  Array.isArray(value) && value.every((row) => Array.isArray(row) && row.length <= MAX_REPORTS);

/** Q(y|x) = weights[x][y] / 2^bits. @returns {Dense} */
export function dense(/** @type {any} */ { bits, weights }, /** @type {string} */ field, at = `${field}.weights`) {
  if (!isTable(weights)) throw fault("expected a table of whole numbers", at);
  whole(bits, 4, 48, `${field}.bits`);
  const D = 2 ** bits, width = weights[0]?.length;
  if (weights.length < 2 || weights.length > MAX_ANSWERS) throw fault(`a mechanism has 2 to ${MAX_ANSWERS} rows`, at);
  if (!width) throw fault(`a mechanism has 1 to ${MAX_REPORTS} columns`, at);
  weights.forEach((/** @type {number[]} */ row, /** @type {number} */ x) => {
    if (row.length !== width) throw fault(`every row needs ${width} columns`, `${at}[${x}]`);
    if (!row.every((w) => Number.isSafeInteger(w) && w >= 0)) throw fault("weights are whole numbers, zero or more", `${at}[${x}]`);
    // Sums that leave the exact range can only grow: they never come back to 2^bits.
    if (row.reduce((a, b) => a + b) !== D) throw fault(`the row does not sum to 2^${bits}`, `${at}[${x}]`);
  });
  const columns = () => weights[0].map((/** @type {number} */ _, /** @type {number} */ y) => weights.map((/** @type {number[]} */ row) => row[y]));
  if (!columns().every((/** @type {number[]} */ column) => column.some(Boolean))) throw fault("a report that is never sent must not have a column", at);
  /** @type {number[][] | undefined} */
  let thresholds;
  return {
    kind: "dense", bits, weights, answers: weights.length, reports: BigInt(width), longest: width - 1,
    get unchanged() {
      return columns().every((/** @type {number[]} */ column) => column.filter(Boolean).length === 1);
    },
    guess: () => rational(columns().reduce((/** @type {bigint} */ all, /** @type {number[]} */ column) => all + BigInt(Math.max(...column)), 0n), BigInt(D) * BigInt(weights.length)),
    sample(truth, draw) {
      // Of every row at once: a row of its own would be a trace of who was asked.
      thresholds ??= weights.map((/** @type {number[]} */ row) => {
        let total = 0;
        return row.map((w) => (total += w));
      });
      const u = draw(bits);
      let y = 0;
      for (const threshold of /** @type {number[][]} */ (thresholds)[truth]) y += Number(u >= threshold); // all compared, none skipped
      return y;
    },
  };
}

/** Bit x of the report is 1 with chance keep/2^bits for the true answer, flip/2^bits for any other. @returns {Unary} */
function unary(/** @type {any} */ { bits, answers, keep, flip }, /** @type {string} */ field) {
  whole(bits, 4, 48, `${field}.bits`);
  whole(answers, 2, MAX_SET_ANSWERS, `${field}.answers`);
  whole(keep, 0, 2 ** bits, `${field}.keep`);
  whole(flip, 0, 2 ** bits, `${field}.flip`);
  if (keep === flip) throw fault("keep and flip must differ: otherwise the report says nothing", `${field}.flip`);
  return {
    kind: "unary", bits, answers, keep, flip, reports: 0n, longest: mask([], answers),
    unchanged: Math.min(keep, flip) === 0 && Math.max(keep, flip) === 2 ** bits,
    guess() {
      const D = 1n << BigInt(bits), a = BigInt(answers);
      const [k, f] = keep > flip ? [BigInt(keep), BigInt(flip)] : [D - BigInt(keep), D - BigInt(flip)];
      // Σ over sets that are not empty, over the common denominator f·a·D^a (f left out if it is 0), and the empty set.
      const some = f ? k * (D ** a - (D - f) ** a) : k * a * D ** (a - 1n);
      const none = (D - k) * (D - f) ** (a - 1n);
      return rational(some + none * (f || 1n), (f || 1n) * a * D ** a);
    },
    sample(truth, draw) {
      const draws = Array.from({ length: answers }, () => draw(bits));
      return mask(draws.map((u, x) => [u < flip, u < keep][Number(x === truth)]), answers);
    },
  };
}

/** With chance inside/2^bits a uniform set of `size` answers with the truth in it, otherwise one without. @returns {Subset} */
function subset(/** @type {any} */ { bits, answers, size, inside }, /** @type {string} */ field) {
  whole(bits, 4, 48, `${field}.bits`);
  whole(answers, 2, MAX_SET_ANSWERS, `${field}.answers`);
  whole(size, 1, answers - 1, `${field}.size`);
  whole(inside, 0, 2 ** bits, `${field}.inside`);
  return {
    kind: "subset", bits, answers, size, inside, reports: 0n, longest: mask([], answers),
    unchanged: (size === 1 && inside === 2 ** bits) || (size === answers - 1 && inside === 0),
    guess() {
      const best = (/** @type {number} */ n, /** @type {number} */ d) => rational(n, BigInt(d) << BigInt(bits));
      const [p, q] = [best(inside, size), best(2 ** bits - inside, answers - size)];
      return p[0] * q[1] > q[0] * p[1] ? p : q;
    },
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

/** The parts of an answer, each through a table of its own; the last part is counted fastest. @returns {Product} */
function productOf(/** @type {any} */ { bits, factors }, /** @type {string} */ field) {
  const at = `${field}.factors`;
  if (!Array.isArray(factors) || !factors.every(isTable)) throw fault("expected a table of whole numbers", at);
  if (factors.length < 2 || factors.length > 16) throw fault("a product has 2 to 16 factors", at);
  const tables = factors.map((weights, j) => dense({ bits, weights }, field, `${at}[${j}].weights`));
  const answers = tables.reduce((all, factor) => all * factor.answers, 1);
  if (answers > MAX_SET_ANSWERS) throw fault(`the factors' answers multiply to more than ${MAX_SET_ANSWERS}`, at);
  const parts = (/** @type {number} */ truth) => {
    const found = tables.map(() => 0);
    for (let j = tables.length - 1; j >= 0; j--) {
      found[j] = truth % tables[j].answers;
      truth = Math.floor(truth / tables[j].answers);
    }
    return found;
  };
  return {
    kind: "product", bits, answers, factors: tables, parts,
    reports: tables.reduce((all, factor) => all * factor.reports, 1n),
    longest: tables.map((factor) => /** @type {number} */ (factor.longest)),
    get unchanged() {
      return tables.every((factor) => factor.unchanged);
    },
    guess: () => tables.map((factor) => factor.guess()).reduce((a, b) => rational(a[0] * b[0], a[1] * b[1])),
    sample(truth, draw) {
      const given = parts(truth);
      return tables.map((factor, j) => /** @type {number} */ (factor.sample(given[j], draw)));
    },
  };
}

/** A set of answers as hex, ⌈answers/4⌉ digits: bit x stands for answer x. */
function mask(/** @type {boolean[]} */ bits, /** @type {number} */ answers) {
  const digits = Array.from({ length: Math.ceil(answers / 4) }, (_, i) =>
    [0, 1, 2, 3].reduce((all, k) => all + Number(bits[4 * i + k] ?? false) * 2 ** k, 0).toString(16));
  return digits.reverse().join("");
}

/** The kinds by name: their parameters in a document, and how they are read (reason "weights" if they are none). */
export const KINDS = {
  dense: { params: ["bits", "weights"], read: dense },
  unary: { params: ["bits", "answers", "keep", "flip"], read: unary },
  subset: { params: ["bits", "answers", "size", "inside"], read: subset },
  product: { params: ["bits", "factors"], read: productOf },
};
