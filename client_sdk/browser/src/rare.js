// SPDX-License-Identifier: Apache-2.0
/**
 * The notions that few surveys promise: SRLIP, RLDP, (ε, δ), levels of pairs and bounds on posteriors, for listed reports and for sets.
 * parts.js loads this module only if a document needs it, to keep other pages small. The formulas are those of
 * frankly_protocol/audit.
 */

import { listing, masses, sizeOf, workOfAverages } from "./audit.js";
import { excesses, likelihoods, productExcesses } from "./delta.js";
import { DocumentRejected } from "./errors.js";
import { ONE, compare, gcd, order, productWith, rational, sum } from "./rational.js";
import { aroundAverage, dot } from "./ratios.js";
import { flag, identifier, integer, list, optional, ratio, reject, text, under } from "./schema.js";
import { Search, aroundAverageOfSets, searchSteps, workOfAverages as workOfAveragesOfSets } from "./sets.js";
import { isStratified } from "./survey.js";

/** @typedef {import("./ratios.js").Candidate} Candidate */
/** @typedef {import("./sets.js").Shape} Shape */
/** @typedef {import("./audit.js").Claim} Claim */
/** @typedef {import("./mechanisms.js").Numbered} Mechanism */
/** @typedef {import("./mechanisms.js").Listed} Listed */
/** @typedef {import("./survey.js").Block} Block */
/** @typedef {import("./rational.js").Rational} Rational */

const level = optional(ratio());

/** Readers of the fields that only claims of these notions have. @type {Record<string, import("./schema.js").Read<any>>} */
export const FIELDS = {
  delta: ratio(0),
  attributes: list(1, 8, integer(2, 256)),
  lower_bounds: list(2, 256, list(1, 128, ratio(0))),
  diagonal: flag,
  levels: list(2, 256, list(2, 256, level)),
  secret: identifier,
  source: text(),
  sensitive: identifier,
};

/** Return the position of the sensitive secret. */
export function placeOf(/** @type {string} */ sensitive, /** @type {string[]} */ secrets, /** @type {string} */ path) {
  const place = secrets.indexOf(sensitive);
  if (place < 0) throw reject(under(path, "sensitive"), "no_secret");
  return place;
}

const product = (/** @type {number[]} */ values) => values.reduce((a, b) => a * b, 1);

const refuse = (/** @type {Claim} */ { notion }, /** @type {string} */ field, /** @type {string} */ words) => new DocumentRejected("privacy", field, `${notion}: ${words}`);

/** Return the words of the bounds' least common denominator, at most. */
const wordsOf = (/** @type {[number, number][][]} */ bounds) =>
  Math.ceil([...new Set(bounds.flat().map(([, d]) => d))].reduce((all, d) => all + d.toString(2).length, 0) / 64);

/** What each notion is, as in audit.js, but of listed reports and of sets. @type {Record<string, import("./audit.js").Notion>} */
export const NOTIONS = {
  dp: {
    fields: "level delta", bounds: ["delta"],
    requireSound(claim) {
      if (claim.delta[0] >= claim.delta[1]) throw refuse(claim, "delta", "delta is less than 1");
    },
    units: (/** @type {Mechanism} */ { sets, factors = [] }) =>
      (sets ? 0 : factors.reduce((all, f) => all + f.answers ** 2 * (5000 + (factors.length > 1 ? 2000 : 120) * Number(f.reports)), 0)),
    // Convolving takes as long as there are different likelihoods.
    counted: (/** @type {import("./mechanisms.js").Product} */ m) =>
      (m.factors?.length > 1 ? 650 * sizeOf(m) * product(m.factors.map((f) => likelihoods(f).reduce((all, own) => all + own.length, 0))) : 0),
    candidates(/** @type {Mechanism} */ { sets, factors = [] }, { level }) {
      const [p, q] = (level ?? [1, 1]).map(BigInt);
      if (sets) return excessesOfSets(sets, p, q);
      return factors.length > 1 ? productExcesses(factors, p, q) : excesses(factors[0], p, q);
    },
  },
  srlip: {
    fields: "level prior attributes",
    requireSound(claim, answers) {
      if (product(claim.attributes) !== answers)
        throw refuse(claim, "attributes", `the attributes' sizes must multiply to ${answers}, the number of answers`);
    },
    units(/** @type {Mechanism} */ m, /** @type {Required<Claim>} */ claim) {
      if (m.sets) return workOfAveragesOfSets(m.sets, claim);
      const { joint, attributes } = claim, cells = product(attributes.map((size) => size + 1));
      return workOfAverages(/** @type {Listed} */ (m), joint.length, masses(joint), cells, joint.length * cells * 40);
    },
    candidates: ({ sets, columns }, { attributes }, joint) =>
      (sets ? sideChannelRatiosOfSets(sets, joint, attributes) : sideChannelRatios(columns(), joint, attributes)),
  },
  rldp: {
    fields: "level lower_bounds diagonal secret source", isOdds: true,
    requireSound(claim, answers) {
      for (const [s, row] of claim.lower_bounds.entries()) {
        if (row.length * claim.lower_bounds.length !== answers)
          throw refuse(claim, `lower_bounds[${s}]`, `the rows must be equally long and hold ${answers} bounds in all`);
        const [scale, [own]] = scaledBounds([row]);
        if (sum(own) > scale) throw refuse(claim, `lower_bounds[${s}]`, "the row's bounds on probabilities sum to more than 1");
      }
    },
    units(/** @type {Mechanism} */ m, { lower_bounds: bounds }) {
      const a = m.answers, secrets = bounds.length, words = wordsOf(bounds);
      if (m.sets) return a * 300 * (3 + words) + secrets * 2000 + a * a * 40;
      const listed = /** @type {Listed} */ (m), large = sizeOf(listed) + words;
      return listing(listed) + a * 300 * large + Number(m.reports) * (a * (250 + 3 * large) + secrets * (800 + 3 * large) + 24 * large * large);
    },
    candidates: ({ sets, columns }, { lower_bounds: bounds, diagonal }) =>
      (sets ? robustRatiosOfSets(sets, bounds) : robustRatios(columns(), bounds, diagonal)),
  },
  dpv: {
    fields: "level prior sensitive", isChance: true,
    units: (/** @type {Mechanism} */ m) => (m.sets ? 800 * m.answers * searchSteps(1) : workOfAverages(/** @type {Listed} */ (m), 2, 2 * m.answers)),
    candidates: ({ sets, columns }, { sensitive }, joint) => (sets ? posteriorsOfSets(sets, joint, sensitive) : posteriors(columns(), joint, sensitive)),
  },
  "metric-ldp": {
    fields: "level levels",
    requireSound(claim, answers) {
      const { levels } = /** @type {Required<Claim>} */ (claim);
      if (levels.length !== answers) throw refuse(claim, "levels", `levels of pairs need ${answers} rows, one for each answer`);
      for (const [x, row] of levels.entries()) {
        const at = `levels[${x}]`;
        if (row.length !== answers) throw refuse(claim, at, `every row of levels needs ${answers} columns`);
        if (row[x]) throw refuse(claim, at, "an answer has no level against itself: give null");
        if (row.some((one) => one && one[0] < one[1])) throw refuse(claim, at, "a level of a pair is null or a ratio p/q ≥ 1");
      }
      if (!levels.flat().some(Boolean)) throw refuse(claim, "levels", "without a level for any pair nothing is promised");
    },
    units: (/** @type {Mechanism} */ m, { levels }) => m.answers * m.answers * 3000
      + (m.sets ? 0 : Number(m.reports) * (m.answers * 40 + levels.flat().filter(Boolean).length * 200) * sizeOf(/** @type {Listed} */ (m))),
    candidates({ sets, columns }, { levels }) {
      const pairs = listed(levels);
      // For any two answers, there is a report whose set contains the first but not the second.
      return sets ? pairRatios([[sets.high, sets.low]], pairs.map(([, , n, d]) => [0, 1, n, d])) : pairRatios(columns(), pairs);
    },
  },
};

/** Return [x, z, p, q] for every level p/q of an answer x against another z. @returns {[number, number, bigint, bigint][]} */
const listed = (/** @type {([number, number] | null)[][]} */ levels) =>
  levels.flatMap((row, x) => row.flatMap((one, z) => (one ? [/** @type {[number, number, bigint, bigint]} */ ([x, z, BigInt(one[0]), BigInt(one[1])])] : [])));

/** @returns {Generator<Candidate>} */
function* pairRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {[number, number, bigint, bigint][]} */ pairs) {
  for (const column of columns) for (const [x, z, p, q] of pairs) yield [column[x] * q, column[z] * p, false];
}

/** Return a common denominator of the bounds, and their numerators over it. @returns {[bigint, bigint[][]]} */
function scaledBounds(/** @type {[number, number][][]} */ bounds) {
  const scale = bounds.flat().reduce((all, [, d]) => (all / gcd(all, BigInt(d))) * BigInt(d), 1n);
  return [scale, bounds.map((row) => row.map(([n, d]) => BigInt(n) * (scale / BigInt(d))))];
}

/** @returns {Generator<Candidate>} */
function* sideChannelRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
  const masses = joint.map((row) => margins(row, attributes));
  const cells = masses[0].map((_, i) => masses.map((row) => row[i]));
  const present = cells.map((sizes) => [...sizes.keys()].filter((s) => sizes[s])), everyone = cells.map(sum);
  for (const column of columns) {
    const sums = joint.map((row) => margins(row.map((n, x) => n * column[x]), attributes));
    for (let i = 0; i < cells.length; i++)
      if (present[i].length > 1) yield* aroundAverage(sums.map((row) => row[i]), cells[i], present[i], everyone[i]);
  }
}

/** @returns {Generator<Candidate>} */
function* robustRatios(/** @type {Iterable<bigint[]>} */ columns, /** @type {[number, number][][]} */ bounds, /** @type {boolean} */ diagonal) {
  const [scale, fixed] = scaledBounds(bounds);
  const width = fixed[0].length, free = fixed.map((row) => scale - sum(row));
  for (const column of columns) {
    const ends = fixed.map((row, s) => {
      const own = column.slice(s * width, (s + 1) * width), known = dot(own, row);
      const [low, high] = own.reduce(([least, most], w) => [w < least ? w : least, w > most ? w : most], [own[0], own[0]]);
      return [known + free[s] * high, known + free[s] * low];
    });
    const ranked = (/** @type {number} */ end) => [...ends.keys()].sort((s, t) => order(ends[s][end], ends[t][end]));
    for (const s of ranked(0).slice(-2)) for (const t of ranked(1).slice(0, 2)) if (diagonal || s !== t) yield [ends[s][0], ends[t][1], false];
  }
}

/** Return a row-major table with an extra last entry along every axis, the sum over that axis. */
function margins(/** @type {bigint[]} */ cells, /** @type {number[]} */ attributes) {
  let inner = 1;
  for (const size of [...attributes].reverse()) {
    /** @type {bigint[]} */
    const table = [], step = size * inner;
    for (let start = 0; start < cells.length; start += step) {
      for (let i = start; i < start + step; i++) table.push(cells[i]);
      for (let i = start; i < start + inner; i++) {
        let total = cells[i];
        for (let k = i + inner; k < start + step; k += inner) total += cells[k];
        table.push(total);
      }
    }
    [cells, inner] = [table, inner * (size + 1)];
  }
  return cells;
}

/** Yield P(S = sensitive | y). @returns {Generator<Candidate>} */
function* posteriors(/** @type {Iterable<bigint[]>} */ columns, /** @type {bigint[][]} */ joint, /** @type {number} */ sensitive) {
  const everybody = joint[0].map((_, x) => sum(joint.map((row) => row[x])));
  for (const column of columns) yield [dot(column, joint[sensitive]), dot(column, everybody), false];
}

/** @returns {Generator<Candidate>} */
function* sideChannelRatiosOfSets(/** @type {Shape} */ sets, /** @type {bigint[][]} */ joint, /** @type {number[]} */ attributes) {
  const searches = joint.length * product(attributes.map((size) => size + 1));
  const upper = new Search(sets, searches), lower = new Search(sets, searches);
  // The answers that meet each condition; a condition fixes the value of an attribute or leaves it free.
  const conditions = attributes.reduce((/** @type {number[][]} */ known, size) => {
    const values = [...Array(size).keys()];
    return known.flatMap((found) => [...values.map((k) => [k]), values].map((some) => found.flatMap((x) => some.map((k) => x * size + k))));
  }, [[0]]);
  for (const inside of conditions) {
    const known = new Set(inside);
    if (sets.size !== null) upper.spare = lower.spare = [...joint[0].keys()].filter((x) => !known.has(x));
    yield* aroundAverageOfSets(upper, lower, joint, inside);
  }
}

/** Yield ratios of two different secrets; a secret compared with itself adds nothing, as audit/sets.py proves. @returns {Generator<Candidate>} */
function* robustRatiosOfSets(/** @type {Shape} */ sets, /** @type {[number, number][][]} */ bounds) {
  const [scale, fixed] = scaledBounds(bounds);
  const width = fixed[0].length, low = sets.low * scale, g = sets.high - sets.low;
  const h = sets.size ?? width;
  const j = Math.min(h, width), l = Math.max(0, h - (sets.answers - width));
  const rising = fixed.map((row) => [...row].sort(order));
  // As for listed reports, the two largest suprema and the two least infima give the largest ratio of two different secrets.
  const ends = rising.map((row) => [sum(row.slice(width - j)) + scale - sum(row), sum(row.slice(0, l))]);
  const ranked = (/** @type {number} */ end) => [...ends.keys()].sort((s, t) => order(ends[s][end], ends[t][end]));
  for (const s of ranked(0).slice(-2)) for (const t of ranked(1).slice(0, 2)) if (s !== t) yield [low + g * ends[s][0], low + g * ends[t][1], false];
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
  const found = new Search(sets, 1).better(own.map((a, x) => [x, a, everybody[x]]), mass, total);
  if (found) yield [found[0] * mass, found[1] * total, false];
}

/** Return the (ε, δ) promises below their block's ceiling: first those of infinite ceilings, each by δ, position and ε. */
export function approximate(/** @type {Block[]} */ blocks) {
  const found = blocks.flatMap(({ promises, ceiling }, i) => promises.flatMap(({ claim: { level, delta } }) => {
    const odds = delta && level && rational(...level);
    return odds && compare(odds, ceiling) < 0 ? [{ i, odds, delta: rational(...delta), isFinite: Number(Boolean(ceiling)) }] : [];
  }));
  return found.sort((a, b) => a.isFinite - b.isFinite || compare(a.delta, b.delta) || a.i - b.i || compare(a.odds, b.odds));
}

/** Return the bounds on posteriors. @returns {import("./ledger.js").Posterior[]} */
export function posteriorsOf(/** @type {Block[]} */ blocks, /** @type {(Rational | null)[]} */ ceilings, /** @type {boolean} */ hasStrata) {
  const others = productWith(ceilings);
  return blocks.flatMap(({ id, promises }, i) => promises.flatMap((promise) => {
    const { secret, claim: { sensitive, level } } = promise;
    if (sensitive === undefined || secret === null || !level) return [];
    const isBounded = isStratified(promise) || !hasStrata;
    const bound = isBounded ? others(i, rational(...level)) : null;
    return [{ block: id, secret, sensitive, bound: bound && compare(bound, ONE) < 0 ? bound : ONE }];
  }));
}
