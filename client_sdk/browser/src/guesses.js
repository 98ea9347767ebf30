// SPDX-License-Identifier: Apache-2.0
/** The chance that the best guess from a report is right, if all answers are equally likely; for explanations only, no decision depends on it. */

import { compare, rational, sum } from "./rational.js";

/** @typedef {import("./rational.js").Rational} Rational */

/** The parts of an answer are guessed independently. @returns {Rational} */
export function guessOfTables(/** @type {import("./mechanisms.js").Listed} */ { factors }) {
  const each = factors.map((factor) => {
    const right = sum(factor.columns().map((column) => column.reduce((a, b) => (b > a ? b : a))));
    return rational(right, BigInt(factor.answers) << BigInt(factor.bits));
  });
  return each.reduce((all, [n, d]) => rational(all[0] * n, all[1] * d));
}

/** @returns {Rational} */
export function guessOfSubset(/** @type {import("./mechanisms.js").Subset} */ { bits, answers, size, inside }) {
  const D = 1n << BigInt(bits), i = BigInt(inside), best = (/** @type {bigint} */ n, /** @type {number} */ d) => rational(n, BigInt(d) * D);
  const [p, q] = [best(i, size), best(D - i, answers - size)];
  return compare(p, q) > 0 ? p : q;
}

/** @returns {Rational} */
export function guessOfUnary(/** @type {import("./mechanisms.js").Unary} */ m) {
  const D = 1n << BigInt(m.bits), a = BigInt(m.answers), k = BigInt(Math.max(m.keep, m.flip)), f = BigInt(Math.min(m.keep, m.flip));
  const [on, off] = m.keep > m.flip ? [k, f] : [D - f, D - k];
  // The sums for the nonempty sets and for the empty set have the denominator f·a·D^a (without f if that is 0).
  const some = off ? on * (D ** a - (D - off) ** a) : on * a * D ** (a - 1n);
  const none = (D - on) * (D - off) ** (a - 1n);
  return rational(some + none * (off || 1n), (off || 1n) * a * D ** a);
}
