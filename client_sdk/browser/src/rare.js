// SPDX-License-Identifier: Apache-2.0
/**
 * The notions that few surveys promise: SRLIP, RLDP, (ε, δ) and bounds on posteriors, for listed reports and for sets.
 * audit.js loads this when a document asks for it, so that other pages do not carry it. The formulas are those of
 * frankly_protocol/audit.
 */

import { MAX_WORK } from "./audit.js";
import { excesses, likelihoods, productExcesses } from "./delta.js";
import { DocumentRejected } from "./errors.js";
import { gcd, sum } from "./rational.js";
import { aroundAverage, columnsOf, dot } from "./ratios.js";
import { Search, aroundAverageOfSets, shapeOf } from "./sets.js";

/** @typedef {import("./ratios.js").Candidate} Candidate */
/** @typedef {import("./sets.js").Shape} Shape */
/** @typedef {import("./audit.js").Claim} Claim */
/** @typedef {import("./mechanisms.js").Mechanism} Mechanism */

const product = (/** @type {number[]} */ values) => values.reduce((a, b) => a * b, 1);

const refuse = (/** @type {Claim} */ { notion }, /** @type {string} */ field, /** @type {string} */ words) => new DocumentRejected("privacy", field, `${notion}: ${words}`);

/** Refuse what these notions may not say beyond what audit.js has looked at. */
export function requireSound(/** @type {Claim} */ claim, /** @type {number} */ answers) {
  const { attributes, delta, lower_bounds: bounds } = claim;
  if (attributes && product(attributes) !== answers) throw refuse(claim, "attributes", `the attributes' sizes must multiply to ${answers}, the number of answers`);
  if (delta && delta[0] >= delta[1]) throw refuse(claim, "delta", "delta is less than 1");
  for (const [s, row] of (bounds ?? []).entries()) {
    if (row.length * /** @type {any[]} */ (bounds).length !== answers) throw refuse(claim, `lower_bounds[${s}]`, `the rows must be equally long and hold ${answers} bounds in all`);
    const [scale, [own]] = scaledBounds([row]);
    if (sum(own) > scale) throw refuse(claim, `lower_bounds[${s}]`, "the row's bounds on probabilities sum to more than 1");
  }
}

/** About how many multiplications verifying a sound claim takes. @returns {number} */
export function work(/** @type {Mechanism} */ m, /** @type {Claim} */ { notion, joint, attributes, lower_bounds: bounds }, /** @type {boolean} */ isSet) {
  const secrets = (joint ?? bounds ?? []).length, cells = product((attributes ?? []).map((size) => size + 1)), reports = Number(m.reports);
  if (notion === "dp") {
    if (isSet) return m.answers;
    if (m.kind !== "product") return m.answers ** 2 * reports;
    if (m.factors.reduce((all, f) => all + f.answers ** 2 * Number(f.reports), 0) > MAX_WORK / 80) return MAX_WORK + 1;
    return 80 * product(m.factors.map((f) => likelihoods(f).reduce((all, own) => all + own.length, 0)));
  }
  if (isSet) return 8 * m.answers * (notion === "rldp" ? secrets ** 2 : 2 * secrets * cells);
  return reports * (m.answers + (attributes ? cells : m.answers) * (secrets || 1));
}

/** The ratios to compare with what is claimed. @returns {Iterable<Candidate>} */
export function candidates(/** @type {Mechanism} */ m, /** @type {Claim} */ claim, /** @type {bigint[][]} */ joint) {
  const { notion, attributes = [], lower_bounds: bounds = [], diagonal = false, sensitive = 0 } = claim;
  const [p, q] = (claim.level ?? [1, 1]).map(BigInt);
  if (m.kind === "unary" || m.kind === "subset") {
    const shape = shapeOf(m);
    if (notion === "dp") return excessesOfSets(shape, p, q);
    if (notion === "srlip") return sideChannelRatiosOfSets(shape, joint, attributes);
    if (notion === "rldp") return robustRatiosOfSets(shape, bounds, diagonal);
    return posteriorsOfSets(shape, joint, sensitive);
  }
  if (notion === "dp") return m.kind === "dense" ? excesses(m, p, q) : productExcesses(m, p, q);
  const columns = columnsOf(m);
  if (notion === "srlip") return sideChannelRatios(columns, joint, attributes);
  if (notion === "rldp") return robustRatios(columns, bounds, diagonal);
  return posteriors(columns, joint, sensitive);
}

/** A common denominator of the bounds, and their numerators over it. @returns {[bigint, bigint[][]]} */
function scaledBounds(/** @type {[number, number][][]} */ bounds) {
  const scale = bounds.flat().reduce((all, [, d]) => (all / gcd(all, BigInt(d))) * BigInt(d), 1n);
  return [scale, bounds.map((row) => row.map(([n, d]) => BigInt(n) * (scale / BigInt(d))))];
}

/** @returns {Generator<Candidate>} */
function* sideChannelRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
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
function* robustRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {[number, number][][]} */ bounds, /** @type {boolean} */ diagonal) {
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

/** P(S = sensitive | y). @returns {Generator<Candidate>} */
function* posteriors(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number} */ sensitive) {
  const everybody = joint[0].map((_, x) => sum(joint.map((row) => row[x])));
  for (const column of columns) yield [dot(column, joint[sensitive]), dot(column, everybody), false];
}

/** @returns {Generator<Candidate>} */
function* sideChannelRatiosOfSets(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
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
function* robustRatiosOfSets(/** @type {Shape} */ sets, /** @type {[number, number][][]} */ bounds, /** @type {boolean} */ diagonal) {
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

/** @returns {Generator<Candidate>} */
function* excessesOfSets(/** @type {Shape} */ sets, /** @type {bigint} */ p, /** @type {bigint} */ q) {
  const n = q * sets.high - p * sets.low;
  yield [n > 0n ? n : 0n, q * sets.scale, false];
}

/** @returns {Generator<Candidate>} */
function* posteriorsOfSets(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint, /** @type {number} */ sensitive) {
  const own = joint[sensitive], everybody = own.map((_, x) => sum(joint.map((row) => row[x])));
  const mass = sum(own), total = sum(everybody);
  yield [mass, total, false];
  const found = new Search(sets).better(own.map((a, x) => [x, a, everybody[x]]), mass, total);
  if (found) yield [found[0] * mass, found[1] * total, false];
}
