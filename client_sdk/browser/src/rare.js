// SPDX-License-Identifier: Apache-2.0
/**
 * The two notions that few surveys promise, SRLIP and RLDP, for listed reports and for sets: audit.js loads this when a
 * document asks for it, so that other pages do not carry it. The formulas are those of frankly_protocol/audit.
 */

import { sum } from "./rational.js";
import { aroundAverage, dot, scaledBounds } from "./ratios.js";
import { Search, aroundAverage as aroundAverageOfSets } from "./sets.js";

/** @typedef {import("./ratios.js").Candidate} Candidate */
/** @typedef {import("./sets.js").Shape} Shape */

/** @returns {Generator<Candidate>} */
export function* sideChannelRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
  const masses = joint.map((row) => margins(row, attributes));
  const cells = masses[0].map((_, i) => masses.map((row) => row[i]));
  const present = cells.map((sizes) => [...sizes.keys()].filter((s) => sizes[s]));
  for (const column of columns) {
    const sums = joint.map((row) => margins(row.map((n, x) => n * column[x]), attributes));
    for (const [i, sizes] of cells.entries())
      if (present[i].length > 1) yield* aroundAverage(sums.map((row) => row[i]), sizes, present[i]);
  }
}

/** @returns {Generator<Candidate>} */
export function* robustRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {[number, number][][]} */ bounds, /** @type {boolean} */ diagonal) {
  const [scale, fixed] = scaledBounds(bounds);
  const width = fixed[0].length, free = fixed.map((row) => scale - sum(row));
  const order = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a < b ? -1 : Number(a > b));
  for (const column of columns) {
    const ends = fixed.map((row, s) => {
      const own = column.slice(s * width, (s + 1) * width), rising = [...own].sort(order), known = dot(own, row);
      return [known + free[s] * rising[width - 1], known + free[s] * rising[0]];
    });
    const ranked = (/** @type {number} */ end) => [...ends.keys()].sort((s, t) => order(ends[s][end], ends[t][end]));
    for (const s of ranked(0).slice(-2)) for (const t of ranked(1).slice(0, 2)) if (diagonal || s !== t) yield [ends[s][0], ends[t][1], false];
  }
}

/** A row-major table with a last entry added along every axis: the sum over that attribute. */
function margins(/** @type {bigint[]} */ cells, /** @type {number[]} */ attributes) {
  let inner = 1;
  for (const size of [...attributes].reverse()) {
    /** @type {bigint[]} */
    const table = [];
    for (let start = 0; start < cells.length; start += size * inner) {
      const block = cells.slice(start, start + size * inner);
      table.push(...block);
      for (let i = 0; i < inner; i++) table.push(sum(block.filter((_, k) => k % inner === i)));
    }
    [cells, inner] = [table, inner * (size + 1)];
  }
  return cells;
}

/** @returns {Generator<Candidate>} */
export function* sideChannelRatiosOfSets(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
  const upper = new Search(sets), lower = new Search(sets);
  const all = (/** @type {any[][]} */ axes) => axes.reduce((/** @type {any[][]} */ done, axis) => done.flatMap((head) => axis.map((v) => [...head, v])), [[]]);
  const axes = attributes.map((size) => /** @type {(number | null)[]} */ ([...Array(size).keys()]));
  const values = all(axes);
  for (const condition of all(axes.map((axis) => [...axis, null]))) {
    const fits = values.map((v) => condition.every((k, j) => k === null || k === v[j]));
    const inside = [...fits.keys()].filter((x) => fits[x]);
    upper.spare = lower.spare = [...fits.keys()].filter((x) => !fits[x]);
    yield* aroundAverageOfSets(upper, lower, joint, inside);
  }
}

/** @returns {Generator<Candidate>} */
export function* robustRatiosOfSets(/** @type {Shape} */ sets, /** @type {[number, number][][]} */ bounds, /** @type {boolean} */ diagonal) {
  const [scale, fixed] = scaledBounds(bounds);
  const width = fixed[0].length, low = sets.low * scale, g = sets.high - sets.low;
  const h = sets.size ?? width;
  const j = Math.min(h, width), l = Math.max(0, h - (sets.answers - width));
  const rising = fixed.map((row) => [...row].sort((a, b) => (a < b ? -1 : Number(a > b))));
  const most = (/** @type {bigint[]} */ row) => sum(row.slice(width - j)) + (j ? scale - sum(row) : 0n);
  const least = (/** @type {bigint[]} */ row) => (l === width ? scale : sum(row.slice(0, l)));
  for (const [s, ours] of rising.entries())
    for (const [t, theirs] of rising.entries()) if (s !== t) yield [low + g * most(ours), low + g * least(theirs), false];
  const few = Math.max(1, sets.size === null ? 0 : l);
  if (diagonal && few < width)
    for (const row of rising) {
      const known = sum(row.slice(0, few));
      yield [low + g * (known + scale - sum(row)), low + g * known, false];
    }
}
