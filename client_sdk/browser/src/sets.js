// SPDX-License-Identifier: Apache-2.0
/**
 * Privacy notions on unary and subset mechanisms, without listing their reports: every report's column is `high` on a set
 * H of answers and `low` elsewhere. frankly_protocol/audit/sets.py explains this, and why the search finds the maximum.
 */

import { DocumentRejected } from "./errors.js";
import { gcd, sum } from "./rational.js";

/**
 * @typedef {import("./ratios.js").Candidate} Candidate
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {{answers: number, high: bigint, low: bigint, size: number | null, scale: bigint, spare: number}} Shape
 *   spare: units for sorting an answer that a search leaves out
 * @typedef {[number, bigint, bigint]} Cell an answer, and its counts under two distributions
 */

/**
 * Return the shape of reports that are sets: `held` and `missed` are the weights of one that holds the true answer and of one that
 * does not, `size` that of every set, null if they differ.
 * @returns {Shape}
 */
export function shapeOf(
  /** @type {number} */ answers, /** @type {bigint} */ held, /** @type {bigint} */ missed,
  /** @type {bigint} */ scale, /** @type {number | null} */ size, /** @type {number} */ spare,
) {
  if (held >= missed) return { answers, high: held, low: missed, size, scale, spare };
  return { answers, high: missed, low: held, size: size === null ? null : answers - size, scale, spare };
}

/** Return the step limit of this many searches together: a fixed part, and a part for each search. */
export const searchSteps = (/** @type {number} */ searches) => 64 + 2 * searches;

/** Return the units for averages over secrets, in conditions that fix each attribute or leave it free. */
export function workOfAverages(/** @type {Shape} */ { answers, spare }, /** @type {Claim} */ { joint = [], attributes = [] }) {
  const cells = attributes.reduce((all, size) => all * (size + 1), 1);
  return 2 * (51200 * answers + joint.length * (2 * (800 * answers * 2 ** attributes.length + answers * cells * spare) + 8000 * cells));
}

/** The largest ratio so far, at which every further search begins (Dinkelbach). */
export class Search {
  n = 1n;
  d = 1n;
  /** @type {number[]} */ spare = [];

  constructor(/** @type {Shape} */ sets, /** @type {number} */ searches) {
    this.sets = sets;
    this.steps = searchSteps(searches);
  }

  /**
   * Return the largest ratio of averages, null unless it exceeds the largest so far; A and C are the totals of the
   * counts.
   * @returns {Candidate | null}
   */
  better(/** @type {Cell[]} */ cells, /** @type {bigint} */ A, /** @type {bigint} */ C, low = false) {
    let found = false;
    const { low: off, high } = this.sets, g = high - off;
    while (this.d) {
      if (this.steps-- === 0) throw new DocumentRejected("work_limit", "prior", "long_search");
      const [a, c] = this.#best(cells, A, C);
      const n = (off * A + g * a) * C, d = (off * C + g * c) * A;
      if (n * this.d <= this.n * d) break;
      const common = gcd(n, d);
      [this.n, this.d, found] = [n / common, d / common, true];
    }
    return found ? [this.n, this.d, low] : null;
  }

  /** Return the counts on the set H that exceeds the current ratio by the largest amount. @returns {[bigint, bigint]} */
  #best(/** @type {Cell[]} */ cells, /** @type {bigint} */ A, /** @type {bigint} */ C) {
    const p = C * this.d, q = A * this.n, { size } = this.sets;
    let inside = cells;
    if (size === null) inside = cells.filter(([, a, c]) => a * p > c * q);
    else {
      const all = [...cells, ...this.spare.map((x) => /** @type {Cell} */ ([x, 0n, 0n]))];
      const losses = all.map(([x, a, c]) => /** @type {[bigint, number, Cell]} */ ([c * q - a * p, x, [x, a, c]]));
      losses.sort(([v, x], [w, z]) => (v < w ? -1 : v > w ? 1 : x - z));
      inside = losses.slice(0, size).map(([, , cell]) => cell);
    }
    return inside.reduce(([a, c], cell) => [a + cell[1], c + cell[2]], [0n, 0n]);
  }
}

/** @returns {Generator<Candidate>} */
export function* secretRatios(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint) {
  const search = new Search(sets, joint.length * (joint.length - 1));
  for (const [s, ours] of joint.entries())
    for (const [t, theirs] of joint.entries()) {
      const found = s !== t && search.better(ours.map((a, x) => [x, a, theirs[x]]), sum(ours), sum(theirs));
      if (found) yield found;
    }
}

/** @returns {Generator<Candidate>} */
export function* averageRatios(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint) {
  yield* aroundAverageOfSets(new Search(sets, joint.length), new Search(sets, joint.length), joint, [...Array(sets.answers).keys()]);
}

/** @returns {Generator<Candidate>} */
export function* aroundAverageOfSets(/** @type {Search} */ upper, /** @type {Search} */ lower, /** @type {bigint[][]} */ joint, /** @type {number[]} */ inside) {
  const everybody = inside.map((x) => sum(joint.map((row) => row[x])));
  const total = sum(everybody);
  for (const row of joint) {
    const own = inside.map((x) => row[x]), mass = sum(own);
    if (mass === 0n || mass === total) continue; // a secret that is impossible or certain given x_J
    const up = upper.better(inside.map((x, i) => [x, own[i], everybody[i]]), mass, total);
    if (up) yield up;
    const down = lower.better(inside.map((x, i) => [x, everybody[i], own[i]]), total, mass, true);
    if (down) yield down;
  }
}
