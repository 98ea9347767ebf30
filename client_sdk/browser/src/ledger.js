// SPDX-License-Identifier: Apache-2.0
/** The level of a whole report, as in frankly_protocol/audit/report.py, and the limits of an app (step 10). */

import { isStratified } from "./documents.js";
import { BudgetExceeded, InvalidInput, PolicyRefused } from "./errors.js";
import { ONE, ZERO, compare, expLower, parseChance, parseDecimal, plus, product, productWith, rational, sum } from "./rational.js";
import * as ratios from "./ratios.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Block} Block
 * @typedef {import("./documents.js").Promised} Promised
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {{odds: Rational | null, delta: Rational}} Bound the largest ratio of odds, null if infinite, and the δ it holds up to
 * @typedef {{cost: Rational | null, delta: Rational}} Charge the stored cost of answered surveys; null if infinite
 * @typedef {{block: string, countedBy: "ceiling" | "dp", odds: Rational | null, delta: Rational}} BlockCharge
 * @typedef {object} SecretLevel bound on the information of the whole report about one secret, given the public answers
 * @property {Rational | null} level in the unit of the secret's notions
 * @property {Rational | null} odds the bound as a ratio of odds
 * @property {"odds" | "lift"} unit "odds" for secret-ldp and rldp
 * @property {Rational} delta as in (ε, δ): P(T|s) ≤ odds·P(T|t) + δ for every set T of reports
 * @property {string | null} counted id of the block that counts its promise for `odds`
 * @property {Rational | null} strataLift bound for the public answers alone: the largest P(s|z)/P(s) or inverse; null if infinite or not known
 * @property {Rational | null} strataOdds the largest change of the odds of two secrets by the public answers
 * @typedef {{block: string, secret: string, sensitive: number, bound: Rational}} Posterior
 * @typedef {object} ReportLevel
 * @property {Map<string, SecretLevel>} secrets
 * @property {Bound & {level: Rational | null}} answers under every prior
 * @property {Bound} cost what the ledger charges
 * @property {Rational | null} ceiling the cost where the app allows no δ
 * @property {BlockCharge[]} lines how each block counts for the cost
 * @property {Posterior[]} posteriors
 */

const ODDS = ["secret-ldp", "rldp"];
const largest = (/** @type {(Rational | null)[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) > 0 ? b : a));
const least = (/** @type {Rational[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) < 0 ? b : a));

const reduced = (/** @type {Rational | null} */ ratio) => ratio && rational(...ratio);
const deltaOf = (/** @type {{delta: Rational}[]} */ charged) => rational(...charged.map((one) => one.delta).reduce(plus, ZERO));

/** Return the level of the whole report on a document whose promises hold; (ε, δ) promises are used as long as their total δ is at most `deltaCap`. @returns {ReportLevel} */
export function reportLevel(/** @type {Pick<Survey, "blocks" | "strata">} */ { blocks, strata }, deltaCap = ZERO) {
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
  const secrets = new Map([...about].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, own]) => [name, levelOf(own)]));
  return {
    secrets, cost, lines, answers: { level: cost.odds, ...cost }, ceiling: reduced(product(ceilings)),
    posteriors: posteriorsOf(blocks, ceilings, strata.length > 0),
  };
}

/** Return E with P(y|s) / P(y) within [1/E, E] under the claim, for dp up to δ; null if there is none. @returns {Rational | null} */
function liftBound(/** @type {Claim} */ { notion, level, low_level: low = [1, 1] }) {
  return notion === "dpv" || !level || !low ? null : largest([rational(...level), rational(...low)]);
}

/** Return E with P(y|s) / P(y|t) ≤ E under the claim, for dp up to δ; null if there is none. @returns {Rational | null} */
function oddsBound(/** @type {Claim} */ claim) {
  const { notion, level, low_level: low } = claim, bound = liftBound(claim);
  if (!bound || !level || ODDS.includes(notion)) return bound;
  return product([rational(...level), rational(...(low ?? level))]);
}

/** @returns {BlockCharge[]} */
function charges(/** @type {Block[]} */ blocks, /** @type {Rational} */ cap) {
  /** @type {BlockCharge[]} */
  const lines = blocks.map(({ id, ceiling }) => ({ block: id, countedBy: "ceiling", odds: ceiling, delta: ZERO }));
  let spent = ZERO;
  for (const { i, odds, delta } of approximate(blocks)) {
    const more = plus(spent, delta);
    if (lines[i].countedBy === "dp" || compare(more, cap) > 0) continue;
    spent = more;
    lines[i] = { block: blocks[i].id, countedBy: "dp", odds, delta };
  }
  return lines;
}

/** Return the (ε, δ) promises below their block's ceiling: first those of infinite ceilings, each by δ, position and ε. */
function approximate(/** @type {Block[]} */ blocks) {
  const found = blocks.flatMap(({ promises, ceiling }, i) => promises.flatMap(({ claim: { level, delta } }) => {
    const odds = delta && level && rational(...level);
    return odds && compare(odds, ceiling) < 0 ? [{ i, odds, delta: rational(...delta), isFinite: Number(Boolean(ceiling)) }] : [];
  }));
  return found.sort((a, b) => a.isFinite - b.isFinite || compare(a.delta, b.delta) || a.i - b.i || compare(a.odds, b.odds));
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
      level: lift.ratio, odds: ratio, unit: promises.every(({ claim }) => ODDS.includes(claim.notion)) ? "odds" : "lift",
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
  if (!promises.every(isStratified)) return [null, null];
  const told = promises.map(({ prior }) => toldBy(/** @type {import("./documents.js").Prior} */ (prior).tables
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

/** @returns {Posterior[]} */
function posteriorsOf(/** @type {Block[]} */ blocks, /** @type {(Rational | null)[]} */ ceilings, /** @type {boolean} */ hasStrata) {
  const others = productWith(ceilings);
  return blocks.flatMap(({ id, promises }, i) => promises.flatMap((promise) => {
    const { secret, claim: { sensitive, level } } = promise;
    if (sensitive === undefined || secret === null || !level) return [];
    const isBounded = isStratified(promise) || !hasStrata;
    const bound = isBounded ? others(i, rational(...level)) : null;
    return [{ block: id, secret, sensitive, bound: bound && compare(bound, ONE) < 0 ? bound : ONE }];
  }));
}

/** Return the total cost of several answered surveys. @returns {Charge} */
export const totalCharge = (/** @type {Charge[]} */ charged) =>
  ({ cost: product(charged.map((one) => one.cost)), delta: deltaOf(charged) });

/** Limits of one app; throws InvalidInput for limits that are not plain decimals in range, and for invalid ids. */
export class Policy {
  constructor(/** @type {import("../frankly.d.ts").PolicyOptions} */ {
    cap = "5", maxCeiling = null, allowUnpinned = false, requireLog = false, deltaCap = "0", finalSurveys = [], collectHosts = [],
  } = {}) {
    this.cap = cap;
    this.limit = expLower(parseDecimal(cap, "cap"));
    this.most = maxCeiling === null ? null : expLower(parseDecimal(maxCeiling, "max_ceiling"));
    this.deltaCap = deltaCap;
    this.allowed = parseChance(deltaCap, "delta_cap");
    this.allowUnpinned = allowUnpinned;
    this.requireLog = requireLog;
    this.finalSurveys = idsOf(finalSurveys);
    this.collectHosts = collectHosts;
  }

  /** Return true if a survey with this pin (null for none) must be in a log. */
  wantsLog(/** @type {string | null} */ pin) {
    return this.requireLog || (pin === null && !this.allowUnpinned);
  }

  /** Return the level of a document's whole report, with δ up to the app's cap. */
  level(/** @type {Survey} */ survey) {
    return reportLevel(survey, this.allowed);
  }

  /**
   * Return the ledger's charge for the survey, in addition to `spent` (step 10); `level` is the result of the method `level`.
   * Throws PolicyRefused or BudgetExceeded unless the survey may be answered.
   */
  check(/** @type {Survey} */ survey, /** @type {ReportLevel} */ level, /** @type {{pinned: boolean, logged: boolean, spent: Charge[]}} */ { pinned, logged, spent }) {
    const { most } = this;
    for (const [i, { restsOnPrior, ceiling }] of survey.blocks.entries())
      if (restsOnPrior && (most ? compare(ceiling, most) > 0 : !pinned)) throw new PolicyRefused("ceiling", `blocks[${i}].ceiling`, ceiling);
    if (this.requireLog && !logged) throw new PolicyRefused("unlogged", null);
    if (!(pinned || logged || this.allowUnpinned)) throw new PolicyRefused("unpinned", null);
    this.#requireLevel(survey, level);
    const before = totalCharge(spent), charge = this.charge(level, before);
    if (!this.hasRoom(survey, charge, before)) throw this.#overBudget(survey, charge, before);
    return charge;
  }

  /** Return the ledger's charge after earlier charges: the cost, or the ceilings if too little δ remains. @returns {Charge} */
  charge(/** @type {ReportLevel} */ { cost, ceiling }, /** @type {Charge} */ { delta: [n, d] }) {
    const left = plus(this.allowed, [-n, d]);
    return compare(cost.delta, left[0] > 0n ? left : ZERO) <= 0 ? { cost: cost.odds, delta: cost.delta } : { cost: ceiling, delta: ZERO };
  }

  /** Return true if a charge fits in addition to the earlier ones, or if the survey may use up the whole budget for ever. */
  hasRoom(/** @type {Survey} */ { survey }, /** @type {Charge} */ charge, /** @type {Charge} */ before) {
    if (this.exceeds(charge.cost)) return this.finalSurveys.includes(survey) && !compare(before.cost, ONE) && !before.delta[0];
    const { cost, delta } = totalCharge([before, charge]);
    return !this.exceeds(cost) && compare(delta, this.allowed) <= 0;
  }

  exceeds(/** @type {Rational | null} */ odds) {
    return compare(odds, this.limit) > 0;
  }

  /** Refuse a report if its cost exceeds the cap, or the change of odds of a secret (of the answers, if no secret is declared). */
  #requireLevel(/** @type {Survey} */ survey, /** @type {ReportLevel} */ { secrets, answers, cost }) {
    /** @type {[string | null, {odds: Rational | null}][]} */
    const bounds = secrets.size ? [...secrets] : [[null, answers]];
    for (const [secret, { odds }] of bounds)
      if (this.exceeds(odds)) {
        const cause = notCounted(survey, secret);
        throw new PolicyRefused(cause ? "composition" : "cap", "blocks", cause, secret, ...this.#said(survey, odds));
      }
    if (this.exceeds(cost.odds) && !this.finalSurveys.includes(survey.survey)) throw new PolicyRefused("final", "blocks", ...this.#said(survey, cost.odds));
  }

  #overBudget(/** @type {Survey} */ survey, /** @type {Charge} */ charge, /** @type {Charge} */ before) {
    if (compare(before.delta, this.allowed) > 0) return new BudgetExceeded("budget_delta", before.delta, this.deltaCap);
    if (this.finalSurveys.includes(survey.survey) && this.exceeds(charge.cost)) return new BudgetExceeded("budget_final");
    return new BudgetExceeded("budget", ...this.#said(survey, totalCharge([before, charge]).cost));
  }

  /** Return the figures of a refusal: the level, the cap, the δ that the promises need, and the δ that the app allows. */
  #said(/** @type {Survey} */ { blocks }, /** @type {Rational | null} */ odds) {
    const deltas = blocks.flatMap(({ promises }) => {
      const own = promises.flatMap(({ claim: { delta } }) => (delta ? [rational(...delta)] : []));
      return own.length ? [least(own)] : [];
    });
    return [odds, this.cap, deltas.reduce(plus, ZERO), this.deltaCap];
  }
}

/** @returns {string[]} */
function idsOf(/** @type {unknown} */ surveys) {
  if (!Array.isArray(surveys)) throw new InvalidInput("field_type", "final_surveys", "no_survey_ids"); // a single string would be read as one id per letter
  const wrong = surveys.findIndex((id) => typeof id !== "string" || !/^[0-9a-f]{32}$/.test(id));
  if (wrong >= 0) throw new InvalidInput("field_type", `final_surveys[${wrong}]`, "no_survey_id");
  return [...surveys];
}

/** Return the key of the reason why a promise about a secret cannot be used, or null. */
function notCounted(/** @type {Survey} */ { blocks, strata }, /** @type {string | null} */ secret) {
  const about = blocks.flatMap(({ promises }) => promises.filter((promise) => promise.secret === secret));
  if (secret !== null && strata.length && !about.every(isStratified)) return "prior_without_strata";
  return blocks.filter((block) => block.restsOnPrior).length > 1 ? "one_prior_counts" : null;
}
