// SPDX-License-Identifier: Apache-2.0
/** The exact verifier (acceptance step 9), in whole numbers; its checks have the order of frankly_protocol.audit. */

import { DocumentRejected } from "./errors.js";
import { MAX_REPORTS } from "./mechanisms.js";
import { parts } from "./parts.js";
import { MAX_INT, ceilDiv, compare, rational } from "./rational.js";
import * as ratios from "./ratios.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./mechanisms.js").Mechanism} Mechanism
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
/** The notions verified in this module; rare.js verifies the others. */
const COMMON = ["ldp", "secret-ldp", "lip", "alip"];
const isRare = (/** @type {Claim} */ { notion }) => !COMMON.includes(notion);
/** Return the error for a claim that is not kept or not well-formed. */
const refuse = (/** @type {Claim} */ { notion }, /** @type {string} */ field, /** @type {string} */ key, /** @type {any[]} */ ...values) =>
  new DocumentRejected("privacy", field, key, notion, ...values);

/** Throw unless the claim is well-formed for this number of answers; the schema has already checked its form. */
export function requireSound(/** @type {Mechanism} */ { answers }, /** @type {Claim} */ claim) {
  const { notion, level, low_level, joint } = claim;
  for (const [field, ratio] of /** @type {[string, any][]} */ (Object.entries({ level, low_level })))
    if (ratio && ratio[0] !== ratio[1] && (notion === "dpv") !== ratio[0] < ratio[1]) throw refuse(claim, field, notion === "dpv" ? "no_bound" : "level_below_1");
  if (joint) {
    if (joint.length < 2) throw refuse(claim, "prior", "one_secret");
    for (const [s, row] of joint.entries()) {
      if (row.length !== answers) throw refuse(claim, `prior.tables[0][${s}]`, "prior_columns", answers);
      if (!row.some(Boolean)) throw refuse(claim, `prior.tables[0][${s}]`, "no_mass");
    }
  }
  if (isRare(claim)) parts.rare.requireSound(claim, answers);
}

const factorsOf = (/** @type {any} */ m) => /** @type {import("./mechanisms.js").Dense[]} */ (m.factors ?? [m]);

/** Return the time of arithmetic on a column's weights, in quarters of the time on one word. */
export const sizeOf = (/** @type {Mechanism} */ m) => 3 + Math.ceil((m.bits * factorsOf(m).length) / 64);

/** Return the units for listing the columns. */
export const listing = (/** @type {Mechanism} */ m) => Number(m.reports) * m.answers * 40 * (m.kind === "product" ? sizeOf(m) : 1);

/** Return the units for verifying a claim that follow from sizes; for (ε, δ) of a product, the units for counting its likelihoods. */
function workOfSizes(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  if (m.kind === "agreement") return m.units();
  const { notion, joint = [], attributes = [] } = claim, a = m.answers;
  const tables = 1e5 + joint.length * a * 100;
  if (["dp", "rldp", "metric-ldp"].includes(notion)) return tables + parts.rare.workOfSizes(m, claim);
  if (m.units) return tables + m.units(claim);
  if (notion === "ldp") return tables + factorsOf(m).reduce((all, f) => all + Number(f.reports) * (80 * f.answers + 1500), 0);
  const secrets = notion === "dpv" ? 2 : joint.length, cells = attributes.reduce((all, size) => all * (size + 1), 1);
  const size = sizeOf(m), counts = notion === "dpv" ? 2 * a : joint.reduce((all, row) => all + row.filter(Boolean).length, 0);
  const margins = notion === "srlip" ? secrets * cells * 40 * size : 0;
  const each = secrets * a * 8 + counts * 20 * size + margins + cells * (secrets * 190 + 800) * size;
  return tables + listing(m) + Number(m.reports) * each;
}

/** Return the units for convolving the likelihoods of a product's factors, for (ε, δ). */
const workOfLikelihoods = (/** @type {Mechanism} */ m, /** @type {Claim} */ { notion }) => (m.kind === "product" && notion === "dp" ? parts.rare.workOfLikelihoods(m) : 0);

/** Return the units for verifying claims and for computing the level of a report on these blocks; a result above `most` need not be exact. */
export function work(
  /** @type {{mechanism: Mechanism, claim: Claim}[]} */ pairs, /** @type {{mechanism: Mechanism, promises: {secret: string | null}[]}[]} */ blocks = [], most = MAX_WORK,
) {
  const total = (/** @type {number[]} */ each) => each.reduce((a, b) => a + b, 0);
  const promises = blocks.flatMap((block) => block.promises), secrets = new Set(promises.map(({ secret }) => secret).filter((name) => name !== null)).size;
  const level = secrets * promises.length * 300 + (2 * secrets + blocks.length + 4) * blocks.length * (1000 + 60 * blocks.length);
  const ceilings = total(blocks.map(({ mechanism }) => workOfSizes(mechanism, { notion: "ldp", level: null })));
  const sizes = total(pairs.map(({ mechanism, claim }) => workOfSizes(mechanism, claim))) + ceilings + (blocks.length && level);
  return sizes > most ? sizes : sizes + total(pairs.map(({ mechanism, claim }) => workOfLikelihoods(mechanism, claim)));
}

/** Throw unless the claim is well-formed and the mechanism keeps it, in exact arithmetic. */
export function requirePrivate(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  requireSound(m, claim); // checked again, because a claim within a stratum may lack rows of its prior
  const { notion, level, low_level } = claim, isDp = notion === "dp";
  if (m.kind === "agreement" && notion !== "ldp") throw refuse(claim, "notion", "form_ldp");
  if (m.kind === "product" && notion !== "ldp" && !isDp && m.reports > MAX_REPORTS) throw refuse(claim, "notion", "large_product", MAX_REPORTS);
  if (work([{ mechanism: m, claim }]) > MAX_WORK) throw new DocumentRejected("work_limit", "notion", "too_long", notion);
  const isTwoSided = notion === "alip", least = isDp || notion === "dpv" ? 0n : 1n;
  /** The largest ratio; for two sides also the largest P(y)/P(y|s). @type {[bigint, bigint][]} */
  const found = [[least, 1n], [least, 1n]];
  for (const [n, d, isLow] of candidates(m, claim)) {
    const side = Number(isTwoSided && isLow), [p, q] = found[side];
    if (n * q > p * d) found[side] = [n, d];
  }
  /** The side that exceeds its level by the largest factor, with this factor. @type {[Rational | null, Error] | undefined} */
  let worst;
  for (const [field, promised] of Object.entries(isDp ? { delta: claim.delta } : isTwoSided ? { level, low_level } : { level })) {
    if (!promised) continue;
    const [n, d] = ratios.lowest(found[Number(field === "low_level")]), [p, q] = promised.map(BigInt);
    if (n * q <= p * d) continue;
    const beyond = d ? rational(n * q, d * p) : null;
    if (!worst || compare(beyond, worst[0]) > 0) worst = [beyond, refuse(claim, field, "not_kept", n, d, p, q)];
  }
  if (worst) throw worst[1];
}

/** @returns {Iterable<ratios.Candidate>} */
function candidates(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const { notion } = claim, joint = (claim.joint ?? []).map((row) => row.map(BigInt));
  if (m.kind === "agreement") return m.extremes();
  if (isRare(claim)) return parts.rare.candidates(m, claim, joint);
  if (m.extremes) return m.extremes(notion, joint);
  if (notion === "ldp") return ratios.answerRatios(/** @type {ratios.Listed} */ (m));
  return (notion === "secret-ldp" ? ratios.secretRatios : ratios.averageRatios)(ratios.columnsOf(/** @type {ratios.Listed} */ (m)), joint);
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
