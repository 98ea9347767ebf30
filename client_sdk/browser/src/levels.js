// SPDX-License-Identifier: Apache-2.0
/** The level of a whole report, as in frankly_protocol/audit/report.py. */

import { notionOf } from "./audit.js";
import { deltaOf, least } from "./ledger.js";
import { parts } from "./parts.js";
import { ONE, ZERO, compare, plus, product, productWith, rational, sum } from "./rational.js";
import * as ratios from "./ratios.js";
import { isStratified } from "./survey.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./survey.js").Block} Block
 * @typedef {import("./survey.js").Promised} Promised
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {import("./ledger.js").Bound} Bound
 * @typedef {import("./ledger.js").BlockCharge} BlockCharge
 * @typedef {import("./ledger.js").SecretLevel} SecretLevel
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 */

const largest = (/** @type {(Rational | null)[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) > 0 ? b : a));

const reduced = (/** @type {Rational | null} */ ratio) => ratio && rational(...ratio);

/**
 * Return the level of the whole report on a document whose promises hold, or of the view of an arm; (ε, δ) promises are used as long as
 * their total δ is at most `deltaCap`. @returns {ReportLevel}
 */
export const reportLevel = (/** @type {Pick<Survey, "blocks" | "strata" | "arms" | "arm">} */ survey, deltaCap = ZERO) =>
  (survey.arms && !survey.arm
    ? parts.arms.levelOf(survey, secretsOf(survey.blocks), (/** @type {Survey} */ view, /** @type {string[]} */ names) => levelOf(view, deltaCap, names))
    : levelOf(survey, deltaCap, secretsOf(survey.blocks)));

/** Return the names of the secrets of which blocks promise something, sorted. */
const secretsOf = (/** @type {Block[]} */ blocks) => [...new Set(blocks.flatMap(({ promises }) => promises.flatMap(({ secret }) => secret ?? [])))].sort();

/** Return the level of a report, also about secrets that no block promises anything of. @returns {ReportLevel} */
function levelOf(/** @type {Pick<Survey, "blocks" | "strata">} */ { blocks, strata }, /** @type {Rational} */ deltaCap, /** @type {string[]} */ names) {
  const lines = charges(blocks, deltaCap), ceilings = blocks.map((block) => block.ceiling);
  const cost = { odds: reduced(product(lines.map((line) => line.odds))), delta: deltaOf(lines) };
  /** @type {Map<string, Map<number, Promised[]>>} */
  const about = new Map();
  for (const [i, { promises }] of blocks.entries())
    for (const promise of promises) {
      if (promise.secret === null) continue;
      const own = about.get(promise.secret) ?? new Map();
      about.set(promise.secret, own.set(i, [...(own.get(i) ?? []), promise]));
    }
  const levelOf = secretLevels(lines, cost, strata.length > 0);
  const secrets = new Map(names.map((name) => [name, levelOf(about.get(name) ?? new Map())]));
  return {
    secrets, cost, lines, answers: { level: cost.odds, ...cost }, ceiling: reduced(product(ceilings)),
    posteriors: parts.rare?.posteriorsOf(blocks, ceilings, strata.length > 0) ?? [],
  };
}

/** Return E with P(y|s) / P(y) within [1/E, E] under the claim, for dp up to δ; null if there is none. @returns {Rational | null} */
function liftBound(/** @type {Claim} */ claim) {
  const { level, low_level: low = [1, 1] } = claim;
  return notionOf(claim).isChance || !level || !low ? null : largest([rational(...level), rational(...low)]);
}

/** Return E with P(y|s) / P(y|t) ≤ E under the claim, for dp up to δ; null if there is none. @returns {Rational | null} */
function oddsBound(/** @type {Claim} */ claim) {
  const { level, low_level: low } = claim, bound = liftBound(claim);
  if (!bound || !level || notionOf(claim).isOdds) return bound;
  return product([rational(...level), rational(...(low ?? level))]);
}

/** @returns {BlockCharge[]} */
function charges(/** @type {Block[]} */ blocks, /** @type {Rational} */ cap) {
  /** @type {BlockCharge[]} */
  const lines = blocks.map(({ id, ceiling }) => ({ block: id, countedBy: "ceiling", odds: ceiling, delta: ZERO }));
  let spent = ZERO;
  for (const { i, odds, delta } of parts.rare?.approximate(blocks) ?? []) {
    const more = plus(spent, delta);
    if (lines[i].countedBy === "dp" || compare(more, cap) > 0) continue;
    spent = more;
    lines[i] = { block: blocks[i].id, countedBy: "dp", odds, delta };
  }
  return lines;
}

/** Return a function that computes the level of a secret from the promises about it, which are given by their block's position. */
function secretLevels(/** @type {BlockCharge[]} */ lines, /** @type {Bound} */ cost, /** @type {boolean} */ hasStrata) {
  const costWith = productWith(lines.map((line) => line.odds));
  const endless = lines.flatMap(({ odds }, i) => (odds ? [] : [i]));
  /** Return the least valid product, its δ, and the block that uses its promise; promises are compared by the ratio to the bound that they replace. */
  const counting = (/** @type {Map<number, Rational>} */ bounds) => {
    /** @type {{i: number, gain: Rational} | undefined} */
    let best;
    for (const [i, bound] of bounds) {
      if (endless.some((j) => j !== i)) continue;
      const [n, d] = lines[i].odds ?? ONE, gain = /** @type {Rational} */ ([bound[0] * d, bound[1] * n]);
      if (endless.length ? true : compare(gain, best?.gain ?? ONE) < 0) best = { i, gain };
    }
    if (!best) return { ratio: cost.odds, delta: cost.delta, counted: null };
    const { block, delta: [n, d] } = lines[best.i];
    return { ratio: costWith(best.i, bounds.get(best.i)), delta: plus(cost.delta, [-n, d]), counted: block };
  };
  return (/** @type {Map<number, Promised[]>} */ about) => {
    const promises = [...about.values()].flat();
    const lift = counting(boundsOf(about, liftBound, hasStrata)), { ratio, delta, counted } = counting(boundsOf(about, oddsBound, hasStrata));
    const [strataLift, strataOdds] = hasStrata ? toldByStrata(promises) : [ONE, ONE];
    /** @type {SecretLevel} */
    const secret = {
      level: lift.ratio, odds: ratio, unit: promises.every(({ claim }) => notionOf(claim).isOdds) ? "odds" : "lift",
      delta: compare(delta, lift.delta) < 0 ? lift.delta : delta, counted, strataLift, strataOdds,
    };
    return secret;
  };
}

/**
 * Return each block's bound for a secret: for each of its priors the least promised bound, and of these the largest; a
 * block without a bound under one prior is left out. Blocks that list different values mean two secrets: no promise is used.
 */
function boundsOf(/** @type {Map<number, Promised[]>} */ about, /** @type {(claim: Claim) => Rational | null} */ boundOf, /** @type {boolean} */ hasStrata) {
  /** @type {Map<number, Rational>} */
  const found = new Map();
  const values = [...about.values()].flat().map(({ prior }) => prior && String([...prior.secrets].sort()));
  if (about.size > 1 && values.some((named) => !named || named !== values[0])) return found;
  for (const [i, promises] of about) {
    /** @type {Map<string, Rational[]>} */
    const under = new Map();
    for (const promise of promises) {
      const bound = isStratified(promise) || !hasStrata ? boundOf(promise.claim) : null;
      const key = promises.length > 1 ? JSON.stringify([promise.prior?.tables, promise.claim.lower_bounds]) : "";
      under.set(key, [...(under.get(key) ?? []), ...(bound ? [bound] : [])]);
    }
    const each = [...under.values()];
    if (each.every((bounds) => bounds.length)) found.set(i, /** @type {Rational} */ (largest(each.map(least))));
  }
  return found;
}

/** Return the largest lift and the largest change of odds due to the public answers; null if infinite or unknown. @returns {(Rational | null)[]} */
function toldByStrata(/** @type {Promised[]} */ promises) {
  if (!promises.length || !promises.every(isStratified)) return [null, null];
  const told = promises.map(({ prior }) => toldBy(/** @type {import("./survey.js").Prior} */ (prior).tables
    .map((table) => (table.length > 1 ? table.map((row) => sum(row.map(BigInt))) : table[0].map(BigInt)))));
  return [0, 1].map((k) => largest(told.map((both) => both[k])));
}

/** Return max P(s|z)/P(s) or inverse, and max (P(s|z)/P(t|z)) / (P(s)/P(t)), from counts [z][s]. @returns {(Rational | null)[]} */
function toldBy(/** @type {bigint[][]} */ masses) {
  if (masses.some((row) => row.includes(0n))) return [null, null];
  const everybody = masses[0].map((_, s) => sum(masses.map((row) => row[s]))), secrets = [...everybody.keys()];
  const lifts = masses.map((row) => [...ratios.aroundAverage(row, everybody, secrets)]);
  return [ratios.largest(lifts.flat()), ratios.largest(lifts.map(([[a, b], [c, d]]) => [a * c, b * d, false]))];
}
