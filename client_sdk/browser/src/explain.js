// SPDX-License-Identifier: Apache-2.0
/** Explanation of a survey (step 11), in the texts of the Python SDK. */

import { explained, isUnchanged } from "./explained_kinds.js";
import { isPlain } from "./fits.js";
import { beliefs, consequences, invitesOf, questionName, summary } from "./label.js";
import { blockPromises, cost, wholeReport } from "./promised.js";
import { ONE, rational } from "./rational.js";
import { lnUp, percent } from "./shown.js";
import { drawnArm, openQuestions, questionsOf, reportLength, textOfReport } from "./survey.js";
import { asksNumber, groupsOf } from "./ways.js";
import { Texts, learn, requireTexts } from "./words.js";

export { learn };

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Block} Block
 */

/**
 * Explain a verified survey in one of its languages, by default the first; `level` is the level of its whole report under the app's
 * own cap on δ. The sentences are in that language if `learn` has loaded it, otherwise in English; `own` replaces texts
 * by part and name.
 */
export function explain(
  /** @type {Survey} */ survey, /** @type {import("./ledger.js").ReportLevel} */ level, /** @type {string[]} */ signedBy,
  /** @type {string | undefined} */ language = undefined, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget = undefined,
  /** @type {import("./words.js").Catalogue} */ own = {},
) {
  requireTexts(own);
  const chosen = language !== undefined && survey.languages.includes(language) ? language : survey.languages[0], t = new Texts(chosen, own);
  const say = (/** @type {string} */ name, values = {}) => t.say("explanation", name, values);
  const blocks = survey.blocks.map((block) => explainBlock(block, chosen, survey.strata.length > 0, t)), template = reportTemplate(survey, t);
  const told = consequences(survey, blocks.map(({ guessWords }) => guessWords), chosen, t), first = summary(survey, level, told, chosen, t);
  const anchors = questionsOf(survey).filter(({ anchor }) => anchor);
  const overall = [...(told.some(({ fit }) => fit?.own[1][0] && !isPlain(fit)) ? [t.say("label", "fitting")] : []), ...beliefs(survey, level, t)];
  const parts = {
    sent: [
      say("made_here"),
      survey.strata.length && say("public_answers", { questions: survey.strata.map((q) => q.text[chosen]).join("; ") }),
      survey.instructed && say("instructed", { question: survey.instructed.text[chosen] }),
      survey.arms && survey.arm && say("arms", { n: survey.arms.arms.length, arm: survey.arm }),
      ...anchors.map(({ text, anchor }) => say(anchor?.repeats ? "repeated" : "anchor", { question: text[chosen], source: anchor?.source })),
      survey.token && say({ all: "invite", some: "invite_some", none: "rsa-pss" }[invitesOf(survey)]),
    ],
    questions: blocks.map((block) => block.words),
    limits: [blocks.length && wholeReport(survey, level, t).join("\n")],
    open: [say("limits"), say("unread")],
    technical: [blocks.length && cost(level, budget, t), say("sent", { n: reportLength(survey), report: template }), say("signed", { keys: signedBy.map((key) => key.slice(0, 16)).join(", ") })],
  };
  const details = Object.entries(parts).map(([name, paragraphs]) => ({ heading: t.say("label", `part_${name}`), paragraphs: /** @type {string[]} */ (paragraphs.filter(Boolean)) }))
    .filter(({ paragraphs }) => paragraphs.length); // an arm without blocks has no limits
  const words = [
    survey.title[chosen],
    ...(survey.consent ? [say("own_words", { text: survey.consent[chosen] })] : []),
    first.join(" "),
    ...told.map(({ names, sentences, notes }) => [names.join("; "), ...sentences, ...notes].join("\n")),
    ...overall,
    ...details.flatMap(({ heading, paragraphs }) => [heading, ...paragraphs]),
  ].join("\n\n");
  return {
    title: survey.title[chosen], summary: first, consequences: told, overall, details, blocks, formNats: lnUp(level.cost.odds), formDelta: level.cost.delta, level,
    signedBy, reportTemplate: template, words, language: t.language, toString: () => words,
  };
}

function explainBlock(/** @type {Block} */ block, /** @type {string} */ language, /** @type {boolean} */ hasStrata, /** @type {Texts} */ t) {
  const { mechanism: m, questions } = block, { guess, blind, guessWords } = guessed(block, language, t);
  const unchanged = isUnchanged(m), same = unchanged ? /** @type {[Rational, Rational]} */ ([ONE, ONE]) : explained(m).same?.(m) ?? null;
  const words = [...asked(questions, language, t), ...chances(block, same, language, t), guessWords, ...blockPromises(block, hasStrata, t)];
  return {
    block: block.id, questions: [...new Set(questions.map((q) => (q.box ?? q).text[language]))], same, guess, blind, guessWords,
    ceiling: block.ceiling, unchanged, words: words.join("\n  "),
  };
}

/** Return the chances of a right guess, from the symbol and without it, and a sentence that names what is guessed. */
function guessed(/** @type {Block} */ { mechanism: m, questions }, /** @type {string} */ language, /** @type {Texts} */ t) {
  const kind = explained(m), [guess, blind = rational(1, m.answers), easiest = 0] = kind.guess(m);
  const name = questions.length === 1 ? "guess" : kind.guessWords ?? "guess_of_all";
  const names = questions.map((one) => questionName(one, language));
  // Questions of the same words are told apart by their order.
  const alike = names.flatMap((other, j) => other === names[easiest] ? [j] : []);
  const question = names[easiest] + (alike.length > 1 ? ` (${alike.indexOf(easiest) + 1})` : "");
  return { guess, blind, guessWords: t.say("explanation", name, { question, guess: t.figure(percent(guess)), blind: t.figure(percent(blind)) }) };
}

/** Return every question with its possible answers; a question with boxes once, with all of them. @returns {string[]} */
function asked(/** @type {import("./survey.js").Question[]} */ questions, /** @type {string} */ language, /** @type {Texts} */ t) {
  const labels = (/** @type {{label: import("./survey.js").Words}[]} */ entries) => entries.map(({ label }) => label[language]).join(" / ");
  return [
    ...groupsOf(questions).map((group) => {
      const [first] = group;
      if (first.box) return t.say("explanation", "box_question", { text: first.box.text[language], choices: labels(group.flatMap(({ box }) => box ?? [])) });
      return t.say("explanation", asksNumber(first) ? "number_question" : "question", { text: first.text[language], choices: labels(first.choices) });
    }),
    ...(questions.some((q) => q.ask_if) ? [t.say("explanation", "skipped")] : []),
  ];
}

/** Return sentences on how the symbol is drawn. */
function chances(/** @type {Block} */ block, /** @type {[Rational, Rational] | null} */ same, /** @type {string} */ language, /** @type {Texts} */ t) {
  const { mechanism: m } = block;
  if (isUnchanged(m)) return [t.say("explanation", "unchanged")];
  if (!same) return explained(m).chances(block, t, language);
  const [low, high] = same.map((chance) => t.figure(percent(chance))), isEven = same[0].join() === same[1].join();
  return [t.say("explanation", isEven ? "named" : "named_range", { chance: low, low, high })];
}

/** Return the report as it will look, with placeholders for its random values. */
function reportTemplate(/** @type {Survey} */ survey, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("explanation", name, values);
  const strata = Object.fromEntries(openQuestions(survey).map((q) => [q.id, q === survey.instructed ? "!" : "?"]));
  const sample = textOfReport({ doc: survey.digest, id: "", y: [], strata: { ...strata, ...drawnArm(survey) }, token: survey.token && "?" });
  const symbols = survey.blocks.map(({ mechanism: m }) => explained(m).symbol(m, t));
  return sample.replace('"id":""', () => `"id":${say("random_digits")}`).replace('"y":[]', () => `"y":[${symbols.join()}]`)
    .replace('"token":"?"', () => `"token":"${say("token")}"`).replaceAll(':"?"', () => `:"${say("public_answer")}"`)
    .replace(':"!"', () => `:"${say("passed")}"`);
}
