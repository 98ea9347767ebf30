// SPDX-License-Identifier: Apache-2.0
/**
 * The extreme ratios of every report's column under each notion, for tables and products that are listed; the formulas
 * are those of frankly_protocol/audit/ratios.py and products.py. 0/0 is no ratio: whoever compares passes over it.
 */

import { gcd, rational, sum } from "./rational.js";

/** @typedef {[bigint, bigint, boolean]} Candidate n, d (0: infinite), and whether it is P(y) over P(y|s) */

/** The columns of a table. @returns {Generator<bigint[]>} */
export function* columnsOf(/** @type {import("./mechanisms.js").Dense} */ m) {
  for (let y = 0; y < m.weights[0].length; y++) yield m.weights.map((row) => BigInt(row[y]));
}

/** The columns of a product, the last part fastest. @returns {Generator<bigint[]>} */
export function* productColumns(/** @type {import("./mechanisms.js").Dense[]} */ factors, /** @type {bigint[]} */ head = [1n]) {
  if (!factors.length) return yield head;
  for (const part of columnsOf(factors[0])) yield* productColumns(factors.slice(1), head.flatMap((w) => part.map((v) => w * v)));
}

export const dot = (/** @type {bigint[]} */ column, /** @type {bigint[]} */ row) => {
  let total = 0n;
  for (let x = 0; x < row.length; x++) if (row[x]) total += column[x] * row[x];
  return total;
};

/** @returns {Generator<Candidate>} */
export function* answerRatios(/** @type {import("./mechanisms.js").Dense} */ m) {
  for (let y = 0; y < m.weights[0].length; y++) {
    let high = m.weights[0][y], low = high;
    for (const row of m.weights) {
      if (row[y] > high) high = row[y];
      if (row[y] < low) low = row[y];
    }
    yield [BigInt(high), BigInt(low), false];
  }
}

/** The worst reports of all factors together. @returns {Generator<Candidate>} */
export function* productAnswerRatios(/** @type {import("./mechanisms.js").Dense[]} */ factors) {
  const worst = factors.map((factor) => largest(answerRatios(factor)));
  yield [worst.reduce((all, [n]) => all * n, 1n), worst.reduce((all, [, d]) => all * d, 1n), false];
}

/** The largest ratio from `least` on, d = 0 if infinite. @returns {[bigint, bigint]} */
export function largest(/** @type {Iterable<Candidate>} */ candidates, least = 1n) {
  /** @type {[bigint, bigint]} */
  let best = [least, 1n];
  for (const [n, d] of candidates) if (n * best[1] > best[0] * d) best = [n, d];
  return best[1] ? rational(...best) : best;
}

/** @returns {Generator<Candidate>} */
export function* secretRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint) {
  const sizes = joint.map(sum), everybody = [...sizes.keys()];
  for (const column of columns) {
    const sums = joint.map((row) => dot(column, row));
    const [high, low] = extremes(sums, sizes, everybody);
    yield [sums[high] * sizes[low], sums[low] * sizes[high], false];
  }
}

/** @returns {Generator<Candidate>} */
export function* averageRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint) {
  const sizes = joint.map(sum), everybody = [...sizes.keys()];
  for (const column of columns) yield* aroundAverage(joint.map((row) => dot(column, row)), sizes, everybody);
}

/** A common denominator of the bounds, and their numerators over it. @returns {[bigint, bigint[][]]} */
export function scaledBounds(/** @type {[number, number][][]} */ bounds) {
  const scale = bounds.flat().reduce((all, [, d]) => (all / gcd(all, BigInt(d))) * BigInt(d), 1n);
  return [scale, bounds.map((row) => row.map(([n, d]) => BigInt(n) * (scale / BigInt(d))))];
}

/** Σ_y max(0, Q(y|x) − p/q·Q(y|z)) over pairs x ≠ z: the δ for a level ln p/q. @returns {Generator<Candidate>} */
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

/** @typedef {[bigint, bigint][]} Likelihoods masses under two answers, those of one ratio added up */

/** The different likelihoods over pairs of a factor's answers. @returns {Likelihoods[]} */
export function likelihoods(/** @type {import("./mechanisms.js").Dense} */ factor) {
  const found = new Map();
  for (const [i, ours] of factor.weights.entries())
    for (const [j, theirs] of factor.weights.entries())
      if (i !== j) keep(found, ours.map((w, y) => [BigInt(w), BigInt(theirs[y])]));
  return [...found.values()];
}

/** The same for a product: likelihoods convolve, and pairs that agree in a part show no more. @returns {Generator<Candidate>} */
export function* productExcesses(/** @type {import("./mechanisms.js").Product} */ m, /** @type {bigint} */ p, /** @type {bigint} */ q) {
  /** @type {Likelihoods[]} */
  let found = [[[1n, 1n]]];
  for (const own of m.factors.map(likelihoods)) {
    const next = new Map();
    for (const before of found) for (const now of own) keep(next, before.flatMap(([a, b]) => now.map(([c, d]) => [a * c, b * d])));
    found = [...next.values()];
  }
  const D = q << BigInt(m.bits * m.factors.length);
  for (const masses of found) yield [sum(masses.map(([a, b]) => (q * a > p * b ? q * a - p * b : 0n))), D, false];
}

function keep(/** @type {Map<string, Likelihoods>} */ found, /** @type {[bigint, bigint][]} */ masses) {
  /** @type {Map<string, [bigint, bigint]>} */
  const together = new Map();
  for (const [a, b] of masses) {
    const common = gcd(a, b);
    if (!common) continue;
    const key = `${a / common}:${b / common}`, [c, d] = together.get(key) ?? [0n, 0n];
    together.set(key, [a + c, b + d]);
  }
  const all = [...together.values()];
  found.set(all.map(([a, b]) => `${a}:${b}`).sort().join(), all);
}

/** P(S = sensitive | y). @returns {Generator<Candidate>} */
export function* posteriors(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number} */ sensitive) {
  const everybody = joint[0].map((_, x) => sum(joint.map((row) => row[x])));
  for (const column of columns) yield [dot(column, joint[sensitive]), dot(column, everybody), false];
}

/** @returns {Generator<Candidate>} */
export function* aroundAverage(/** @type {bigint[]} */ sums, /** @type {bigint[]} */ sizes, /** @type {number[]} */ secrets) {
  const total = sum(sums), everyone = sum(sizes), [high, low] = extremes(sums, sizes, secrets);
  yield [sums[high] * everyone, total * sizes[high], false];
  yield [total * sizes[low], sums[low] * everyone, true];
}

/** The secrets with the largest and the least sums[s] / sizes[s]. */
function extremes(/** @type {bigint[]} */ sums, /** @type {bigint[]} */ sizes, /** @type {number[]} */ secrets) {
  let high = secrets[0], low = high;
  for (const s of secrets) {
    if (sums[s] * sizes[high] > sums[high] * sizes[s]) high = s;
    if (sums[s] * sizes[low] < sums[low] * sizes[s]) low = s;
  }
  return [high, low];
}
