// SPDX-License-Identifier: Apache-2.0
/** What adds up (docs/protocol.md §6), and what the app allows (step 10): exact products of ratios, no sum of logarithms. */

import { BudgetExceeded, PolicyRefused } from "./errors.js";
import { compare, expLower, lnUp, parseNats, product, rational } from "./rational.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Block} Block
 * @typedef {{block: string, by: string, value: Rational | null}} Line
 * @typedef {{level: Rational | null, ceiling: Rational | null, lines: Line[]}} FormLevel
 * @typedef {{level: Rational | null, ceiling: Rational | null}} Spent
 * @typedef {{cap?: string, maxCeiling?: string | null, allowUnpinned?: boolean, requireLog?: boolean}} PolicyOptions
 */

const least = (/** @type {Line[][]} */ all) => all.reduce((a, b) => (compare(total(b), total(a)) < 0 ? b : a));
const total = (/** @type {Line[]} */ lines) => product(lines.map((line) => line.value));

/** The smallest sound sum over the blocks of one document, with a δ cap of 0. @returns {FormLevel} */
export function formLevel(/** @type {Block[]} */ blocks) {
  const secrets = [...new Set(blocks.flatMap((b) => b.promises.flatMap((p) => p.secret ?? [])))].sort();
  // Let each block about a secret be the one that counts its level; keep the cheapest choice, and the dearest secret.
  const options = secrets.map((secret) => {
    const choices = blocks.map((b, i) => ({ i, bound: about(b, secret) })).filter(({ bound }) => bound);
    return least([linesOf(blocks, -1, null), ...choices.map(({ i, bound }) => linesOf(blocks, i, bound))]);
  });
  const lines = options.length ? options.reduce((a, b) => (compare(total(b), total(a)) > 0 ? b : a)) : linesOf(blocks, -1, null);
  return { level: total(lines), ceiling: product(blocks.map((b) => b.ceiling)), lines };
}

/** What several documents cost together: across documents every block counts its ceiling. */
export const ledgerTotal = (/** @type {Spent[]} */ forms) => (forms.length === 1 ? forms[0].level : product(forms.map((form) => form.ceiling)));

/** E with P(y|s) / P(y) within [1/E, E] under the claim; null if it promises no such thing. @returns {Rational | null} */
function liftBound(/** @type {import("./audit.js").Claim} */ { notion, level, low_level: low }) {
  if (notion === "dpv" || !level || (notion === "alip" && !low)) return null;
  const up = rational(...level), down = rational(.../** @type {[number, number]} */ (low ?? [1, 1]));
  return compare(down, up) > 0 ? down : up;
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
  const each = [...under.values()].map((bounds) => bounds.reduce((/** @type {Rational | null} */ a, b) => (compare(b, a) < 0 ? b : a), null));
  return each.length && each.every(Boolean) ? each.reduce((a, b) => (compare(b, a) > 0 ? b : a)) : null;
}

function linesOf(/** @type {Block[]} */ blocks, /** @type {number} */ byLevel, /** @type {Rational | null} */ level) {
  return blocks.map((b, i) => {
    if (i === byLevel) return { block: b.id, by: "level", value: level };
    const exact = b.promises.filter(({ claim }) => claim.notion === "dp" && claim.delta?.[0] === 0);
    const below = exact.map(({ claim }) => rational(.../** @type {[number, number]} */ (claim.level))).filter((bound) => compare(bound, b.ceiling) < 0);
    if (below.length) return { block: b.id, by: "dp", value: below.reduce((a, c) => (compare(c, a) > 0 ? c : a)) };
    return { block: b.id, by: "ceiling", value: b.ceiling };
  });
}

/** Limits of one app; InvalidInput for limits that are no plain decimals. */
export class Policy {
  constructor(/** @type {PolicyOptions} */ { cap = "5", maxCeiling = null, allowUnpinned = false, requireLog = false } = {}) {
    this.cap = cap;
    this.limit = expLower(parseNats(cap, "cap"));
    this.most = maxCeiling === null ? null : expLower(parseNats(maxCeiling, "max_ceiling"));
    this.allowUnpinned = allowUnpinned;
    this.requireLog = requireLog;
  }

  /** Whether a survey with this pin (null: without) needs a log's word. */
  wantsLog(/** @type {string | null} */ pin) {
    return this.requireLog || (pin === null && !this.allowUnpinned);
  }

  /** Step 10: PolicyRefused or BudgetExceeded unless the survey may be answered on top of what was spent. */
  check(/** @type {Block[]} */ blocks, /** @type {{pinned: boolean, logged: boolean, spent: Spent[]}} */ { pinned, logged, spent }) {
    for (const [i, b] of blocks.entries()) {
      if (!b.restsOnPrior || (pinned && !this.most)) continue;
      if (!this.most || compare(b.ceiling, this.most) > 0)
        throw new PolicyRefused(
          "ceiling",
          `this block's promise rests on a prior that nobody has vouched for, and its ceiling of ${lnUp(b.ceiling)} nats is more than this app allows`,
          `blocks[${i}].ceiling`,
        );
    }
    if (this.requireLog && !logged)
      throw new PolicyRefused("unlogged", "no log that somebody watches vouches for this survey, as this app demands");
    if (!(pinned || logged || this.allowUnpinned))
      throw new PolicyRefused("unpinned", "use the link that ends in #sha256=…, so that everyone gets the same survey");
    const form = formLevel(blocks);
    if (compare(form.level, this.limit) > 0) {
      const asked = `the survey costs ${lnUp(form.level)} nats, this app allows ${this.cap}`;
      if (blocks.filter((b) => b.restsOnPrior).length > 1)
        throw new PolicyRefused("composition", `only one promise per secret that rests on a prior counts as stated, so ${asked}`, "blocks");
      throw new PolicyRefused("cap", asked, "blocks");
    }
    const together = ledgerTotal([...spent, form]);
    if (compare(together, this.limit) > 0)
      throw new BudgetExceeded(`with what was answered before it would cost ${lnUp(together)} nats, this app allows ${this.cap}`);
    return form;
  }
}
