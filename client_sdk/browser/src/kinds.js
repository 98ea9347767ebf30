// SPDX-License-Identifier: Apache-2.0
/** The kinds of mechanism that few surveys use: sets of answers, and products of tables; parts.js loads this module if a document needs it. */

import { LOWS, MAX_REPORTS, dense, drawBelow, fault, isTable, requireWhole } from "./mechanisms.js";
import * as sets from "./sets.js";

/** @typedef {import("./mechanisms.js").RandomBits} RandomBits */
/** @typedef {import("./mechanisms.js").Unary} Unary */
/** @typedef {import("./mechanisms.js").Subset} Subset */
/** @typedef {import("./mechanisms.js").Product} Product */
/** @typedef {import("./audit.js").Claim} Claim */
/** @typedef {import("./sets.js").Shape} Shape */
/** @typedef {import("./ratios.js").Candidate} Candidate */

const MAX_SET_ANSWERS = 1000;

/**
 * Units and ratios of sets for the notions of audit.js; rare.js has those for the others.
 * @type {Record<string, {units: (shape: Shape, claim: Claim) => number, candidates: (shape: Shape, joint: bigint[][]) => Iterable<Candidate>}>}
 */
const NOTIONS = {
  ldp: { units: () => 0, candidates: ({ high, low }) => [[high, low, false]] },
  "secret-ldp": {
    units({ answers }, { joint = [] }) {
      const searches = joint.length * (joint.length - 1);
      return 800 * answers * sets.searchSteps(searches) + 8000 * searches;
    },
    candidates: sets.secretRatios,
  },
  lip: { units: sets.workOfAverages, candidates: sets.averageRatios },
  alip: { units: sets.workOfAverages, candidates: sets.averageRatios },
};

/**
 * Return what the kinds have in common whose reports are sets: `held` is the weight of a set that holds the true answer, `missed` that
 * of any other, both over `scale`; see `shapeOf`.
 */
function ofSets(
  /** @type {number} */ answers, /** @type {bigint} */ held, /** @type {bigint} */ missed,
  /** @type {bigint} */ scale, /** @type {number | null} */ size, spare = 0,
) {
  const shape = sets.shapeOf(answers, held, missed, scale, size, spare);
  return {
    answers, held, missed, sets: shape, reports: 0n, longest: mask([], answers), shape: "answers",
    units: (/** @type {Claim} */ claim) => NOTIONS[claim.notion]?.units(shape, claim),
    extremes: (/** @type {Claim} */ claim, /** @type {bigint[][]} */ joint) => NOTIONS[claim.notion]?.candidates(shape, joint),
  };
}

/** Bit x of the report is 1 with chance keep/2^bits for the true answer, flip/2^bits for any other. @returns {Unary} */
function unary(/** @type {any} */ params, /** @type {string} */ field) {
  const { bits, answers, keep, flip } = params;
  requireWhole(params, field, { bits: 48, answers: MAX_SET_ANSWERS, keep: 2 ** bits, flip: 2 ** bits }, LOWS);
  if (keep === flip) throw fault(`${field}.flip`, "keep_is_flip");
  const D = 1n << BigInt(bits), k = BigInt(keep), f = BigInt(flip);
  return {
    kind: "unary", bits, keep, flip, ...ofSets(answers, k * (D - f), (D - k) * f, D * D, f === 0n ? 1 : f === D ? answers - 1 : null),
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
  const D = 1n << BigInt(bits), i = BigInt(inside), d = BigInt(size);
  return {
    kind: "subset", bits, size, inside, ...ofSets(answers, i * (BigInt(answers) - d), (D - i) * d, D * BigInt(answers - 1), size, 120),
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
  const answers = tables.reduce((all, factor) => all * factor.answers, 1), reports = tables.reduce((all, factor) => all * factor.reports, 1n);
  if (answers > MAX_SET_ANSWERS) throw fault(at, "factor_answers", MAX_SET_ANSWERS);
  const parts = (/** @type {number} */ truth) => tables.reduceRight((/** @type {number[]} */ found, factor) => {
    const part = truth % factor.answers;
    truth = (truth - part) / factor.answers;
    return [part, ...found];
  }, []);
  return {
    kind: "product", bits, answers, factors: tables,
    columns: () => productColumns(tables, [1n]), reports,
    // Every other notion averages over secrets, so the reports must be listed one by one.
    refusal: (notion) => (reports > MAX_REPORTS && !["ldp", "dp"].includes(notion) ? ["large_product", MAX_REPORTS] : undefined),
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

/** Yield the columns of a product, the last part fastest. @returns {Generator<bigint[]>} */
function* productColumns(/** @type {import("./mechanisms.js").Dense[]} */ [first, ...others], /** @type {bigint[]} */ head) {
  if (!first) return yield head;
  for (const part of first.columns()) yield* productColumns(others, head.flatMap((w) => part.map((v) => w * v)));
}

/** Kinds of this module by name. */
export const KINDS = {
  unary: { params: ["bits", "answers", "keep", "flip"], read: unary },
  subset: { params: ["bits", "answers", "size", "inside"], read: subset },
  product: { params: ["bits", "factors"], read: productOf },
};
