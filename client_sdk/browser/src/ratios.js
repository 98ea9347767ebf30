// SPDX-License-Identifier: Apache-2.0
/**
 * The extreme ratios for LDP, from the tables of a mechanism's factors, and for the notions on averages over secrets, from every
 * report's column. The formulas are those of frankly_protocol/audit/ratios.py and products.py. 0/0 is not a ratio; comparisons
 * by cross products skip it.
 */

import { rational, sum } from "./rational.js";

/** @typedef {[bigint, bigint, boolean]} Candidate n, d (0: infinite), and true for P(y)/P(y|s) */

export const dot = (/** @type {bigint[]} */ column, /** @type {bigint[]} */ row) => {
  let total = 0n;
  for (let x = 0; x < row.length; x++) if (row[x]) total += column[x] * row[x];
  return total;
};

/** Yield max_x w_x / min_x w_x of the worst report, which is worst in every factor. @returns {Generator<Candidate>} */
export function* answerRatios(/** @type {import("./mechanisms.js").Dense[]} */ factors) {
  const worst = factors.map(({ weights }) => largest(tableRatios(weights)));
  yield [worst.reduce((all, [n]) => all * n, 1n), worst.reduce((all, [, d]) => all * d, 1n), false];
}

/** @returns {Generator<Candidate>} */
function* tableRatios(/** @type {number[][]} */ weights) {
  for (let y = 0; y < weights[0].length; y++) {
    let high = weights[0][y], low = high;
    for (const row of weights) {
      if (row[y] > high) high = row[y];
      if (row[y] < low) low = row[y];
    }
    yield [BigInt(high), BigInt(low), false];
  }
}

/** Return the largest ratio, at least 1; d = 0 if it is infinite. @returns {[bigint, bigint]} */
export function largest(/** @type {Iterable<Candidate>} */ candidates) {
  /** @type {[bigint, bigint]} */
  let best = [1n, 1n];
  for (const [n, d] of candidates) if (n * best[1] > best[0] * d) best = [n, d];
  return lowest(best);
}

/** Return a ratio in lowest terms; an infinite one unchanged. @returns {[bigint, bigint]} */
export const lowest = (/** @type {[bigint, bigint]} */ [n, d]) => (d ? rational(n, d) : [n, d]);

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
  const everyone = sum(sizes);
  for (const column of columns) yield* aroundAverage(joint.map((row) => dot(column, row)), sizes, everybody, everyone);
}

/** @returns {Generator<Candidate>} */
export function* aroundAverage(/** @type {bigint[]} */ sums, /** @type {bigint[]} */ sizes, /** @type {number[]} */ secrets, everyone = sum(sizes)) {
  const total = sum(sums), [high, low] = extremes(sums, sizes, secrets);
  yield [sums[high] * everyone, total * sizes[high], false];
  yield [total * sizes[low], sums[low] * everyone, true];
}

/** Return the secrets with the largest and the least sums[s] / sizes[s]. */
function extremes(/** @type {bigint[]} */ sums, /** @type {bigint[]} */ sizes, /** @type {number[]} */ secrets) {
  let high = secrets[0], low = high;
  for (let i = 1; i < secrets.length; i++) {
    const s = secrets[i];
    if (sums[s] * sizes[high] > sums[high] * sizes[s]) high = s;
    else if (sums[s] * sizes[low] < sums[low] * sizes[s]) low = s;
  }
  return [high, low];
}
