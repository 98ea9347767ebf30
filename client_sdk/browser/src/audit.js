// SPDX-License-Identifier: Apache-2.0
/** The exact verifier (step 9): whole numbers only, in the order of frankly_protocol.audit. */

import { DocumentRejected, part } from "./errors.js";
import { MAX_REPORTS } from "./mechanisms.js";
import { MAX_INT, ceilDiv, compare, rational } from "./rational.js";
import * as ratios from "./ratios.js";
import * as sets from "./sets.js";

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
 */

/** Multiplications that verifying one claim, and one document, may take. */
export const MAX_WORK = 1e8;
/** The notions verified here; rare.js knows the others. */
const COMMON = ["ldp", "secret-ldp", "lip", "alip"];
const isRare = (/** @type {Claim} */ { notion }) => !COMMON.includes(notion);
/** @type {typeof import("./rare.js")} */
let rare;

/** The error for a claim that does not hold or says nothing definite. */
const refuse = (/** @type {Claim} */ { notion }, /** @type {string} */ field, /** @type {string} */ key, /** @type {any[]} */ ...values) =>
  new DocumentRejected("privacy", field, key, notion, ...values);

/** Load what verifying these claims takes beyond this module; without it they cannot pass. */
export async function prepare(/** @type {Claim[]} */ claims) {
  if (claims.some(isRare)) rare = await part(() => import("./rare.js"));
}

/** Refuse a claim that says nothing definite about so many answers; its form has been read by the schema. */
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
  if (isRare(claim)) rare.requireSound(claim, answers);
}

const isSet = (/** @type {Mechanism} */ { kind }) => kind === "unary" || kind === "subset";

/** About how many multiplications verifying a sound claim takes. @returns {number} */
export function work(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const { notion, joint = [] } = claim, secrets = joint.length;
  if (isRare(claim)) return rare.work(m, claim, isSet(m));
  if (isSet(m)) return notion === "ldp" ? m.answers : 8 * m.answers * (notion === "secret-ldp" ? secrets ** 2 : 2 * secrets);
  if (m.kind === "product" && notion === "ldp") return m.factors.reduce((all, f) => all + f.answers * Number(f.reports), 0);
  return Number(m.reports) * m.answers * (1 + (secrets || 1));
}

/** Raise unless the claim is sound and the mechanism keeps it, in exact arithmetic. */
export function requirePrivate(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  requireSound(m, claim); // what is left of a claim within a stratum may say nothing
  const { notion, level, low_level } = claim, isDp = notion === "dp";
  if (m.kind === "product" && notion !== "ldp" && !isDp && m.reports > MAX_REPORTS) throw refuse(claim, "notion", "large_product", MAX_REPORTS);
  if (work(m, claim) > MAX_WORK) throw refuse(claim, "notion", "too_long");
  const found = [...candidates(m, claim)], isTwoSided = notion === "alip";
  /** The side that goes furthest beyond its level, and how far. @type {[Rational | null, Error] | undefined} */
  let worst;
  for (const [field, promised] of Object.entries(isDp ? { delta: claim.delta } : isTwoSided ? { level, low_level } : { level })) {
    if (!promised) continue;
    const own = isTwoSided ? found.filter(([, , isLow]) => isLow === (field === "low_level")) : found;
    const [n, d] = ratios.largest(own, isDp || notion === "dpv" ? 0n : 1n), [p, q] = promised.map(BigInt);
    if (n * q <= p * d) continue;
    const beyond = d ? rational(n * q, d * p) : null;
    if (!worst || compare(beyond, worst[0]) > 0) worst = [beyond, refuse(claim, field, "not_kept", n, d, p, q)];
  }
  if (worst) throw worst[1];
}

/** @returns {Iterable<ratios.Candidate>} */
function candidates(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const { notion } = claim, joint = (claim.joint ?? []).map((row) => row.map(BigInt));
  if (isRare(claim)) return rare.candidates(m, claim, joint);
  if (m.kind === "unary" || m.kind === "subset") {
    const shape = sets.shapeOf(m);
    if (notion === "ldp") return [[shape.high, shape.low, false]];
    return (notion === "secret-ldp" ? sets.secretRatios : sets.averageRatios)(shape, joint);
  }
  if (notion === "ldp") return ratios.answerRatios(m);
  return (notion === "secret-ldp" ? ratios.secretRatios : ratios.averageRatios)(ratios.columnsOf(m), joint);
}

/** The leakage under every prior as documents state it: rounded up to numbers below 2^53; null if it protects nothing. @returns {Rational | null} */
export function statedCeiling(/** @type {Mechanism} */ m) {
  const [n, d] = ratios.largest(candidates(m, { notion: "ldp", level: null }));
  if (!d || n > MAX_INT * d) return null;
  if (n <= MAX_INT && d <= MAX_INT) return [n, d];
  const bits = BigInt(53 - (n / d).toString(2).length);
  return rational(ceilDiv(n << bits, d), 1n << bits);
}

/** Whether a ceiling is as good as none: infinite, or beyond 2^24. */
export const isEndless = (/** @type {Rational | null} */ ratio) => compare(ratio, rational(1 << 24)) > 0;
