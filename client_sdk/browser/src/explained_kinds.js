// SPDX-License-Identifier: Apache-2.0
/**
 * What explanations need of each kind of mechanism; no decision depends on it. KINDS has an entry per kind, with its sentences; the
 * formulas are in fits.js and guesses.js. A kind without an entry is explained as tables are.
 */

import { PLAIN, alone, fitOfUnary, fitsOfForm, fitsOfTables, fittedToForm, fittedToSet, fittedToTables, symmetric } from "./fits.js";
import { guessOfSubset, guessOfTables, guessOfUnary } from "./guesses.js";
import { rational } from "./rational.js";
import { percent, times } from "./shown.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./fits.js").Fit} Fit
 * @typedef {import("./fits.js").Hint} Hint
 * @typedef {import("./mechanisms.js").Listed} Listed
 * @typedef {import("./mechanisms.js").Unary} Unary
 * @typedef {import("./mechanisms.js").Subset} Subset
 * @typedef {import("./mechanisms.js").Agreement} Agreement
 * @typedef {import("./mechanisms.js").Mechanism} Mechanism
 * @typedef {import("./survey.js").Block} Block
 * @typedef {import("./words.js").Texts} Texts
 *
 * @typedef {object} Explained
 * @property {(m: any) => boolean} isUnchanged true if every report has a single possible truth
 * @property {(m: any) => boolean} [isRandom] true if chance decides the symbol of some answer, as it does otherwise unless it is unchanged
 * @property {(m: any) => [guess: Rational, blind?: Rational, question?: number]} guess
 *   the chance that the best guess from a report is right, if all answers are equally likely; if it is of one question, also the
 *   chance of a blind guess, and the question's position
 * @property {string} [guessWords] the name of the sentence on a guess in a block of several questions
 * @property {(m: any, sizes: number[]) => (Fit | undefined)[]} fits the Fit of every question, which have these numbers of choices
 * @property {(m: any, sizes: number[], y: any) => (Hint | undefined)[]} fitted what a symbol fits, of every question
 * @property {(m: any) => [Rational, Rational] | null} [same]
 *   the smallest and the largest chance on the diagonal; null unless the diagonal is the strict maximum of every column
 * @property {(block: any, t: Texts, language: string) => string[]} chances sentences on how the symbol is drawn
 * @property {(m: any, t: Texts) => string} symbol what stands for a symbol in a report as it will look
 * @property {string} [promise] the name of the only sentence on what a block promises
 */

const say = (/** @type {Texts} */ t, /** @type {string} */ name, values = {}) => t.say("explanation", name, values);
/** Return a chance in words. */
const share = (/** @type {Texts} */ t, /** @type {Rational} */ chance) => t.figure(percent(chance));
const chanceOf = (/** @type {{bits: number}} */ { bits }, /** @type {number | bigint} */ weight) => rational(weight, 1n << BigInt(bits));

/** Return every symbol with its chance, for each answer. @returns {[string, Rational][][]} */
function rowsOf(/** @type {Listed} */ { factors }, /** @type {Texts} */ t) {
  const each = factors.map((factor) => factor.weights.map((row) => row.map((w, y) => /** @type {[string, Rational]} */ ([String(y), chanceOf(factor, w)]))));
  return each.reduce((all, own) => all.flatMap((ours) => own.map((theirs) => ours.flatMap(([first, p]) => theirs.map(([second, q]) =>
    /** @type {[string, Rational]} */ ([say(t, "and", { first, second }), rational(p[0] * q[0], p[1] * q[1])]))))));
}

/** The general case, reports of tables. @type {Explained} */
const TABLES = {
  isUnchanged: (/** @type {Listed} */ { factors }) => factors.every((factor) => factor.columns().every((column) => column.filter(Boolean).length === 1)),
  isRandom: (/** @type {Listed} */ { factors }) => factors.some(({ weights }) => weights.some((row) => row.filter(Boolean).length > 1)),
  guess: (m) => [guessOfTables(m)],
  fits: fitsOfTables, fitted: fittedToTables,
  same(/** @type {Listed} */ { factors: [table, ...others] }) {
    const { weights } = table;
    if (others.length || weights.length !== weights[0].length) return null;
    if (weights.some((row, x) => row.some((w, y) => x !== y && w >= weights[y][y]))) return null;
    const own = weights.map((row, x) => row[x]);
    return [chanceOf(table, Math.min(...own)), chanceOf(table, Math.max(...own))];
  },
  chances({ mechanism: m, questions }, t, language) {
    if (BigInt(m.answers) * m.reports > 64n) return [say(t, "many_symbols", { n: m.reports })];
    const labels = /** @type {Block["questions"]} */ (questions).reduce((/** @type {string[]} */ all, q) =>
      all.flatMap((head) => q.choices.map((c) => (head ? `${head} / ` : "") + c.label[language])), [""]);
    const rows = rowsOf(m, t), isRare = (/** @type {Rational} */ [n, d]) => n << 24n <= d;
    return [say(t, "symbols"), ...labels.map((answer, x) => {
      const likely = rows[x].filter(([, chance]) => !isRare(chance)).map(([symbol, chance]) => say(t, "chance_of", { symbol, chance: share(t, chance) }));
      // Rounding turns zeros of an optimum into a few units of 2^-48; a row has at most 64 chances, and 64 · 2^-24 is below 0.001%.
      const rest = rows[x].some(([, chance]) => chance[0] && isRare(chance)) ? say(t, "rare", { chance: t.figure("0.001%") }) : "";
      return say(t, "symbols_of", { answer, chances: likely.join(", "), rest });
    })];
  },
  symbol: ({ longest }) => (typeof longest === "number" ? `0–${longest}` : `[${longest.map((/** @type {number} */ part) => `0–${part}`).join()}]`),
};

/** What stands for a set, whose hex digits depend on the number of answers. */
const digits = (/** @type {{longest: string}} */ { longest }, /** @type {Texts} */ t) => say(t, "hex_digits", { n: longest.length });

/** @type {Record<string, Explained>} */
const KINDS = {
  unary: {
    isUnchanged: (/** @type {Unary} */ { bits, keep, flip }) => Math.min(keep, flip) === 0 && Math.max(keep, flip) === 2 ** bits,
    guess: (m) => [guessOfUnary(m)],
    fits: (m, sizes) => alone(sizes, () => fitOfUnary(m)), fitted: fittedToSet, symbol: digits,
    chances: ({ mechanism: m }, t) => [say(t, "unary", { keep: share(t, chanceOf(m, m.keep)), flip: share(t, chanceOf(m, m.flip)) })],
  },
  subset: {
    isUnchanged: (/** @type {Subset} */ { bits, answers, size, inside }) => (size === 1 && inside === 2 ** bits) || (size === answers - 1 && inside === 0),
    guess: (m) => [guessOfSubset(m)],
    fits: (m, sizes) => alone(sizes, () => symmetric(m.answers, m.size, chanceOf(m, m.inside))), fitted: fittedToSet, symbol: digits,
    chances: ({ mechanism: m }, t) => [say(t, "subset", { n: m.size, answers: m.answers, chance: share(t, chanceOf(m, m.inside)) })],
  },
  agreement: {
    isUnchanged: () => false,
    guess: (/** @type {Agreement} */ m) => m.guess(), guessWords: "guess_of_many",
    fits: fitsOfForm, fitted: fittedToForm,
    chances(/** @type {{mechanism: Agreement} & Pick<Block, "questions" | "ask">} */ { mechanism: m, questions, ask }, t) {
      const [low, high] = m.questionsDrawn(), all = questions.length;
      return [
        ...(low < all ? [say(t, low === high ? "picked" : "picked_range", { n: low, low, high, all })] : []),
        ...(low < all && questions.some((q) => q.box) ? [say(t, ask ? "boxes_drawn" : "boxes_count")] : []),
        ...(low < all && ask ? [say(t, "asked_drawn")] : []),
        say(t, "sets", { ratio: t.figure(times(m.level)) }),
      ];
    },
    symbol({ numbers: [low, high] }, t) {
      return `[${say(t, low < high ? "numbers_range" : "numbers", { n: high, low, high })}]`;
    },
    promise: "form",
  },
};

/** Return what explanations need of a mechanism's kind. */
export const explained = (/** @type {Mechanism} */ m) => KINDS[m.kind] ?? TABLES;

/** Return true if every report has a single possible truth. */
export const isUnchanged = (/** @type {Mechanism} */ m) => explained(m).isUnchanged(m);

/** Return true if chance decides the symbol of some answer. */
export const isRandom = (/** @type {Mechanism} */ m) => explained(m).isRandom?.(m) ?? !isUnchanged(m);

const sizesOf = (/** @type {Block} */ { questions }) => questions.map(({ choices }) => choices.length);

/** Return the Fit of every question of a block; undefined where it would take too long to compute. @returns {(Fit | undefined)[]} */
export function fitsOf(/** @type {Block} */ block) {
  const { mechanism: m } = block, sizes = sizesOf(block);
  return isUnchanged(m) ? sizes.map(() => PLAIN) : explained(m).fits(m, sizes);
}

/**
 * Return the choices that a block's symbol fits, for each of its questions, and the share of people with one of them among all who send
 * it, if all answers are equally common; undefined if the block has no Fit for the question, or the symbol says something only together
 * with other answers.
 */
export const fitted = (/** @type {Block} */ block, /** @type {any} */ y) => explained(block.mechanism).fitted(block.mechanism, sizesOf(block), y);
