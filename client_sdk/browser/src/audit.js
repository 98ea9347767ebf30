// SPDX-License-Identifier: Apache-2.0
/** The exact verifier (step 9): whole numbers only, in the order of frankly_protocol.audit. */

import { DocumentRejected, part } from "./errors.js";
import { MAX_REPORTS } from "./mechanisms.js";
import { MAX_INT, ceilDiv, compare, rational, sum } from "./rational.js";
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
/** The formulas of SRLIP and RLDP, once a document has asked for them. @type {typeof import("./rare.js") | undefined} */
let rare;
const product = (/** @type {number[]} */ values) => values.reduce((a, b) => a * b, 1);

const refuse = (/** @type {Claim} */ claim, /** @type {string} */ detail, /** @type {string} */ field) =>
  new DocumentRejected("privacy", `${claim.notion}: ${detail}`, field);

/** Load what verifying these claims takes beyond this module; without it `requirePrivate` cannot pass. */
export async function prepare(/** @type {Claim[]} */ claims) {
  if (claims.some(({ notion }) => notion === "srlip" || notion === "rldp")) rare = await part(() => import("./rare.js"));
}

/** Refuse a claim that says nothing definite about so many answers; its form has been read by the schema. */
export function requireSound(/** @type {Claim} */ claim, /** @type {number} */ answers) {
  const { notion, joint, attributes, delta, lower_bounds: bounds } = claim;
  for (const [field, level] of /** @type {[string, any][]} */ ([["level", claim.level], ["low_level", claim.low_level]])) {
    if (!level) continue;
    if (notion === "dpv" && level[0] > level[1]) throw refuse(claim, "the probability of the sensitive secret is bounded by p/q ≤ 1", field);
    if (notion !== "dpv" && level[0] < level[1]) throw refuse(claim, "a level is a ratio p/q ≥ 1", field);
  }
  if (joint) {
    if (joint.length < 2) throw refuse(claim, "the prior needs a row for each of two or more secrets", "prior");
    for (const [s, row] of joint.entries()) {
      if (row.length !== answers) throw refuse(claim, `every row of the prior needs ${answers} columns`, `prior.joint[${s}]`);
      if (!row.some(Boolean)) throw refuse(claim, "a secret without mass cannot be protected", `prior.joint[${s}]`);
    }
  }
  if (attributes && product(attributes) !== answers)
    throw refuse(claim, `the attributes' sizes must multiply to ${answers}, the number of answers`, "attributes");
  if (delta && delta[0] >= delta[1]) throw refuse(claim, "delta is less than 1", "delta");
  if (!bounds) return;
  for (const [s, row] of bounds.entries()) {
    if (row.length * bounds.length !== answers) throw refuse(claim, `the rows must be equally long and hold ${answers} bounds in all`, `lower_bounds[${s}]`);
    const [scale, [own]] = ratios.scaledBounds([row]);
    if (sum(own) > scale) throw refuse(claim, "the row's bounds on probabilities sum to more than 1", `lower_bounds[${s}]`);
  }
}

/** About how many multiplications verifying a sound claim takes. @returns {number} */
export function work(/** @type {Mechanism} */ m, /** @type {Claim} */ { notion, joint, attributes, lower_bounds: bounds }) {
  const secrets = (joint ?? bounds ?? []).length, cells = product((attributes ?? []).map((size) => size + 1));
  if (m.kind === "unary" || m.kind === "subset") {
    if (notion === "ldp" || notion === "dp") return m.answers;
    return 8 * m.answers * (notion === "secret-ldp" || notion === "rldp" ? secrets ** 2 : 2 * secrets * cells);
  }
  if (m.kind === "product" && notion === "ldp") return m.factors.reduce((all, f) => all + f.answers * Number(f.reports), 0);
  if (m.kind === "product" && notion === "dp") {
    if (m.factors.reduce((all, f) => all + f.answers ** 2 * Number(f.reports), 0) > MAX_WORK / 80) return MAX_WORK + 1;
    return 80 * product(m.factors.map((f) => ratios.likelihoods(f).reduce((all, own) => all + own.length, 0)));
  }
  const reports = Number(m.reports);
  if (notion === "dp") return m.answers ** 2 * reports;
  return reports * (m.answers + (attributes?.length ? cells : m.answers) * (secrets || 1));
}

/** Raise unless the mechanism keeps the claim, in exact arithmetic; the claim is sound. */
export function requirePrivate(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const { notion } = claim;
  if (m.kind === "product" && notion !== "ldp" && notion !== "dp" && m.reports > MAX_REPORTS)
    throw refuse(claim, `a product of more than ${MAX_REPORTS} reports can be verified for ldp and dp only`, "notion");
  if (work(m, claim) > MAX_WORK) throw refuse(claim, "verifying this takes too long at its size", "notion");
  const found = [...candidates(m, claim)];
  const least = notion === "dp" || notion === "dpv" ? 0n : 1n;
  /** @type {[string, [number, number] | null | undefined, ratios.Candidate[]][]} */
  const sides = notion === "alip"
    ? [["level", claim.level, found.filter((c) => !c[2])], ["low_level", claim.low_level, found.filter((c) => c[2])]]
    : [notion === "dp" ? ["delta", claim.delta, found] : ["level", claim.level, found]];
  for (const [field, level, own] of sides) {
    if (!level) continue;
    const [n, d] = ratios.largest(own, least), [p, q] = level.map(BigInt);
    if (n * q > p * d) throw refuse(claim, `${d ? `${n}/${d} is needed` : "no finite ratio can be promised"}, ${p}/${q} is promised`, field);
  }
}

/** @returns {Iterable<ratios.Candidate>} */
function candidates(/** @type {Mechanism} */ m, /** @type {Claim} */ claim) {
  const joint = (claim.joint ?? []).map((row) => row.map(BigInt));
  const [p, q] = (claim.level ?? [1, 1]).map(BigInt);
  const { notion, attributes = [], lower_bounds: bounds = [], diagonal = false, sensitive = 0 } = claim;
  const more = /** @type {NonNullable<typeof rare>} */ (rare);
  if (m.kind === "unary" || m.kind === "subset") {
    const shape = sets.shapeOf(m);
    if (notion === "ldp") return sets.answerRatios(shape);
    if (notion === "dp") return sets.excesses(shape, p, q);
    if (notion === "secret-ldp") return sets.secretRatios(shape, joint);
    if (notion === "srlip") return more.sideChannelRatiosOfSets(shape, joint, attributes);
    if (notion === "rldp") return more.robustRatiosOfSets(shape, bounds, diagonal);
    if (notion === "dpv") return sets.posteriors(shape, joint, sensitive);
    return sets.averageRatios(shape, joint);
  }
  if (notion === "ldp") return m.kind === "dense" ? ratios.answerRatios(m) : ratios.productAnswerRatios(m.factors);
  if (notion === "dp") return m.kind === "dense" ? ratios.excesses(m, p, q) : ratios.productExcesses(m, p, q);
  const columns = m.kind === "dense" ? ratios.columnsOf(m) : ratios.productColumns(m.factors);
  if (notion === "secret-ldp") return ratios.secretRatios(columns, joint);
  if (notion === "srlip") return more.sideChannelRatios(columns, joint, attributes);
  if (notion === "rldp") return more.robustRatios(columns, bounds, diagonal);
  if (notion === "dpv") return ratios.posteriors(columns, joint, sensitive);
  return ratios.averageRatios(columns, joint);
}

/** The leakage under every prior as documents state it: rounded up to numbers below 2^53; null if it protects nothing. @returns {Rational | null} */
export function statedCeiling(/** @type {Mechanism} */ m) {
  const [n, d] = ratios.largest(candidates(m, { notion: "ldp", level: [1, 1] }));
  if (!d || n > MAX_INT * d) return null;
  if (n <= MAX_INT && d <= MAX_INT) return [n, d];
  const bits = BigInt(53 - (n / d).toString(2).length);
  return rational(ceilDiv(n << bits, d), 1n << bits);
}

/** Whether a ceiling is as good as none: infinite, or beyond 2^24. */
export const isEndless = (/** @type {Rational | null} */ ratio) => compare(ratio, rational(1 << 24)) > 0;
