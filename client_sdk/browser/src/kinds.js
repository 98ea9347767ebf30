// SPDX-License-Identifier: Apache-2.0
/** The kinds of mechanism that few surveys use: sets of answers, and products of tables; parts.js loads this module if a document needs it. */

import { LOWS, dense, drawBelow, fault, isTable, requireWhole } from "./mechanisms.js";
import { answerRatios, columnsOf, largest } from "./ratios.js";
import * as sets from "./sets.js";

/** @typedef {import("./mechanisms.js").RandomBits} RandomBits */
/** @typedef {import("./mechanisms.js").Unary} Unary */
/** @typedef {import("./mechanisms.js").Subset} Subset */
/** @typedef {import("./mechanisms.js").Product} Product */
/** @typedef {import("./audit.js").Claim} Claim */

const MAX_SET_ANSWERS = 1000;

/** Bit x of the report is 1 with chance keep/2^bits for the true answer, flip/2^bits for any other. @returns {Unary} */
function unary(/** @type {any} */ params, /** @type {string} */ field) {
  const { bits, answers, keep, flip } = params;
  requireWhole(params, field, { bits: 48, answers: MAX_SET_ANSWERS, keep: 2 ** bits, flip: 2 ** bits }, LOWS);
  if (keep === flip) throw fault(`${field}.flip`, "keep_is_flip");
  return {
    kind: "unary", bits, answers, keep, flip, reports: 0n, longest: mask([], answers), shape: "answers",
    units: (claim) => unitsOf(claim, answers, false),
    extremes(notion, joint) {
      return extremesOf(this, notion, joint);
    },
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
    units: (claim) => unitsOf(claim, answers, true),
    extremes(notion, joint) {
      return extremesOf(this, notion, joint);
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
    columns: () => productColumns(tables, [1n]),
    worst: () => {
      const worst = tables.map((factor) => largest(answerRatios(factor))); // the worst report is worst in every factor
      return [worst.reduce((all, [n]) => all * n, 1n), worst.reduce((all, [, d]) => all * d, 1n), false];
    },
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

/** Return the units for verifying a claim of a common notion, or SRLIP or a bound on a posterior, on a kind of sets. */
function unitsOf(/** @type {Claim} */ { notion, joint = [], attributes = [] }, /** @type {number} */ a, /** @type {boolean} */ isSubset) {
  if (notion === "ldp") return 0;
  if (notion === "dpv") return 800 * a * sets.searchSteps(1);
  const secrets = joint.length, searches = secrets * (secrets - 1), cells = attributes.reduce((all, size) => all * (size + 1), 1);
  if (notion === "secret-ldp") return 800 * a * sets.searchSteps(searches) + 8000 * searches;
  const others = isSubset ? a * cells * 120 : 0;
  return 2 * (51200 * a + secrets * (2 * (800 * a * 2 ** attributes.length + others) + 8000 * cells));
}

/** @returns {Iterable<import("./ratios.js").Candidate>} */
function extremesOf(/** @type {Unary | Subset} */ m, /** @type {string} */ notion, /** @type {bigint[][]} */ joint) {
  const shape = sets.shapeOf(m);
  if (notion === "ldp") return [[shape.high, shape.low, false]];
  return (notion === "secret-ldp" ? sets.secretRatios : sets.averageRatios)(shape, joint);
}

/** Yield the columns of a product, the last part fastest. @returns {Generator<bigint[]>} */
function* productColumns(/** @type {import("./mechanisms.js").Dense[]} */ [first, ...others], /** @type {bigint[]} */ head) {
  if (!first) return yield head;
  for (const part of columnsOf(first)) yield* productColumns(others, head.flatMap((w) => part.map((v) => w * v)));
}

/** Kinds of this module by name. */
export const KINDS = {
  unary: { params: ["bits", "answers", "keep", "flip"], read: unary },
  subset: { params: ["bits", "answers", "size", "inside"], read: subset },
  product: { params: ["bits", "factors"], read: productOf },
};
