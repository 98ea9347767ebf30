// SPDX-License-Identifier: Apache-2.0
/** The limits of an app, and what the ledger charges (step 10); levels.js computes the level of a report. */

import { BudgetExceeded, InvalidInput, PolicyRefused } from "./errors.js";
import { ONE, ZERO, compare, expLower, parseChance, parseDecimal, plus, product, rational } from "./rational.js";
import { isStratified } from "./survey.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./survey.js").Block} Block
 * @typedef {import("./survey.js").Survey} Survey
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
 * @property {Record<string, ReportLevel>} [arms] the level of each arm, if there are arms; the other figures are then the largest
 * @property {Bound} [document] the cost of the whole document, if this is the level of an arm
 */

/** Return the least of several ratios. */
export const least = (/** @type {Rational[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) < 0 ? b : a));
/** Return the sum of the δ of several charges. */
export const deltaOf = (/** @type {{delta: Rational}[]} */ charged) => rational(...charged.map((one) => one.delta).reduce(plus, ZERO));

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

  /**
   * Return the ledger's charge for the survey, in addition to `spent` (step 10); `level` is the level of its report.
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

  /** Return true if a charge fits in addition to the earlier ones, or if the survey may use up the whole budget permanently. */
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

/** Return the text key of the reason why a promise about a secret cannot be used, or null. */
function notCounted(/** @type {Survey} */ { blocks, strata }, /** @type {string | null} */ secret) {
  const about = blocks.flatMap(({ promises }) => promises.filter((promise) => promise.secret === secret));
  if (secret !== null && strata.length && !about.every(isStratified)) return "prior_without_strata";
  return blocks.filter((block) => block.restsOnPrior).length > 1 ? "one_prior_counts" : null;
}
