// SPDX-License-Identifier: Apache-2.0
/** The label of a survey, the same as in frankly_sdk/_label.py. All numbers are frequencies of people. */

import { isUnchanged } from "./guesses.js";
import { fitsOf } from "./fits.js";
import { ceilDiv, compare, rational } from "./rational.js";
import { openQuestions } from "./survey.js";
import { groupsOf } from "./ways.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./fits.js").Fit} Fit
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 * @typedef {import("./words.js").Texts} Texts
 * @typedef {{questions: string[], names: string[], sentences: string[], fit: Fit | undefined}} Consequence
 */

const SECONDS = 10; // for one question
const MOST_ODDS = rational(99); // larger factors of odds turn 50 of 100 people into more than 99

const allUnchanged = (/** @type {Survey} */ { blocks }) => blocks.every(({ mechanism }) => isUnchanged(mechanism));
const isBounded = (/** @type {ReportLevel} */ { answers: { odds, delta } }) => compare(odds, MOST_ODDS) <= 0 && !delta[0];

/** Return the host to which reports are sent. */
export const hostOf = (/** @type {Survey} */ { collectUrl }) => new URL(collectUrl).host;

/** Return the question that the person reads, for a box with its label. */
export const questionName = (/** @type {Question} */ { text, box }, /** @type {string} */ language) => (box ? `${box.text[language]} – ${box.label[language]}` : text[language]);

/** Return what to read before the first question: in English at most 90 words. */
export function summary(/** @type {Survey} */ survey, /** @type {ReportLevel} */ level, /** @type {Texts} */ t) {
  const { blocks, strata, instructed, token } = survey, say = (/** @type {string} */ name, values = {}) => t.say("label", name, values);
  const some = blocks.some(({ mechanism }) => isUnchanged(mechanism)), all = allUnchanged(survey), hasOpen = some || openQuestions(survey).length > 0;
  const n = blocks.reduce((sum, { questions }) => sum + groupsOf(questions).length, openQuestions(survey).length);
  const isMost = blocks.some(({ ask, questions }) => ask || questions.some(({ ask_if: rule }) => rule));
  return [
    say(isMost ? "asked_most" : "asked", { n, minutes: Math.ceil((n * SECONDS) / 60), host: hostOf(survey) }),
    ...(some ? [say("as_is")] : []),
    ...(strata.length ? [say("open", { n: strata.length })] : []),
    ...(instructed ? [say("item")] : []),
    ...(all ? [] : [say(hasOpen ? "mixed_rest" : "mixed"), ...picked(blocks, say)]),
    ...(all ? [] : isBounded(level) ? [say(hasOpen ? "unsure_rest" : "unsure")] : some ? [] : [say("nearly")]),
    ...(token?.kind === "invite" ? [say("invited")] : []),
    say("address"),
  ];
}

/** Return how many questions a report is about, if a single form has fewer than all of them. */
function picked(/** @type {import("./survey.js").Block[]} */ [{ mechanism: m, questions }, ...others], /** @type {(name: string, values: object) => string} */ say) {
  if (others.length || m.kind !== "agreement") return [];
  const drawn = m.questionsDrawn(), all = m.choices.length;
  // A person sees the boxes of a question as one question, and a report counts each.
  return drawn[1] < all && !questions.some(({ box }) => box) ? [say("few", { some: [...new Set(drawn)].join("–"), all })] : [];
}

/** Return what a report tells about each question; questions that do not differ are together. `guesses`: each block's sentence on a guess. */
export function consequences(/** @type {Survey} */ { blocks }, /** @type {string[]} */ guesses, /** @type {string} */ language, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("label", name, values);
  /** @type {Map<string, Consequence>} */
  const found = new Map();
  for (const [i, block] of blocks.entries()) {
    const isSent = isUnchanged(block.mechanism), fits = isSent ? [] : fitsOf(block);
    for (const [q, question] of block.questions.entries()) {
      const fit = fits[q], sentences = isSent ? [say("given")] : !fit ? [guesses[i]]
        : !compare(fit.silent[0], rational(1)) ? [say("nothing")]
        : [
          ...(compare(fit.silent[1], rational(1, 200)) < 0 ? [] : [say("silent", { silent: people(fit.silent) })]),
          say("fits", { own: people(fit.own), other: people(fit.other) }),
        ];
      const one = found.get(String(sentences)) ?? { questions: [], names: [], sentences, fit };
      found.set(String(sentences), one);
      one.questions.push(question.id);
      one.names.push(questionName(question, language));
    }
  }
  return [...found.values()];
}

/** Return how far a report can raise a suspicion about the answers, and about each secret. */
export function beliefs(/** @type {Survey} */ survey, /** @type {ReportLevel} */ level, /** @type {Texts} */ t) {
  const given = openQuestions(survey).length ? "_given" : "", { odds: known } = level.answers;
  const belief = (/** @type {string} */ name, /** @type {Rational} */ [n, d], secret = "") => {
    const after = (/** @type {bigint} */ before) => ceilDiv(100n * n * before, d * (100n - before) + n * before);
    return t.say("label", name + given, { few: after(5n), half: after(50n), secret });
  };
  return [
    ...(known && isBounded(level) ? [belief("belief", known)] : allUnchanged(survey) ? [] : [t.say("label", "nearly")]),
    // A secret that is bounded as the answers themselves are needs no sentence of its own.
    ...[...level.secrets].flatMap(([name, { odds, delta }]) => (odds && !delta[0] && compare(odds, known) && compare(odds, MOST_ODDS) <= 0 ? [belief("belief_secret", odds, name)] : [])),
  ];
}

/** Return chances as numbers of 100 people, such as 62, 60–65, <1 or >99. */
export const people = (/** @type {Rational[]} */ chances) => [...new Set(chances.map(ofHundred))].join("–");

/** Return a chance as a number of 100 people, to the nearest; 100 only if it is certain. */
export const hundred = (/** @type {Rational} */ [n, d]) => Math.min(n < d ? 99 : 100, Number((200n * n + d) / (2n * d)));

function ofHundred(/** @type {Rational} */ [n, d]) {
  const number = (200n * n + d) / (2n * d);
  return !number && n ? "<1" : number === 100n && n < d ? ">99" : String(number);
}
