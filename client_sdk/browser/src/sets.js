// SPDX-License-Identifier: Apache-2.0
/**
 * The notions on unary and subset mechanisms, without listing their reports: every report's column is `high` on a set H
 * of answers and `low` off it. The argument, and why the search ends at the maximum, is in frankly_protocol/audit/sets.py.
 */

import { gcd, sum } from "./rational.js";

/**
 * @typedef {import("./ratios.js").Candidate} Candidate
 * @typedef {{answers: number, high: bigint, low: bigint, size: number | null, scale: bigint}} Shape
 * @typedef {[number, bigint, bigint]} Cell an answer, and its counts under two distributions
 */

/** @returns {Shape} */
export function shapeOf(/** @type {import("./mechanisms.js").Unary | import("./mechanisms.js").Subset} */ m) {
  const D = 1n << BigInt(m.bits), a = m.answers;
  let on, off, scale, size;
  if (m.kind === "unary") {
    const k = BigInt(m.keep), f = BigInt(m.flip);
    [on, off, scale] = [k * (D - f), (D - k) * f, D * D];
    size = f === 0n ? 1 : f === D ? a - 1 : null;
  } else {
    const i = BigInt(m.inside), d = BigInt(m.size);
    [on, off, scale] = [i * (BigInt(a) - d), (D - i) * d, D * BigInt(a - 1)];
    size = m.size;
  }
  if (on >= off) return { answers: a, high: on, low: off, size, scale };
  return { answers: a, high: off, low: on, size: size === null ? null : a - size, scale };
}

/** The largest ratio so far, from which every further search begins (Dinkelbach). */
export class Search {
  n = 1n;
  d = 1n;
  /** @type {number[]} */ spare = [];

  constructor(/** @type {Shape} */ sets) {
    this.sets = sets;
  }

  /** The largest ratio of averages if it exceeds all before; A and C are the totals of the counts. @returns {Candidate | null} */
  better(/** @type {Cell[]} */ cells, /** @type {bigint} */ A, /** @type {bigint} */ C, low = false) {
    let found = false;
    const { low: off, high } = this.sets, g = high - off;
    while (this.d) {
      const H = this.#best(cells, A, C);
      const inside = cells.filter(([x]) => H.has(x));
      const n = (off * A + g * sum(inside.map((cell) => cell[1]))) * C;
      const d = (off * C + g * sum(inside.map((cell) => cell[2]))) * A;
      if (n * this.d <= this.n * d) break;
      const common = gcd(n, d);
      [this.n, this.d, found] = [n / common, d / common, true];
    }
    return found ? [this.n, this.d, low] : null;
  }

  #best(/** @type {Cell[]} */ cells, /** @type {bigint} */ A, /** @type {bigint} */ C) {
    const p = C * this.d, q = A * this.n;
    if (this.sets.size === null) return new Set(cells.filter(([, a, c]) => a * p > c * q).map(([x]) => x));
    const gains = [...cells.map(([x, a, c]) => /** @type {[bigint, number]} */ ([c * q - a * p, x])), ...this.spare.map((x) => /** @type {[bigint, number]} */ ([0n, x]))];
    gains.sort(([v, x], [w, z]) => (v < w ? -1 : v > w ? 1 : x - z));
    return new Set(gains.slice(0, this.sets.size).map(([, x]) => x));
  }
}

/** @returns {Generator<Candidate>} */
export function* secretRatios(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint) {
  const search = new Search(sets);
  for (const [s, ours] of joint.entries())
    for (const [t, theirs] of joint.entries()) {
      const found = s !== t && search.better(ours.map((a, x) => [x, a, theirs[x]]), sum(ours), sum(theirs));
      if (found) yield found;
    }
}

/** @returns {Generator<Candidate>} */
export function* averageRatios(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint) {
  yield* aroundAverageOfSets(new Search(sets), new Search(sets), joint, [...Array(sets.answers).keys()]);
}

/** @returns {Generator<Candidate>} */
export function* aroundAverageOfSets(/** @type {Search} */ upper, /** @type {Search} */ lower, /** @type {bigint[][]} */ joint, /** @type {number[]} */ inside) {
  const everybody = inside.map((x) => sum(joint.map((row) => row[x])));
  const total = sum(everybody);
  for (const row of joint) {
    const own = inside.map((x) => row[x]), mass = sum(own);
    if (mass === 0n || mass === total) continue; // a secret that cannot be, or is certain, beside x_J
    const up = upper.better(inside.map((x, i) => [x, own[i], everybody[i]]), mass, total);
    if (up) yield up;
    const down = lower.better(inside.map((x, i) => [x, everybody[i], own[i]]), total, mass, true);
    if (down) yield down;
  }
}
