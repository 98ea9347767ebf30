// SPDX-License-Identifier: Apache-2.0
/** The label of a survey, the same as in frankly_protocol/explanation/label.py. All numbers are frequencies of people. */

import { fitsOf, isRandom, isUnchanged } from "./explained_kinds.js";
import { isPlain } from "./fits.js";
import { ceilDiv, compare, rational } from "./rational.js";
import { openQuestions, questionsOf } from "./survey.js";
import { groupsOf } from "./ways.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./fits.js").Fit} Fit
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 * @typedef {import("./words.js").Texts} Texts
 * @typedef {{questions: string[], names: string[], sentences: string[], notes: string[], fit: Fit | undefined}} Consequence
 */

const SECONDS = 10; // for one question
const MOST_ODDS = rational(99); // larger factors of odds turn 50 of 100 people into more than 99

const isBounded = (/** @type {ReportLevel} */ { answers: { odds, delta } }) => compare(odds, MOST_ODDS) <= 0 && !delta[0];

/** Return the questions whose answers decide whether another question is skipped. */
export const sourcesOf = (/** @type {Survey} */ survey) => questionsOf(survey).flatMap(({ ask_if: rule }) => rule?.question ?? []);

/** Return which sources have invites of the survey's server: whoever hands one out can recognise the report. A survey without sources is one. */
export function invitesOf(/** @type {Pick<Survey, "token">} */ { token }) {
  const kinds = new Set(Object.values(token?.rules ?? { token }).map((rule) => rule?.kind === "invite"));
  return kinds.size > 1 ? "some" : kinds.has(true) ? "all" : "none";
}

/** Return the host to which reports are sent, with its port unless that is the usual one. */
export const hostOf = (/** @type {Survey} */ { collectUrl }) => new URL(collectUrl).host;

/** Return the question that the person reads, for a box with its label. */
export const questionName = (/** @type {Question} */ { text, box }, /** @type {string} */ language) => (box ? `${box.text[language]} – ${box.label[language]}` : text[language]);

/** Return the names of all randomised questions by id; those of the same words are numbered. @returns {Map<string, string>} */
export function namesOf(/** @type {Survey} */ survey, /** @type {string} */ language) {
  const all = questionsOf(survey), names = all.map((one) => questionName(one, language));
  return new Map(all.map(({ id }, i) => {
    const alike = names.flatMap((name, j) => (name === names[i] ? [j] : []));
    return [id, alike.length > 1 ? `${names[i]} (${alike.indexOf(i) + 1})` : names[i]];
  }));
}

/** Return how many questions a person is asked at most; the boxes of one count as one. */
function numberAsked(/** @type {import("./survey.js").Block} */ { mechanism: m, questions, ask }) {
  // What a drawn question depends on is asked too, and all boxes of its group.
  const isSimple = ask && !questions.some(({ box, ask_if: rule }) => box || rule);
  return (isSimple && m.questionsDrawn?.()[1]) || groupsOf(questions).length;
}

/** Return what to read before the first question: in English at most 90 words. */
export function summary(/** @type {Survey} */ survey, /** @type {ReportLevel} */ level, /** @type {Consequence[]} */ told, /** @type {string} */ language, /** @type {Texts} */ t) {
  const { blocks, strata, instructed } = survey, say = (/** @type {string} */ name, values = {}) => t.say("label", name, values);
  const random = blocks.map(({ mechanism }) => isRandom(mechanism)), hasPlain = random.includes(false) || told.some(({ fit }) => isPlain(fit));
  const n = blocks.reduce((all, block) => all + numberAsked(block), openQuestions(survey).length), hasOpen = hasPlain || openQuestions(survey).length > 0;
  const isMost = blocks.some(({ ask }) => ask) || sourcesOf(survey).length > 0, invites = invitesOf(survey);
  return [
    say(isMost ? "asked_most" : "asked", { n, minutes: Math.ceil((n * SECONDS) / 60), host: hostOf(survey) }),
    ...(hasPlain ? [say("as_is")] : []),
    ...(strata.length === 1 ? [say("open_one", { question: strata[0].text[language] })] : strata.length ? [say("open", { n: strata.length })] : []),
    ...(instructed ? [say("item")] : []),
    ...(random.includes(true) ? [
      say(hasOpen ? "mixed_rest" : "mixed"), ...picked(survey, say), say(!isBounded(level) ? "nearly" : hasOpen ? "unsure_rest" : "unsure"),
    ] : []),
    ...(invites === "none" ? [] : [say(invites === "all" ? "invited" : "invited_some")]),
    say("address"),
  ];
}

/** Return how many questions a report is about, if a single form has fewer than all of them. */
function picked(/** @type {Survey} */ survey, /** @type {(name: string, values?: object) => string} */ say) {
  const [{ mechanism: m, questions }, ...others] = survey.blocks;
  if (others.length || !m.questionsDrawn) return [];
  const drawn = m.questionsDrawn(), all = questions.length;
  // A person sees the boxes of a question as one question, and a report counts each.
  if (drawn[1] === all || questions.some(({ box }) => box)) return [];
  return [say("few", { some: [...new Set(drawn)].join("–"), all }), ...(sourcesOf(survey).length ? [] : [say("few_rest")])];
}

/** Return what a report tells about each question; questions that do not differ are together. `guesses`: each block's sentence on a guess. */
export function consequences(/** @type {Survey} */ survey, /** @type {string[]} */ guesses, /** @type {string} */ language, /** @type {Texts} */ t) {
  const names = namesOf(survey, language), sources = sourcesOf(survey);
  /** @type {Map<string, Consequence>} */
  const found = new Map();
  for (const [i, block] of survey.blocks.entries())
    for (const [q, fit] of fitsOf(block).entries()) {
      const { id } = block.questions[q], { sentences, notes: some } = toldOf(fit, sources.includes(id), t);
      const notes = block.questions.length > 1 ? some : [...some, ...ofAnswers(block.questions[0], block.promises, block.ceiling, language, t)];
      const key = JSON.stringify([sentences, notes, fit ? "" : i]);
      const one = found.get(key) ?? { questions: [], names: [], sentences: fit ? sentences : [guesses[i]], notes, fit };
      found.set(key, one);
      one.questions.push(id);
      one.names.push(/** @type {string} */ (names.get(id)));
    }
  return [...found.values()];
}

/** Return the sentences with the numbers of a Fit, and notes; what is sent about a question that a rule skips hints at its source. */
function toldOf(/** @type {Fit | undefined} */ fit, /** @type {boolean} */ isSource, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("label", name, values), notes = isSource ? [say("hint")] : [];
  if (!fit) return { sentences: [], notes };
  if (isPlain(fit)) return { sentences: [say("given")], notes: [] };
  const all = [...(fit.isJoint ? [say("together")] : []), ...notes];
  if (!fit.own[1][0]) return { sentences: [say(all.length ? "alone" : "nothing")], notes: all };
  const isSilent = compare(fit.silent[1], rational(1, 200)) >= 0 && !isSource;
  return { sentences: [...(isSilent ? [say("silent", { silent: people(fit.silent) })] : []), say("fits", { own: people(fit.own), other: people(fit.other) })], notes: all };
}

/** Return how far a suspicion of each answer can rise that a promise protects more than others; the proof is in label.py. */
export function ofAnswers(
  /** @type {Question} */ { box, choices }, /** @type {import("./survey.js").Promised[]} */ promises, /** @type {Rational | null} */ ceiling,
  /** @type {string} */ language, /** @type {Texts} */ t,
) {
  return box ? [] : choices.flatMap(({ label }, s) => {
    const rows = promises.flatMap(({ claim }) => rowBound(claim, s) ?? []), odds = [ceiling, ...rows].sort(compare)[0];
    return rows.length && odds && compare(odds, MOST_ODDS) <= 0 ? [belief("answer_alone", odds, t, { answer: label[language] })] : [];
  });
}

/** Return the bound on P(y|s) / P(y|x) for every other answer x, or nothing if the claim has none or is for all pairs. */
function rowBound(/** @type {import("./audit.js").Claim} */ { level, levels = [] }, /** @type {number} */ s) {
  const pairs = levels.map((row, x) => row.filter((_, z) => z !== x)), row = pairs[s];
  if (!row || row.includes(null) || !pairs.flat().includes(null)) return;
  const [p, q] = level ?? [1, 1];
  return row.flatMap((one) => (one ? [rational(BigInt(p) * BigInt(one[0]), BigInt(q) * BigInt(one[1]))] : [])).sort(compare).slice(-1);
}

/** Return a text with the largest numbers of 100 people after a report, rounded up. */
function belief(/** @type {string} */ name, /** @type {Rational} */ [n, d], /** @type {Texts} */ t, values = {}) {
  const after = (/** @type {bigint} */ before) => ceilDiv(100n * n * before, d * (100n - before) + n * before);
  return t.say("label", name, { few: after(5n), half: after(50n), ...values });
}

/** Return how far a report can raise a suspicion about the answers, and about each secret. */
export function beliefs(/** @type {Survey} */ survey, /** @type {ReportLevel} */ level, /** @type {Texts} */ t) {
  if (!survey.blocks.length) return []; // all is sent as it is
  const given = openQuestions(survey).length ? "_given" : "", { odds: known } = level.answers;
  return [
    ...(known && isBounded(level) ? [belief(`belief${given}`, known, t)] : survey.blocks.every(({ mechanism }) => isUnchanged(mechanism)) ? [] : [t.say("label", "nearly")]),
    // A secret that is bounded as the answers themselves are needs no sentence of its own.
    ...[...level.secrets].flatMap(([name, { odds, delta }]) => (odds && !delta[0] && compare(odds, known) && compare(odds, MOST_ODDS) <= 0 ? [belief(`belief_secret${given}`, odds, t, { secret: name })] : [])),
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
