// SPDX-License-Identifier: Apache-2.0
/** The exact verifier (acceptance step 9), in whole numbers; its checks have the order of frankly_protocol.audit. */

import { DocumentRejected } from "./errors.js";
import { parts } from "./parts.js";
import { MAX_INT, ceilDiv, compare, rational } from "./rational.js";
import * as ratios from "./ratios.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./mechanisms.js").Mechanism} Mechanism
 * @typedef {import("./mechanisms.js").Listed} Listed
 * @typedef {object} Claim
 * @property {string} notion
 * @property {[number, number] | null} level
 * @property {[number, number] | null} [low_level]
 * @property {[number, number]} [delta]
 * @property {number[][]} [joint]
 * @property {number[]} [attributes]
 * @property {[number, number][][]} [lower_bounds]
 * @property {boolean} [diagonal]
 * @property {number} [sensitive]
 * @property {([number, number] | null)[][]} [levels]
 */

/**
 * Largest number of units for verifying a claim, or a document and the level of its report; the same figures as in
 * frankly_protocol/audit/work.py.
 */
export const MAX_WORK = 1e9;
/** Largest total number of counts in a document's priors (with a row for each secret in each stratum) and of cells in its forms. */
export const MAX_COUNTS = 2 ** 21;
/**
 * What a notion is: the fields of its claims in the order in which they are read; further conditions on them; the units for verifying
 * a claim that follow from sizes, and those that take time to count; and the ratios to compare with its bounds. In this module the
 * last three are those of listed reports, and kinds.js has those of sets.
 * @typedef {object} Notion
 * @property {string} fields
 * @property {string[]} [bounds] the fields that bound its ratios, `level` alone unless they are given; a second one bounds P(y)/P(y|s)
 * @property {boolean} [isChance] true if its level bounds a chance, not a ratio
 * @property {boolean} [isOdds] true if its level bounds P(y|s) / P(y|t), not P(y|s) / P(y)
 * @property {(claim: any, answers: number) => void} [requireSound]
 * @property {(m: any, claim: any) => number} units
 * @property {(m: any) => number} [counted]
 * @property {(m: any, claim: any, joint: bigint[][]) => Iterable<ratios.Candidate>} candidates
 */

/** @type {Notion} */
const AVERAGES = {
  fields: "level prior",
  units: (/** @type {Listed} */ m, /** @type {Required<Claim>} */ { joint }) => workOfAverages(m, joint.length, masses(joint)),
  candidates: (/** @type {Listed} */ m, _claim, joint) => ratios.averageRatios(m.columns(), joint),
};
/** The notions that this module verifies; rare.js has the others. @type {Record<string, Notion>} */
export const NOTIONS = {
  ldp: {
    fields: "level",
    units: (/** @type {Listed} */ { factors }) => factors.reduce((all, f) => all + Number(f.reports) * (80 * f.answers + 1500), 0),
    candidates: (/** @type {Listed} */ { factors }) => ratios.answerRatios(factors),
  },
  "secret-ldp": { ...AVERAGES, isOdds: true, candidates: (/** @type {Listed} */ m, _claim, joint) => ratios.secretRatios(m.columns(), joint) },
  lip: AVERAGES,
  alip: { ...AVERAGES, fields: "level low_level prior", bounds: ["level", "low_level"] },
};

/** Return what the notion of a claim is. @returns {Notion} */
export const notionOf = (/** @type {Claim} */ { notion }) => NOTIONS[notion] ?? parts.rare.NOTIONS[notion];

/** Return the error for a claim that is not kept or not well-formed. */
const refuse = (/** @type {Claim} */ { notion }, /** @type {string} */ field, /** @type {string} */ key, /** @type {any[]} */ ...values) =>
  new DocumentRejected("privacy", field, key, notion, ...values);

/** Throw unless the claim is well-formed for this number of answers; the schema has already checked its form. */
export function requireSound(/** @type {Mechanism} */ { answers }, /** @type {Claim} */ claim) {
  const { level, low_level, joint } = claim, { isChance = false, requireSound: requireFields } = notionOf(claim);
  for (const [field, ratio] of /** @type {[string, any][]} */ (Object.entries({ level, low_level })))
    if (ratio && ratio[0] !== ratio[1] && isChance !== ratio[0] < ratio[1]) throw refuse(claim, field, isChance ? "no_bound" : "level_below_1");
  if (joint) {
    if (joint.length < 2) throw refuse(claim, "prior", "one_secret");
    for (const [s, row] of joint.entries()) {
      if (row.length !== answers) throw refuse(claim, `prior.tables[0][${s}]`, "prior_columns", answers);
      if (!row.some(Boolean)) throw refuse(claim, `prior.tables[0][${s}]`, "no_mass");
    }
  }
  requireFields?.(claim, answers);
}

/** Return the time of arithmetic on a column's weights, in quarters of the time on one word. */
export const sizeOf = (/** @type {Listed} */ m) => 3 + Math.ceil((m.bits * m.factors.length) / 64);

/** Return the units for listing the columns. */
export const listing = (/** @type {Listed} */ m) => Number(m.reports) * m.answers * 40 * (m.factors.length > 1 ? sizeOf(m) : 1);

/** Return the number of entries that are not zero. */
export const masses = (/** @type {number[][]} */ joint) => joint.reduce((all, row) => all + row.filter(Boolean).length, 0);

/** Return the units for averages over secrets that have `counts` masses, in several conditions, for which `margins` are summed up. */
export const workOfAverages = (/** @type {Listed} */ m, /** @type {number} */ secrets, /** @type {number} */ counts, cells = 1, margins = 0) =>
  listing(m) + Number(m.reports) * (secrets * m.answers * 8 + (counts * 20 + margins + cells * (secrets * 190 + 800)) * sizeOf(m));

/** Return the units for verifying a claim that follow from sizes; for (ε, δ) of a product, the units for counting its likelihoods. */
const workOfSizes = (/** @type {Mechanism} */ m, /** @type {Claim} */ claim) =>
  m.work ?? 1e5 + (claim.joint ?? []).length * m.answers * 100 + (m.units?.(claim) ?? notionOf(claim).units(m, claim));

/** Return the units for verifying claims and for computing the level of a report on these blocks; a result above `most` need not be exact. */
export function work(
  /** @type {{mechanism: Mechanism, claim: Claim}[]} */ pairs, /** @type {{mechanism: Mechanism, promises: {secret: string | null}[]}[]} */ blocks = [], most = MAX_WORK,
) {
  const total = (/** @type {number[]} */ each) => each.reduce((a, b) => a + b, 0);
  const promises = blocks.flatMap((block) => block.promises), secrets = new Set(promises.map(({ secret }) => secret).filter((name) => name !== null)).size;
  const level = secrets * promises.length * 300 + (2 * secrets + blocks.length + 4) * blocks.length * (1000 + 60 * blocks.length);
  const ceilings = total(blocks.map(({ mechanism }) => workOfSizes(mechanism, { notion: "ldp", level: null })));
  const sizes = total(pairs.map(({ mechanism, claim }) => workOfSizes(mechanism, claim))) + ceilings + (blocks.length && level);
  return sizes > most ? sizes : sizes + total(pairs.map(({ mechanism, claim }) => notionOf(claim).counted?.(mechanism) ?? 0));
}

/** Throw unless the claim is well-formed and the mechanism keeps it, in exact arithmetic. */
export function requirePrivate(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  requireSound(m, claim); // checked again, because a claim within a stratum may lack rows of its prior
  const { notion } = claim, { bounds = ["level"] } = notionOf(claim), refusal = m.refusal?.(notion);
  if (refusal) throw refuse(claim, "notion", ...refusal);
  if (work([{ mechanism: m, claim }]) > MAX_WORK) throw new DocumentRejected("work_limit", "notion", "too_long", notion);
  /** The largest ratio of each bound. @type {[bigint, bigint][]} */
  const found = bounds.map(() => [0n, 1n]);
  for (const [n, d, isLow] of candidates(m, claim)) {
    const side = Number(isLow && bounds.length > 1), [p, q] = found[side];
    if (n * q > p * d) found[side] = [n, d];
  }
  /** The side that exceeds its level by the largest factor, with this factor. @type {[Rational | null, Error] | undefined} */
  let worst;
  for (const [side, field] of bounds.entries()) {
    const promised = /** @type {any} */ (claim)[field];
    if (!promised) continue;
    const [n, d] = ratios.lowest(found[side]), [p, q] = promised.map(BigInt);
    if (n * q <= p * d) continue;
    const beyond = d ? rational(n * q, d * p) : null;
    if (!worst || compare(beyond, worst[0]) > 0) worst = [beyond, refuse(claim, field, "not_kept", n, d, p, q)];
  }
  if (worst) throw worst[1];
}

/** @returns {Iterable<ratios.Candidate>} */
function candidates(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const joint = (claim.joint ?? []).map((row) => row.map(BigInt));
  return m.extremes?.(claim, joint) ?? notionOf(claim).candidates(m, claim, joint);
}

/**
 * Return the ceiling as documents state it: rounded up to a ratio of numbers below 2^53; null if it is infinite or
 * larger.
 * @returns {Rational | null}
 */
export function statedCeiling(/** @type {Mechanism} */ m) {
  const [n, d] = ratios.largest(candidates(m, { notion: "ldp", level: null }));
  if (!d || n > MAX_INT * d) return null;
  if (n <= MAX_INT && d <= MAX_INT) return [n, d];
  const bits = BigInt(53 - (n / d).toString(2).length);
  return rational(ceilDiv(n << bits, d), 1n << bits);
}
