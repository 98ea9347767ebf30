// SPDX-License-Identifier: Apache-2.0
/**
 * Chances that a symbol fits an answer to one question, exactly; the same as in frankly_protocol/mechanisms/fit.py. A symbol *fits* an answer to a
 * question if no other answer to it makes the symbol more likely, where all answers to the block's other questions are equally likely.
 * A symbol that fits every answer says nothing about the question on its own, and nothing at all if that holds for all answers to the
 * other questions.
 */

import { ONE, ZERO, compare, order, plus, rational, sum } from "./rational.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {[Rational, Rational]} Range least and largest chance over all answers to the block
 * @typedef {{own: Range, other: Range, silent: Range, isJoint?: boolean}} Fit chances that the symbol fits the true answer, or a given other one, but not every
 *   answer; that it says nothing. isJoint: some symbol says something only together with other answers
 * @typedef {import("./mechanisms.js").Listed} Listed
 * @typedef {{answers: number[], share: Rational}} Hint choices that a symbol fits, and the share of people with one of them among all who send it
 */

const MAX_WORK = 2 ** 18; // largest number of additions for one question; larger tables have no Fit
const SILENT = /** @type {Fit} */ ({ own: [ZERO, ZERO], other: [ZERO, ZERO], silent: [ONE, ONE] });
export const PLAIN = /** @type {Fit} */ ({ own: [ONE, ONE], other: [ZERO, ZERO], silent: [ZERO, ZERO] });
const product = (/** @type {number[]} */ values) => values.reduce((all, n) => all * n, 1);
const always = (/** @type {Rational} */ chance) => /** @type {Range} */ ([chance, chance]);
const less = (/** @type {Rational} */ [a, b], /** @type {Rational} */ [n, d]) => rational(a * d - n * b, b * d);

/** Return true if every symbol has a single possible answer to the question. */
export const isPlain = (/** @type {Fit | undefined} */ fit) => fit !== undefined && !compare(fit.own[0], ONE) && !fit.other[1][0];

/**
 * Yield every factor with the numbers of choices of the questions that it is about, up to the first that has parts of a question.
 * @returns {Generator<[import("./mechanisms.js").Dense, number[]]>}
 */
function* factorsOf(/** @type {Listed} */ { factors }, /** @type {number[]} */ sizes) {
  let start = 0;
  for (const factor of factors) {
    let end = start;
    while (end < sizes.length && product(sizes.slice(start, end)) < factor.answers) end++;
    const own = sizes.slice(start, end);
    if (product(own) !== factor.answers) return;
    yield [factor, own];
    start = end;
  }
}

/** @returns {(Fit | undefined)[]} */
export function fitsOfTables(/** @type {Listed} */ m, /** @type {number[]} */ sizes) {
  const found = [...factorsOf(m, sizes)].flatMap(([factor, own]) =>
    own.map((choices, q) => enumerated(factor.columns(), choices, product(own.slice(q + 1)), 1n << BigInt(factor.bits))));
  return sizes.map((_, q) => found[q]);
}

/** @returns {(Hint | undefined)[]} */
export function fittedToTables(/** @type {Listed} */ m, /** @type {number[]} */ sizes, /** @type {number | number[]} */ y) {
  const symbols = [y].flat(); // of a single table it is a number
  const found = [...factorsOf(m, sizes)].flatMap(([factor, own], j) =>
    own.map((choices, q) => best(factor.columns()[symbols[j]], choices, product(own.slice(q + 1)))));
  return sizes.map((_, q) => found[q]);
}

/**
 * Return the answers to a question that a symbol with these chances fits, and their share of all chances; no answers if it says nothing
 * about the question, and undefined if it does so only together with other answers. `after` is the number of joint answers to later
 * questions.
 * @returns {Hint | undefined}
 */
function best(/** @type {bigint[]} */ column, /** @type {number} */ choices, /** @type {number} */ after) {
  const sums = /** @type {bigint[]} */ (new Array(choices).fill(0n)), place = (/** @type {number} */ x) => Math.floor(x / after) % choices;
  for (const [x, weight] of column.entries()) sums[place(x)] += weight;
  const [most] = [...sums].sort(order).reverse(), answers = sums.flatMap((total, a) => (total === most ? [a] : []));
  if (answers.length < choices) return { answers, share: rational(most * BigInt(answers.length), sum(sums)) };
  return column.every((weight, x) => weight === column[x - place(x) * after]) ? { answers: [], share: ONE } : undefined;
}

/** Return the Fit of one question from the weight of every symbol given every answer. */
function enumerated(/** @type {Iterable<bigint[]>} */ columns, /** @type {number} */ choices, /** @type {number} */ after, /** @type {bigint} */ D) {
  /** @type {bigint[][]} */
  const hits = Array.from({ length: choices }, () => []), /** @type {bigint[]} */ silent = [];
  let work = 0, isJoint = false;
  for (const column of columns) {
    const found = best(column, choices, after), fitting = found?.answers ?? [];
    work += column.length * (1 + (fitting.length || choices));
    if (work > MAX_WORK) return undefined;
    for (const row of [...hits, silent]) if (!row.length) row.push(...column.map(() => 0n));
    for (const row of fitting.length ? fitting.map((a) => hits[a]) : found ? [silent] : []) for (const [x, weight] of column.entries()) row[x] += weight;
    isJoint ||= !found;
  }
  const isOwn = (/** @type {number} */ x, /** @type {number} */ a) => Math.floor(x / after) % choices === a;
  const range = (/** @type {bigint[]} */ weights) => /** @type {Range} */ ([weights.reduce((a, b) => (b < a ? b : a)), weights.reduce((a, b) => (b > a ? b : a))].map((n) => rational(n, D)));
  const pick = (/** @type {boolean} */ wanted) => range(hits.flatMap((row, a) => row.filter((_, x) => isOwn(x, a) === wanted)));
  return { own: pick(true), other: pick(false), silent: range(silent), isJoint };
}

/** Return the Fit of a random set of one size that contains the truth with a given chance. */
export function symmetric(/** @type {number} */ answers, /** @type {number} */ size, /** @type {Rational} */ [n, d]) {
  const [a, s] = [BigInt(answers), BigInt(size)], side = compare(rational(n * a, d), rational(s));
  if (!side) return SILENT;
  // A given other answer is in the set; if the truth is rarely in it, then the set's complement fits.
  const inside = rational(n, d), beside = rational(n * (s - 1n) + (d - n) * s, d * (a - 1n)), [own, other] = side > 0 ? [inside, beside] : [less(ONE, inside), less(ONE, beside)];
  return { own: always(own), other: always(other), silent: always(ZERO) };
}

/** @returns {Fit} */
export function fitOfUnary(/** @type {import("./mechanisms.js").Unary} */ m) {
  // If keep < flip, then the bits that are off fit.
  const D = 1n << BigInt(m.bits), [keep, flip] = [m.keep, m.flip].map((w) => (m.keep > m.flip ? BigInt(w) : D - BigInt(w)));
  const k = BigInt(m.answers), all = D ** k;
  const full = rational(keep * flip ** (k - 1n), all), empty = rational((D - keep) * (D - flip) ** (k - 1n), all);
  return { own: always(less(rational(keep, D), full)), other: always(less(rational(flip, D), full)), silent: always(plus(full, empty)) };
}

/** Return what is known of the only question of a block, and nothing of several. @template T @returns {(T | undefined)[]} */
export const alone = (/** @type {number[]} */ sizes, /** @type {() => T} */ find) => (sizes.length > 1 ? sizes.map(() => undefined) : [find()]);

/** Return what a set of answers fits, in a block of one question. */
export const fittedToSet = (/** @type {import("./mechanisms.js").Sets} */ { answers, held, missed }, /** @type {number[]} */ sizes, /** @type {string} */ y) =>
  alone(sizes, () => best(columnOf(BigInt(`0x${y}`), answers, held, missed), answers, 1));

/** Yield the chances of every set of a slot, given every joint answer of its part. @returns {Generator<bigint[]>} */
function* columnsOf(/** @type {import("./agreement.js").Slot} */ { cover, held, missed }) {
  const { masks, weights } = cover.listed();
  for (const [i, mask] of masks.entries()) yield columnOf(mask, cover.answers, weights[i] * held, weights[i] * missed);
}

/** Return the Fit of every question of a form. @returns {(Fit | undefined)[]} */
export function fitsOfForm(/** @type {import("./mechanisms.js").Agreement} */ m) {
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
  return { own: more(fit.own, slot.own), other: more(fit.other, slot.other), silent: more(fit.silent, slot.silent, 1n), isJoint: fit.isJoint || slot.isJoint };
}

/** Return what a form's symbol fits, of every question. @returns {(Hint | undefined)[]} */
export function fittedToForm(/** @type {import("./mechanisms.js").Agreement} */ m, /** @type {number[]} */ sizes, /** @type {number[]} */ y) {
  const found = sizes.map(() => /** @type {Hint | undefined} */ ({ answers: [], share: ONE }));
  const slots = [...m.slots(y[0])].flatMap((slot) => new Array(slot.pick).fill(slot)), masks = slots.map(({ cover }, i) => cover.listed().masks[y[2 * i + 2]]);
  for (const [i, slot] of slots.entries()) {
    const own = m.parts[y[2 * i + 1]], [held, missed] = weightsIn(m, slots, masks, i), column = columnOf(masks[i], slot.cover.answers, held, missed);
    for (const [j, q] of own.entries()) found[q] = best(column, sizes[q], product(own.slice(j + 1).map((one) => sizes[one])));
  }
  return found;
}

/** Return the weight of a symbol, if one of its sets holds the true answer and if not, where all answers to other parts are equally likely. */
function weightsIn(/** @type {import("./mechanisms.js").Agreement} */ { agree, disagree }, /** @type {import("./agreement.js").Slot[]} */ slots, /** @type {bigint[]} */ masks, /** @type {number} */ own) {
  const { score, threshold } = slots[own];
  let law = Array.from({ length: threshold + 1 }, (_, s) => BigInt(!s));
  for (const [i, { cover, score: more }] of slots.entries()) {
    if (i === own) continue;
    const inside = BigInt(masks[i].toString(2).replaceAll("0", "").length), moved = law.map((n) => n * (BigInt(cover.answers) - inside));
    for (const [s, n] of law.entries()) moved[Math.min(s + more, threshold)] += n * inside;
    law = moved;
  }
  const all = sum(law);
  return [score, 0].map((gained) => BigInt(disagree) * all + BigInt(agree - disagree) * sum(law.filter((_, s) => s + gained >= threshold)));
}

/** Return a weight for every answer, depending on whether a set holds it. */
const columnOf = (/** @type {bigint} */ mask, /** @type {number} */ answers, /** @type {bigint} */ held, /** @type {bigint} */ missed) =>
  Array.from({ length: answers }, (_, x) => ((mask >> BigInt(x)) & 1n ? held : missed));
