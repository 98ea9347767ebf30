// SPDX-License-Identifier: Apache-2.0
/** Explanation of a survey (step 11), in exactly the words of the Python SDK. */

import { asksNumber, groupsOf } from "./answers.js";
import { reportLength, textOfReport } from "./documents.js";
import { guess as guessOf, isUnchanged } from "./guesses.js";
import { blockPromises, cost, wholeReport } from "./promised.js";
import { ONE, rational } from "./rational.js";
import { lnUp, percent, times } from "./shown.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {import("./documents.js").Block} Block
 */

const LIMITS =
  "What this cannot protect: your network address is visible to the server’s operator unless you use a relay; a device or operating " +
  "system that someone else controls sees everything; nobody can stop someone from forcing you to answer, and nobody can check that an answer is " +
  "true. Once sent, an answer cannot be withdrawn. If this app's memory is erased, it no longer knows that you have answered; answering again would then reveal more about you.";

/** Explain a verified survey in one of its languages, by default the first; `level` is the level of its whole report under the app's own cap on δ. */
export function explain(
  /** @type {Survey} */ survey, /** @type {import("./ledger.js").ReportLevel} */ level, /** @type {string[]} */ signedBy,
  /** @type {string | undefined} */ language = undefined, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget = undefined,
) {
  const chosen = language !== undefined && survey.languages.includes(language) ? language : survey.languages[0];
  const blocks = survey.blocks.map((block) => explainBlock(block, chosen, survey.strata.length > 0)), shown = leaves(survey);
  const words = [
    survey.title[chosen],
    ...(survey.consent ? [`The survey’s own words: “${survey.consent[chosen]}”`] : []),
    "The report is made here, on this device; nothing is sent except what is listed below.",
    ...(survey.strata.length ? [`These answers are sent as you give them, not randomised: ${survey.strata.map((q) => q.text[chosen]).join("; ")}`] : []),
    ...(survey.token ? [survey.token.key === null
      ? "Your invitation is sent with the report, unchanged: the person who handed it out can tell from it which random result is yours."
      : "Your token is sent with the report, unchanged; it was signed without being seen, so it does not show whom it was given to."] : []),
    ...blocks.map((block) => block.words),
    wholeReport(survey, level).join("\n"),
    cost(level, budget),
    `What is sent, once, padded with spaces to ${reportLength(survey)} bytes: ${shown}`,
    `Signed by: ${signedBy.map((key) => key.slice(0, 16)).join(", ")}. A signature says who made the survey, not that a prior is true.`,
    LIMITS,
  ].join("\n\n");
  return { title: survey.title[chosen], blocks, formNats: lnUp(level.cost.odds), formDelta: level.cost.delta, level, signedBy, leaves: shown, words, toString: () => words };
}

function explainBlock(/** @type {Block} */ block, /** @type {string} */ language, /** @type {boolean} */ hasStrata) {
  const { mechanism: m, questions } = block;
  const [guess, blind] = m.kind === "agreement" ? m.guess() : [guessOf(m), rational(1, m.answers)], same = sameOf(m);
  const words = [
    ...asked(questions, language),
    ...chances(block, same, language),
    m.kind === "agreement" && m.choices.length > 1
      ? `A guess at one of these answers from this alone is right at most ${percent(guess)} of the time, where a blind guess is right ${percent(blind)}, if all answers are equally common.`
      : `A guess from this alone is right ${percent(guess)} of the time; a blind guess, ${percent(blind)}, if all answers are equally common.`,
    ...blockPromises(block, hasStrata),
  ];
  return { block: block.id, questions: [...new Set(questions.map((q) => (q.box ?? q).text[language]))], same, guess, blind, ceiling: block.ceiling, unchanged: isUnchanged(m), words: words.join("\n  ") };
}

/** Return every question with its possible answers; a question with boxes once, with all of them. @returns {string[]} */
function asked(/** @type {import("./documents.js").Question[]} */ questions, /** @type {string} */ language) {
  const labels = (/** @type {{label: import("./documents.js").Words}[]} */ entries) => entries.map(({ label }) => label[language]).join(" / ");
  return [
    ...groupsOf(questions).map((group) => {
      const [first] = group;
      if (first.box) return `${first.box.text[language]} (any of: ${labels(group.flatMap(({ box }) => box ?? []))})`;
      return `${first.text[language]} (${asksNumber(first) ? "a number, of which only the range is used: " : ""}${labels(first.choices)})`;
    }),
    ...(questions.some((q) => q.ask_if) ? ["Your device skips questions that an earlier answer rules out. It answers them with the choice " +
      "made for that, randomised like any other answer: the report does not show what you were asked."] : []),
  ];
}

/** Return the smallest and the largest chance on the diagonal; null unless the diagonal is the strict maximum of every column. @returns {[Rational, Rational] | null} */
function sameOf(/** @type {import("./mechanisms.js").Mechanism} */ m) {
  if (isUnchanged(m)) return [ONE, ONE];
  if (m.kind !== "dense" || m.weights.length !== m.weights[0].length) return null;
  if (m.weights.some((row, x) => row.some((w, y) => x !== y && w >= m.weights[y][y]))) return null;
  const own = m.weights.map((row, x) => row[x]), D = 1n << BigInt(m.bits);
  return [rational(Math.min(...own), D), rational(Math.max(...own), D)];
}

/** Return the sentences that explain how a report about many questions is drawn. */
function formChances(/** @type {import("./mechanisms.js").Agreement} */ m) {
  const [low, high] = m.questionsDrawn(), most = m.choices.length;
  return [
    ...(low < most ? [`Your device picks ${low === high ? low : `${low} to ${high}`} of these ${most} questions at random; your answers do not influence which. The report is about these questions only.`] : []),
    "For each question in the report your device draws a random set of its answers. Sets that hold your true answers are likelier: a report in which enough of them do is " +
      `×${times(m.level)} as likely as any other. The chances are listed in the signed survey.`,
  ];
}

function chances(/** @type {Block} */ { mechanism: m, questions }, /** @type {[Rational, Rational] | null} */ same, /** @type {string} */ language) {
  const D = 1n << BigInt(m.bits), of = (/** @type {number} */ w) => percent(rational(w, D));
  if (isUnchanged(m)) return ["Your answer to this is sent unchanged: every symbol that can be sent stands for one answer."];
  if (same) {
    const [low, high] = same.map(percent), even = same[0].join() === same[1].join();
    return [`The random result names your true answer with a chance of ${even ? low : `${low} to ${high}, depending on the answer`}; otherwise it names another one.`];
  }
  if (m.kind === "agreement") return formChances(m);
  if (m.kind === "unary")
    return [`The random result is a yes or a no for every answer: for the true one a yes with a chance of ${of(m.keep)}, for any other with a chance of ${of(m.flip)}.`];
  if (m.kind === "subset")
    return [`The random result is a set of ${m.size} of the ${m.answers} answers; the true one is among them with a chance of ${of(m.inside)}.`];
  if (BigInt(m.answers) * m.reports > 64n)
    return [`The random result is one of ${m.reports} symbols; their chances for every answer are listed in the signed survey.`];
  const labels = questions.reduce((/** @type {string[]} */ all, q) => all.flatMap((head) => q.choices.map((c) => (head ? `${head} / ` : "") + c.label[language])), [""]);
  return ["The random result is one of these symbols:", ...labels.map((label, x) => {
    const chances = row(m, x), isRare = (/** @type {Rational} */ [n, d]) => n << 24n <= d;
    const likely = chances.filter(([, chance]) => !isRare(chance)).map(([y, chance]) => `${y} with a chance of ${percent(chance)}`);
    // Rounding turns zeros of an optimum into a few units of 2^-48; a row has at most 64 chances, and 64 · 2^-24 is below 0.001%.
    const rest = chances.some(([, chance]) => chance[0] && isRare(chance)) ? ", any other with a chance below 0.001%" : "";
    return `  if your answer is ${label}: ${likely.join(", ")}${rest}.`;
  })];
}

/** Return every symbol with its chance, given answer x. @returns {[string, Rational][]} */
function row(/** @type {import("./mechanisms.js").Dense | import("./mechanisms.js").Product} */ m, /** @type {number} */ x) {
  if (m.kind === "dense") return m.weights[x].map((w, y) => [String(y), rational(w, 1n << BigInt(m.bits))]);
  return m.parts(x).map((part, j) => row(m.factors[j], part)).reduce((all, own) =>
    all.flatMap(([y, p]) => own.map(([z, q]) => /** @type {[string, Rational]} */ ([`${y} and ${z}`, rational(p[0] * q[0], p[1] * q[1])]))));
}

/** Return the report as it will look, with placeholders for its random values. */
function leaves(/** @type {Survey} */ survey) {
  const strata = Object.fromEntries(survey.strata.map((q) => [q.id, "your public answer"]));
  const sample = textOfReport({ doc: survey.digest, id: "", y: [], strata, token: survey.token && "your token" });
  const symbols = survey.blocks.map(({ mechanism: m, mechanism: { longest } }) =>
    m.kind === "agreement" ? `[<${m.numbers[0] < m.numbers[1] ? `${m.numbers[0]} to ` : ""}${m.numbers[1]} numbers: a component, then parts and their sets>]` :
    typeof longest === "string" ? `<${longest.length} hex digits>` : typeof longest === "number" ? `0–${longest}` : `[${longest.map((part) => `0–${part}`).join()}]`);
  return sample.replace('"id":""', '"id":<32 random hex digits>').replace('"y":[]', () => `"y":[${symbols.join()}]`);
}
