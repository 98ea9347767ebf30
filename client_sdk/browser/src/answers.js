// SPDX-License-Identifier: Apache-2.0
/**
 * Ways of answering (spec 3.5): ticked boxes, numbers and skipped questions become one choice of each question, before
 * anything is drawn. Errors never contain an answer.
 */

import { UnknownChoice } from "./errors.js";

/**
 * @typedef {import("./documents.js").Question} Question
 * @typedef {Record<string, string>} Choices
 */

/** Ids of a box's choices: not ticked, ticked. */
export const BOX_CHOICES = ["no", "yes"];

/** Return the id of a box among those of its question. */
export const boxId = (/** @type {Question} */ { id, box }) => id.slice(/** @type {import("./documents.js").Box} */ (box).of.length + 1);

/** Return the questions as a person sees them: neighbouring boxes of one question together, any other question alone. */
export const groupsOf = (/** @type {Question[]} */ questions) =>
  questions.reduce((/** @type {Question[][]} */ groups, one) => {
    const last = groups.at(-1);
    if (one.box && one.box.of === last?.[0].box?.of) last.push(one);
    else groups.push([one]);
    return groups;
  }, []);

/** Return true if the person gives a number, of which only the range is used. */
export const asksNumber = (/** @type {Question} */ { choices }) => choices.some(({ from }) => from !== undefined);

/** Return the choice whose range holds a number; undefined if it is below all ranges, or not a whole number. @returns {string | undefined} */
export const ofNumber = (/** @type {Question} */ { choices }, /** @type {any} */ number) =>
  Number.isSafeInteger(number) ? choices.filter(({ from = Infinity }) => from <= number).at(-1)?.id : undefined;

/** Return the choice of a question that its rule skips, given the choices of those before it; undefined if it is asked. @returns {string | undefined} */
export function skipped(/** @type {Question} */ { choices, box, ask_if: rule }, /** @type {Record<string, string | undefined>} */ chosen) {
  if (!rule || rule.choices.some((choice) => choice === chosen[rule.question])) return undefined;
  return box ? ticked(box.role === "not_applicable") : choices.find(({ role }) => role === "not_applicable")?.id;
}

/** Return the choice of a box. */
export const ticked = (/** @type {boolean} */ isTicked) => BOX_CHOICES[Number(isTicked)];

/** Return one choice for each of `questions`; throws UnknownChoice if the answers are not valid ones to exactly these. @returns {Choices} */
export function settled(/** @type {any} */ given, /** @type {Question[]} */ questions) {
  const names = questions.map(({ id }) => id);
  if (given === null || typeof given !== "object") throw new UnknownChoice(null, names, "no_answers");
  const copy = { ...given }, chosen = /** @type {Choices} */ ({}), groups = groupsOf(questions);
  for (const group of groups)
    for (const one of group) chosen[one.id] = skipped(one, chosen) ?? (one.box && Object.hasOwn(copy, one.box.of) ? listed(copy, one, group) : single(copy, one));
  for (const group of groups) {
    const boxes = group.filter(({ id, box }) => box && chosen[id] === ticked(true));
    if (boxes.length > 1 && boxes.some(({ box }) => box?.role)) throw wrongBoxes(group, "box_beside_others");
  }
  const known = [...names, ...questions.map(({ box }) => box?.of)];
  if (!Object.keys(copy).every((name) => known.includes(name))) throw new UnknownChoice(null, names, "no_question");
  return chosen;
}

/** Return the choice given for one question, by its id or by a number. @returns {string} */
function single(/** @type {any} */ given, /** @type {Question} */ question) {
  const { id, choices } = question, valid = choices.map((choice) => choice.id), answer = given[id], isNumber = asksNumber(question);
  const wrong = (/** @type {string} */ key) => new UnknownChoice(id, valid, key);
  if (!Object.hasOwn(given, id)) throw wrong("no_answer");
  if (isNumber && Number.isSafeInteger(answer)) {
    const choice = ofNumber(question, answer);
    if (!choice) throw wrong("below_ranges");
    return choice;
  }
  if (typeof answer !== "string") throw wrong(isNumber ? "answer_no_number" : "answer_no_text");
  if (!valid.includes(answer)) throw wrong("no_choice");
  return answer;
}

/** Return the choice of a box whose question is answered by a list of ticked boxes. */
function listed(/** @type {any} */ given, /** @type {Question} */ question, /** @type {Question[]} */ group) {
  const list = given[/** @type {import("./documents.js").Box} */ (question.box).of], ids = group.map(boxId);
  if (!Array.isArray(list)) throw wrongBoxes(group, "no_box_list");
  if (!list.every((one) => ids.includes(one))) throw wrongBoxes(group, "no_box");
  if (Object.hasOwn(given, question.id)) throw wrongBoxes(group, "boxes_twice");
  return ticked(list.includes(boxId(question)));
}

const wrongBoxes = (/** @type {Question[]} */ group, /** @type {string} */ key) =>
  new UnknownChoice(/** @type {import("./documents.js").Box} */ (group[0].box).of, group.map(boxId), key);
