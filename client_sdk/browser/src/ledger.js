// SPDX-License-Identifier: Apache-2.0
/** What adds up (docs/protocol.md §6), and what the app allows (step 10): exact products of ratios, no sum of logarithms. */

import { BudgetExceeded, PolicyRefused } from "./errors.js";
import { ONE, ZERO, compare, expLower, parseChance, parseDecimal, plus, product, rational } from "./rational.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Block} Block
 * @typedef {{block: string, by: string, value: Rational | null, delta: Rational}} Line by its level, its ceiling, or its (ε, δ) "dp"
 * @typedef {object} Spent what a form costs
 * @property {Rational | null} level the smallest sound sum for every secret of the form
 * @property {Rational | null} ceiling the bound under every prior
 * @property {Rational | null} [free] the bound that rests on no prior, with its δ, within the app's cap on δ
 * @property {Rational} [freeDelta] absent from what an earlier version has kept: then the ceiling counts
 * @typedef {Spent & {delta: Rational, lines: Line[]}} FormLevel
 * @typedef {{cost: Rational | null, delta: Rational}} Charge what an answered survey is remembered to have cost
 */

const total = (/** @type {Line[]} */ lines) => product(lines.map((line) => line.value));
const deltaOf = (/** @type {Line[]} */ lines) => lines.map((line) => line.delta).reduce(plus, ZERO);
const largest = (/** @type {Rational[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) > 0 ? b : a));
const least = (/** @type {Rational[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) < 0 ? b : a));

/** The smallest sound sum over the blocks of one document; (ε, δ) promises count as stated while `cap` lasts. @returns {FormLevel} */
export function formLevel(/** @type {Block[]} */ blocks, cap = ZERO) {
  const free = linesOf(blocks, -1, null, cap);
  const secrets = [...new Set(blocks.flatMap((b) => b.promises.flatMap(({ secret }) => secret ?? [])))].sort();
  // Let each block about a secret be the one that counts its level; keep the cheapest choice, and the dearest secret.
  const options = secrets.map((secret) => blocks.reduce((best, block, i) => {
    const bound = about(block, secret), lines = bound && linesOf(blocks, i, bound, cap);
    return lines && compare(total(lines), total(best)) < 0 ? lines : best;
  }, free));
  const lines = options.length ? options.reduce((a, b) => (compare(total(b), total(a)) > 0 ? b : a)) : free;
  return { level: total(lines), delta: deltaOf(lines), ceiling: product(blocks.map((b) => b.ceiling)), free: total(free), freeDelta: deltaOf(free), lines };
}

/**
 * What several documents cost together: across documents every block counts what rests on no prior; (ε, δ) bounds while
 * the cap lasts, first where the ceiling is infinite and the least δ first, the ceilings otherwise.
 */
export function ledgerTotal(/** @type {(Spent & {delta?: Rational})[]} */ forms, cap = ZERO) {
  if (forms.length === 1 && compare(forms[0].delta ?? ZERO, cap) <= 0) return forms[0].level;
  let spent = ZERO;
  const dearestFirst = forms.map(({ ceiling, free = null, freeDelta = ZERO }) => ({ ceiling, free, freeDelta }))
    .sort((a, b) => Number(Boolean(a.ceiling)) - Number(Boolean(b.ceiling)) || compare(a.freeDelta, b.freeDelta));
  return product(dearestFirst.map(({ ceiling, free, freeDelta }) => {
    const more = plus(spent, freeDelta);
    if (!freeDelta[0] || compare(more, cap) > 0) return ceiling;
    spent = more;
    return free;
  }));
}

/** E with P(y|s) / P(y) within [1/E, E] under the claim; null if it promises no such thing. @returns {Rational | null} */
function liftBound(/** @type {import("./audit.js").Claim} */ { notion, level, low_level: low = [1, 1] }) {
  return notion === "dpv" || !level || !low ? null : largest([rational(...level), rational(...low)]);
}

/** The bound a block promises about a secret: the least under each of its priors, the largest of those. */
function about(/** @type {Block} */ { promises }, /** @type {string} */ secret) {
  /** @type {Map<string, Rational[]>} */
  const under = new Map();
  for (const { claim, secret: own } of promises) {
    if (own !== secret) continue;
    const key = JSON.stringify([claim.joint, claim.lower_bounds]), bound = liftBound(claim);
    under.set(key, [...(under.get(key) ?? []), ...(bound ? [bound] : [])]);
  }
  const each = [...under.values()];
  return each.length && each.every((bounds) => bounds.length) ? largest(each.map(least)) : null;
}

/** @returns {Line[]} */
function linesOf(/** @type {Block[]} */ blocks, /** @type {number} */ byLevel, /** @type {Rational | null} */ level, /** @type {Rational} */ cap) {
  /** @type {Line[]} */
  const lines = blocks.map(({ id, ceiling }, i) => ({ block: id, ...(i === byLevel ? { by: "level", value: level } : { by: "ceiling", value: ceiling }), delta: ZERO }));
  let spent = ZERO;
  for (const { i, value, delta } of approximate(blocks)) {
    const more = plus(spent, delta);
    if (i === byLevel || compare(more, cap) > 0) continue;
    spent = more;
    lines[i] = { block: blocks[i].id, by: "dp", value, delta };
  }
  return lines;
}

/** The (ε, δ) promises below their block's ceiling: those of infinite ceilings first, then by δ, place and ε. */
function approximate(/** @type {Block[]} */ blocks) {
  const found = blocks.flatMap(({ promises, ceiling }, i) => promises.flatMap(({ claim: { level, delta } }) => {
    const value = delta && level && rational(...level);
    return value && compare(value, ceiling) < 0 ? [{ i, value, delta: rational(...delta), isFinite: Number(Boolean(ceiling)) }] : [];
  }));
  return found.sort((a, b) => a.isFinite - b.isFinite || compare(a.delta, b.delta) || a.i - b.i || compare(a.value, b.value));
}

/** What is to be kept of a form's level. @returns {Charge} */
export const chargeOf = (/** @type {FormLevel} */ { ceiling, free = null, freeDelta = ZERO }) => ({ cost: freeDelta[0] ? free : ceiling, delta: freeDelta });

/** What was kept, as a form's level; beyond the cap on δ it counts as infinite. @returns {Spent} */
const formOf = (/** @type {Charge} */ { cost, delta }) => ({ level: cost, ceiling: delta[0] ? null : cost, free: cost, freeDelta: delta });

/** Limits of one app; InvalidInput for limits that are no plain decimals. */
export class Policy {
  constructor(/** @type {import("../frankly.d.ts").PolicyOptions} */ { cap = "5", maxCeiling = null, allowUnpinned = false, requireLog = false, deltaCap = "0", collectHosts = [] } = {}) {
    this.cap = cap;
    this.limit = expLower(parseDecimal(cap, "cap"));
    this.most = maxCeiling === null ? null : expLower(parseDecimal(maxCeiling, "max_ceiling"));
    this.deltaCap = deltaCap;
    this.allowed = parseChance(deltaCap, "delta_cap");
    this.allowUnpinned = allowUnpinned;
    this.requireLog = requireLog;
    this.collectHosts = collectHosts;
  }

  /** Whether a survey with this pin (null: without) needs a log's word. */
  wantsLog(/** @type {string | null} */ pin) {
    return this.requireLog || (pin === null && !this.allowUnpinned);
  }

  /** Step 10: PolicyRefused or BudgetExceeded unless the survey may be answered on top of what was spent. */
  check(/** @type {Block[]} */ blocks, /** @type {{pinned: boolean, logged: boolean, spent: Charge[]}} */ { pinned, logged, spent }) {
    const { most, allowed, limit, cap, deltaCap } = this;
    for (const [i, { restsOnPrior, ceiling }] of blocks.entries())
      if (restsOnPrior && (most ? compare(ceiling, most) > 0 : !pinned)) throw new PolicyRefused("ceiling", `blocks[${i}].ceiling`, ceiling);
    if (this.requireLog && !logged) throw new PolicyRefused("unlogged", null);
    if (!(pinned || logged || this.allowUnpinned)) throw new PolicyRefused("unpinned", null);
    const form = formLevel(blocks, allowed), { delta } = formLevel(blocks, ONE);
    if (compare(form.level, limit) > 0)
      throw new PolicyRefused(blocks.filter((b) => b.restsOnPrior).length > 1 ? "composition" : "cap", "blocks", form.level, cap, delta, deltaCap);
    // What was answered before has used up some of the δ: the blocks of this form have the rest.
    const rest = spent.reduce((all, { delta: [n, d] }) => plus(all, [-n, d]), allowed);
    const left = formLevel(blocks, rest[0] > 0n ? rest : ZERO);
    const together = ledgerTotal([...spent.map(formOf), left], allowed);
    if (compare(together, limit) > 0) throw new BudgetExceeded(together, cap, delta, deltaCap);
    return left;
  }
}
