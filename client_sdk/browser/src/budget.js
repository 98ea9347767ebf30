// SPDX-License-Identifier: Apache-2.0
/** Budget of a respondent before and after a survey, as in frankly_protocol/explanation/budget.py; loaded when a page asks for it. */

import { totalCharge } from "./ledger.js";
import { budgetWords } from "./promised.js";
import { ONE, ZERO, parseDecimal } from "./rational.js";
import { chanceUp, lnUp } from "./shown.js";
import { Texts } from "./words.js";

/**
 * @typedef {import("./ledger.js").Charge} Charge
 * @typedef {import("../frankly.d.ts").Budget} Budget
 */

/**
 * Return the survey's cost and the remaining budget; `spent` contains the respondent's charges, including that of this
 * survey if it has been answered.
 * @returns {Budget}
 */
export function budgetOf(
  /** @type {import("./ledger.js").Policy} */ policy, /** @type {import("./survey.js").Survey} */ survey,
  /** @type {import("./ledger.js").ReportLevel} */ level, /** @type {Charge[]} */ spent, /** @type {boolean} */ isAnswered,
) {
  const before = totalCharge(spent), { cap } = policy;
  const charge = isAnswered ? { cost: ONE, delta: ZERO } : policy.charge(level, before);
  const canAnswer = !isAnswered && policy.hasRoom(survey, charge, before);
  const budget = {
    cost: lnUp(charge.cost), delta: chanceUp(charge.delta), cap, spent: lnUp(before.cost), left: natsLeft(cap, before),
    leftAfter: natsLeft(cap, canAnswer ? totalCharge([before, charge]) : before), isAnswered, isFinal: policy.exceeds(charge.cost), canAnswer,
  };
  return { ...budget, toString: () => budgetWords(budget, new Texts("en")) };
}

/** Return the remaining nats of a cap, rounded down. */
function natsLeft(/** @type {string} */ cap, /** @type {Charge} */ { cost }) {
  const [n, d] = parseDecimal(cap, "cap"), left = cost ? n * 10_000n / d - BigInt(lnUp(cost).replace(".", "")) : 0n;
  return left > 0n ? `${left / 10_000n}.${String(left % 10_000n).padStart(4, "0")}` : "0.0000";
}
