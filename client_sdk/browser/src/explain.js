// SPDX-License-Identifier: Apache-2.0
/** Explanation of a survey (step 11), in the texts of the Python SDK. */

import { isPlain } from "./fits.js";
import { guess as guessOf, isUnchanged } from "./guesses.js";
import { beliefs, consequences, invitesOf, questionName, summary } from "./label.js";
import { blockPromises, cost, wholeReport } from "./promised.js";
import { ONE, rational } from "./rational.js";
import { lnUp, percent, times } from "./shown.js";
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
  const { mechanism: m, questions } = block, { guess, blind, guessWords } = guessed(block, language, t), same = sameOf(m);
  const words = [...asked(questions, language, t), ...chances(block, same, language, t), guessWords, ...blockPromises(block, hasStrata, t)];
  return { block: block.id, questions: [...new Set(questions.map((q) => (q.box ?? q).text[language]))], same, guess, blind, guessWords, ceiling: block.ceiling, unchanged: isUnchanged(m), words: words.join("\n  ") };
}

/** Return the chances of a right guess, from the symbol and without it, and a sentence that names what is guessed. */
function guessed(/** @type {Block} */ { mechanism: m, questions }, /** @type {string} */ language, /** @type {Texts} */ t) {
  const [guess, blind, easiest] = m.kind === "agreement" ? m.guess() : [guessOf(m), rational(1, m.answers), 0];
  const name = questions.length === 1 ? "guess" : m.kind === "agreement" ? "guess_of_many" : "guess_of_all";
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

/**
 * Return the smallest and the largest chance on the diagonal; null unless the diagonal is the strict maximum of every
 * column.
 * @returns {[Rational, Rational] | null}
 */
function sameOf(/** @type {import("./mechanisms.js").Mechanism} */ m) {
  if (isUnchanged(m)) return [ONE, ONE];
  if (m.kind !== "dense" || m.weights.length !== m.weights[0].length) return null;
  if (m.weights.some((row, x) => row.some((w, y) => x !== y && w >= m.weights[y][y]))) return null;
  const own = m.weights.map((row, x) => row[x]), D = 1n << BigInt(m.bits);
  return [rational(Math.min(...own), D), rational(Math.max(...own), D)];
}

/** Return the sentences that explain how a report about many questions is drawn. */
function formChances(/** @type {import("./mechanisms.js").Agreement} */ m, /** @type {boolean} */ hasBoxes, /** @type {Block["ask"]} */ ask, /** @type {Texts} */ t) {
  const [low, high] = m.questionsDrawn(), all = m.choices.length;
  return [
    ...(low < all ? [t.say("explanation", low === high ? "picked" : "picked_range", { n: low, low, high, all })] : []),
    ...(low < all && hasBoxes ? [t.say("explanation", ask ? "boxes_drawn" : "boxes_count")] : []),
    ...(low < all && ask ? [t.say("explanation", "asked_drawn")] : []),
    t.say("explanation", "sets", { ratio: t.figure(times(m.level)) }),
  ];
}

function chances(/** @type {Block} */ { mechanism: m, questions, ask }, /** @type {[Rational, Rational] | null} */ same, /** @type {string} */ language, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("explanation", name, values), share = (/** @type {Rational} */ chance) => t.figure(percent(chance));
  const D = 1n << BigInt(m.bits), of = (/** @type {number} */ w) => share(rational(w, D));
  if (isUnchanged(m)) return [say("unchanged")];
  if (same) {
    const [low, high] = same.map(share), isEven = same[0].join() === same[1].join();
    return [say(isEven ? "named" : "named_range", { chance: low, low, high })];
  }
  if (m.kind === "agreement") return formChances(m, questions.some((q) => q.box), ask, t);
  if (m.kind === "unary") return [say("unary", { keep: of(m.keep), flip: of(m.flip) })];
  if (m.kind === "subset") return [say("subset", { n: m.size, answers: m.answers, chance: of(m.inside) })];
  if (BigInt(m.answers) * m.reports > 64n) return [say("many_symbols", { n: m.reports })];
  const labels = questions.reduce((/** @type {string[]} */ all, q) => all.flatMap((head) => q.choices.map((c) => (head ? `${head} / ` : "") + c.label[language])), [""]);
  return [say("symbols"), ...labels.map((answer, x) => {
    const chances = row(m, x, t), isRare = (/** @type {Rational} */ [n, d]) => n << 24n <= d;
    const likely = chances.filter(([, chance]) => !isRare(chance)).map(([symbol, chance]) => say("chance_of", { symbol, chance: share(chance) }));
    // Rounding turns zeros of an optimum into a few units of 2^-48; a row has at most 64 chances, and 64 · 2^-24 is below 0.001%.
    const rest = chances.some(([, chance]) => chance[0] && isRare(chance)) ? say("rare", { chance: t.figure("0.001%") }) : "";
    return say("symbols_of", { answer, chances: likely.join(", "), rest });
  })];
}

/** Return every symbol with its chance, given answer x. @returns {[string, Rational][]} */
function row(/** @type {import("./mechanisms.js").Dense | import("./mechanisms.js").Product} */ m, /** @type {number} */ x, /** @type {Texts} */ t) {
  if (m.kind === "dense") return m.weights[x].map((w, y) => [String(y), rational(w, 1n << BigInt(m.bits))]);
  return m.parts(x).map((part, j) => row(m.factors[j], part, t)).reduce((all, own) =>
    all.flatMap(([first, p]) => own.map(([second, q]) => /** @type {[string, Rational]} */ ([t.say("explanation", "and", { first, second }), rational(p[0] * q[0], p[1] * q[1])]))));
}

/** Return the report as it will look, with placeholders for its random values. */
function reportTemplate(/** @type {Survey} */ survey, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("explanation", name, values);
  const strata = Object.fromEntries(openQuestions(survey).map((q) => [q.id, q === survey.instructed ? "!" : "?"]));
  const sample = textOfReport({ doc: survey.digest, id: "", y: [], strata: { ...strata, ...drawnArm(survey) }, token: survey.token && "?" });
  const symbols = survey.blocks.map(({ mechanism: m, mechanism: { longest } }) => {
    if (m.kind === "agreement") return `[${say(m.numbers[0] < m.numbers[1] ? "numbers_range" : "numbers", { n: m.numbers[1], low: m.numbers[0], high: m.numbers[1] })}]`;
    if (typeof longest === "string") return say("hex_digits", { n: longest.length });
    return typeof longest === "number" ? `0–${longest}` : `[${longest.map((part) => `0–${part}`).join()}]`;
  });
  return sample.replace('"id":""', () => `"id":${say("random_digits")}`).replace('"y":[]', () => `"y":[${symbols.join()}]`)
    .replace('"token":"?"', () => `"token":"${say("token")}"`).replaceAll(':"?"', () => `:"${say("public_answer")}"`)
    .replace(':"!"', () => `:"${say("passed")}"`);
}
