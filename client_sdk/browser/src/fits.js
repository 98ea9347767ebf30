// SPDX-License-Identifier: Apache-2.0
/**
 * Chances that a symbol fits an answer to one question, exactly; the same as in frankly_sdk/_fits.py. A symbol *fits* an answer to a
 * question if no other answer to it makes the symbol more likely, where all answers to the block's other questions are equally likely.
 * A symbol that fits every answer says nothing about the question.
 */

import { ONE, ZERO, compare, order, plus, rational } from "./rational.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {[Rational, Rational]} Range least and largest chance over all answers to the block
 * @typedef {{own: Range, other: Range, silent: Range}} Fit chances that the symbol fits the true answer, or a given other one, but not every answer; that it fits every answer
 * @typedef {import("./mechanisms.js").Mechanism} Mechanism
 * @typedef {import("./survey.js").Block} Block
 */

const MAX_WORK = 2 ** 18; // largest number of additions for one question; larger tables have no Fit
const SILENT = /** @type {Fit} */ ({ own: [ZERO, ZERO], other: [ZERO, ZERO], silent: [ONE, ONE] });
const product = (/** @type {number[]} */ values) => values.reduce((all, n) => all * n, 1);
const always = (/** @type {Rational} */ chance) => /** @type {Range} */ ([chance, chance]);
const less = (/** @type {Rational} */ [a, b], /** @type {Rational} */ [n, d]) => rational(a * d - n * b, b * d);

/** Return the Fit of every question of a block; undefined where it would take too long to compute. @returns {(Fit | undefined)[]} */
export function fitsOf(/** @type {Block} */ { mechanism: m, questions }) {
  const sizes = questions.map(({ choices }) => choices.length);
  if (m.kind === "agreement") return form(m);
  if (m.kind !== "product") return numbered(m, sizes);
  /** @type {(Fit | undefined)[]} */
  const found = [];
  for (const [factor, start, end] of factorsOf(m, sizes)) found.push(...numbered(factor, sizes.slice(start, end)));
  return sizes.map((_, q) => found[q]);
}

/** Yield every factor with the questions that it is about, up to the first that has parts of a question. @returns {Generator<[import("./mechanisms.js").Dense, number, number]>} */
function* factorsOf(/** @type {import("./mechanisms.js").Product} */ { factors }, /** @type {number[]} */ sizes) {
  let start = 0;
  for (const factor of factors) {
    let end = start;
    while (end < sizes.length && product(sizes.slice(start, end)) < factor.answers) end++;
    if (product(sizes.slice(start, end)) !== factor.answers) return;
    yield [factor, start, end];
    start = end;
  }
}

/** @returns {(Fit | undefined)[]} */
function numbered(/** @type {Exclude<import("./mechanisms.js").Numbered, import("./mechanisms.js").Product>} */ m, /** @type {number[]} */ sizes) {
  const D = 1n << BigInt(m.bits);
  if (m.kind === "dense") {
    const columns = m.weights[0].map((_, y) => m.weights.map((row) => BigInt(row[y])));
    return sizes.map((size, q) => enumerated(columns, size, product(sizes.slice(q + 1)), D));
  }
  if (sizes.length > 1) return sizes.map(() => undefined);
  return [m.kind === "unary" ? unary(m, D) : symmetric(m.answers, m.size, rational(m.inside, D))];
}

/** Return the answers to a question that a symbol with these chances fits. */
function best(/** @type {bigint[]} */ column, /** @type {number} */ choices, /** @type {number} */ after) {
  const sums = /** @type {bigint[]} */ (new Array(choices).fill(0n));
  for (const [x, weight] of column.entries()) sums[Math.floor(x / after) % choices] += weight;
  const [most] = [...sums].sort(order).reverse();
  return sums.flatMap((total, a) => (total === most ? [a] : []));
}

/** Return the Fit of one question from the weight of every symbol given every answer; `after` is the number of joint answers to later questions. */
function enumerated(/** @type {Iterable<bigint[]>} */ columns, /** @type {number} */ choices, /** @type {number} */ after, /** @type {bigint} */ D) {
  /** @type {bigint[][]} */
  const hits = Array.from({ length: choices }, () => []), /** @type {bigint[]} */ silent = [];
  let work = 0;
  for (const column of columns) {
    const fitting = best(column, choices, after);
    work += column.length * (1 + fitting.length);
    if (work > MAX_WORK) return undefined;
    for (const row of [...hits, silent]) if (!row.length) row.push(...column.map(() => 0n));
    for (const row of fitting.length === choices ? [silent] : fitting.map((a) => hits[a])) for (const [x, weight] of column.entries()) row[x] += weight;
  }
  const isOwn = (/** @type {number} */ x, /** @type {number} */ a) => Math.floor(x / after) % choices === a;
  const range = (/** @type {bigint[]} */ weights) => /** @type {Range} */ ([weights.reduce((a, b) => (b < a ? b : a)), weights.reduce((a, b) => (b > a ? b : a))].map((n) => rational(n, D)));
  const pick = (/** @type {boolean} */ wanted) => range(hits.flatMap((row, a) => row.filter((_, x) => isOwn(x, a) === wanted)));
  return { own: pick(true), other: pick(false), silent: range(silent) };
}

/** Return the Fit of a random set of one size that contains the truth with a given chance. */
function symmetric(/** @type {number} */ answers, /** @type {number} */ size, /** @type {Rational} */ [n, d]) {
  const [a, s] = [BigInt(answers), BigInt(size)], side = compare(rational(n * a, d), rational(s));
  if (!side) return SILENT;
  // A given other answer is in the set; if the truth is rarely in it, then the set's complement fits.
  const inside = rational(n, d), beside = rational(n * (s - 1n) + (d - n) * s, d * (a - 1n)), [own, other] = side > 0 ? [inside, beside] : [less(ONE, inside), less(ONE, beside)];
  return { own: always(own), other: always(other), silent: always(ZERO) };
}

/** @returns {Fit} */
function unary(/** @type {import("./mechanisms.js").Unary} */ m, /** @type {bigint} */ D) {
  // If keep < flip, then the bits that are off fit.
  const [keep, flip] = [m.keep, m.flip].map((w) => (m.keep > m.flip ? BigInt(w) : D - BigInt(w))), k = BigInt(m.answers), all = D ** k;
  const full = rational(keep * flip ** (k - 1n), all), empty = rational((D - keep) * (D - flip) ** (k - 1n), all);
  return { own: always(less(rational(keep, D), full)), other: always(less(rational(flip, D), full)), silent: always(plus(full, empty)) };
}

/** Yield the chances of every set of a slot, given every joint answer of its part. @returns {Generator<bigint[]>} */
function* columnsOf(/** @type {import("./agreement.js").Slot} */ { cover, held, missed }) {
  const { masks, weights } = cover.listed();
  for (const [i, mask] of masks.entries()) yield Array.from({ length: cover.answers }, (_, x) => weights[i] * ((mask >> BigInt(x)) & 1n ? held : missed));
}

/** @returns {(Fit | undefined)[]} */
function form(/** @type {import("./mechanisms.js").Agreement} */ m) {
  const found = m.choices.map(() => /** @type {Fit | undefined} */ (SILENT));
  for (const slot of m.slots()) {
    const { cover, held, mean, places, drawn } = slot;
    /** @type {Map<string, Fit | undefined>} */
    const known = new Map();
    for (const [q, choices, after] of places) {
      const place = `${choices} ${after}`;
      if (!known.has(place)) known.set(place, cover.size && choices === cover.answers
        ? symmetric(choices, cover.size, rational(cover.inside * held, mean)) : enumerated(columnsOf(slot), choices, after, mean));
      found[q] = added(found[q], known.get(place), drawn);
    }
  }
  return found;
}

/** Return a Fit with that of one part that is drawn with a given chance. @returns {Fit | undefined} */
function added(/** @type {Fit | undefined} */ fit, /** @type {Fit | undefined} */ slot, /** @type {Rational} */ [n, d]) {
  if (!fit || !slot) return undefined;
  const more = (/** @type {Range} */ total, /** @type {Range} */ own, less = 0n) =>
    /** @type {Range} */ (total.map((chance, i) => rational(...plus(chance, [(own[i][0] - less * own[i][1]) * n, own[i][1] * d]))));
  return { own: more(fit.own, slot.own), other: more(fit.other, slot.other), silent: more(fit.silent, slot.silent, 1n) };
}

/**
 * Return the positions of the choices that a block's symbol fits, for each of its questions: none if it fits all of them, undefined
 * if the block has no Fit for the question.
 * @returns {(number[] | undefined)[]}
 */
export function fitted(/** @type {Block} */ { mechanism: m, questions }, /** @type {any} */ y) {
  const sizes = questions.map(({ choices }) => choices.length);
  const hint = (/** @type {bigint[]} */ column, /** @type {number} */ q, all = sizes, choices = all[q], found = best(column, choices, product(all.slice(q + 1)))) => (found.length < choices ? found : []);
  const ofTable = (/** @type {import("./mechanisms.js").Dense} */ { weights }, /** @type {number} */ symbol, all = sizes) => {
    const column = weights.map((row) => BigInt(row[symbol]));
    return all.map((_, q) => hint(column, q, all));
  };
  const ofSet = (/** @type {bigint} */ mask, /** @type {number} */ k, /** @type {boolean} */ isHeld) => {
    const found = Array.from({ length: k }, (_, x) => x).filter((x) => ((mask >> BigInt(x)) & 1n) === BigInt(isHeld));
    return found.length < k ? found : [];
  };
  if (m.kind === "dense") return ofTable(m, y);
  if (m.kind === "product") {
    const found = [...factorsOf(m, sizes)].flatMap(([factor, start, end], j) => ofTable(factor, y[j], sizes.slice(start, end)));
    return sizes.map((_, q) => found[q]);
  }
  if (m.kind !== "agreement") {
    const share = m.kind === "subset" ? compare(rational(BigInt(m.inside) * BigInt(m.answers), 1n << BigInt(m.bits)), rational(m.size)) : m.keep - m.flip;
    return sizes.length > 1 ? sizes.map(() => undefined) : [share ? ofSet(BigInt(`0x${y}`), m.answers, share > 0) : []];
  }
  /** @type {number[][]} */
  const found = sizes.map(() => []);
  for (const [i, { cover, held, missed }] of [...m.slots(y[0])].flatMap((slot) => new Array(slot.pick).fill(slot)).entries()) {
    const own = m.parts[y[2 * i + 1]], mask = cover.listed().masks[y[2 * i + 2]];
    const column = Array.from({ length: cover.answers }, (_, x) => ((mask >> BigInt(x)) & 1n ? held : missed));
    for (const [j, q] of own.entries()) found[q] = hint(column, j, own.map((one) => sizes[one]));
  }
  return found;
}
