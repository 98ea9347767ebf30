// SPDX-License-Identifier: Apache-2.0
/** (ε, δ) for rare.js: the δ that a level needs, for tables and for products. */

import { order, sum } from "./rational.js";

/** @typedef {import("./ratios.js").Candidate} Candidate */

/** Yield Σ_y max(0, Q(y|x) − p/q·Q(y|z)), the δ for a level ln p/q, for all pairs x ≠ z. @returns {Generator<Candidate>} */
export function* excesses(/** @type {import("./mechanisms.js").Dense} */ m, /** @type {bigint} */ p, /** @type {bigint} */ q) {
  const ours = m.weights.map((row) => row.map((w) => q * BigInt(w))), theirs = m.weights.map((row) => row.map((w) => p * BigInt(w)));
  for (const [x, own] of ours.entries())
    for (const [z, other] of theirs.entries())
      if (x !== z) {
        let total = 0n;
        for (let y = 0; y < own.length; y++) if (own[y] > other[y]) total += own[y] - other[y];
        yield [total, q << BigInt(m.bits), false];
      }
}

/** @typedef {[bigint, bigint][]} Likelihoods masses under two answers, summed per ratio */

/** Return the distinct likelihoods over pairs of a factor's answers. @returns {Likelihoods[]} */
export function likelihoods(/** @type {import("./mechanisms.js").Dense} */ factor) {
  const found = new Map(), rows = factor.weights.map((row) => row.map(BigInt));
  for (const [i, ours] of rows.entries())
    for (const [j, theirs] of rows.entries()) if (i !== j) keep(found, ours.map((w, y) => [w, theirs[y]]));
  return [...found.values()];
}

/**
 * Yield the same sums for a product: likelihoods are convolved, and pairs that agree in a part are omitted, because
 * they need no larger δ.
 * @returns {Generator<Candidate>}
 */
export function* productExcesses(/** @type {import("./mechanisms.js").Dense[]} */ factors, /** @type {bigint} */ p, /** @type {bigint} */ q) {
  /** @type {Likelihoods[]} */
  let found = [[[1n, 1n]]];
  for (const own of factors.map(likelihoods)) {
    const next = new Map();
    for (const before of found) for (const now of own) keep(next, before.flatMap(([a, b]) => now.map(([c, d]) => [a * c, b * d])));
    found = [...next.values()];
  }
  const D = q << BigInt(factors[0].bits * factors.length);
  for (const masses of found) yield [sum(masses.map(([a, b]) => (q * a > p * b ? q * a - p * b : 0n))), D, false];
}

/** Add up the masses of equal ratio, and store the result in `found` unless it is already there. */
function keep(/** @type {Map<string, Likelihoods>} */ found, /** @type {[bigint, bigint][]} */ masses) {
  const sorted = masses.filter(([a, b]) => a || b).sort(([a, b], [c, d]) => order(a * d, c * b));
  /** @type {Likelihoods} */
  const all = [];
  for (const [a, b] of sorted) {
    const [c, d] = all.at(-1) ?? [0n, 0n];
    if (all.length && a * d === c * b) all[all.length - 1] = [a + c, b + d];
    else all.push([a, b]);
  }
  found.set(all.map(([a, b]) => `${a.toString(32)}:${b.toString(32)}`).join(), all);
}
