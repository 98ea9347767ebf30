// SPDX-License-Identifier: Apache-2.0
/** Answers: one choice of each question, before anything is drawn; ways.js has the ways of answering that few surveys use. Errors never contain an answer. */

import { UnknownChoice } from "./errors.js";
import { parts } from "./parts.js";

/**
 * @typedef {import("./survey.js").Question} Question
 * @typedef {Record<string, string>} Choices
 */

/**
 * Return one choice for each of `questions`; throws UnknownChoice if the answers are not valid ones to exactly these. `partly` of
 * plans.js leaves questions without an answer without a choice.
 * @returns {Choices}
 */
export function settled(/** @type {any} */ given, /** @type {Question[]} */ questions, partly = (/** @type {any} */ _given, /** @type {Question} */ _one, /** @type {Choices} */ chosen) => /** @type {Choices | undefined} */ (chosen)) {
  const names = questions.map(({ id }) => id), { ways } = parts;
  if (given === null || typeof given !== "object") throw new UnknownChoice(null, names, "no_answers");
  const copy = { ...given }, chosen = /** @type {Choices} */ ({});
  for (const one of questions) {
    const seen = partly(copy, one, chosen);
    if (seen) chosen[one.id] = ways?.settle(copy, one, questions, seen) ?? single(copy, one);
  }
  ways?.requireTogether(questions, chosen);
  const known = [...names, ...questions.map(({ box }) => box?.of)];
  if (!Object.keys(copy).every((name) => known.includes(name))) throw new UnknownChoice(null, names, "no_question");
  return chosen;
}

/** Return the choice given for one question, by its id or by a number. @returns {string} */
function single(/** @type {any} */ given, /** @type {Question} */ question) {
  const { id, choices } = question, valid = choices.map((choice) => choice.id), answer = given[id];
  const wrong = (/** @type {string} */ key) => new UnknownChoice(id, valid, key);
  if (!Object.hasOwn(given, id)) throw wrong("no_answer");
  const range = parts.ways?.rangeOf(answer, question);
  if (range) return range;
  if (typeof answer !== "string") throw wrong(choices.some((choice) => "from" in choice) ? "answer_no_number" : "answer_no_text");
  if (!valid.includes(answer)) throw wrong("no_choice");
  return answer;
}
