// SPDX-License-Identifier: Apache-2.0
/**
 * Ways of answering (spec 3.5): boxes to tick, numbers, scores, rules that skip a question, choices with a role, wanted
 * figures, and anchors. parts.js loads this module if a document needs it. Errors never contain an answer.
 */

import { UnknownChoice } from "./errors.js";
import { identifier, integer, list, matching, object, reject, requireDistinct, text, under, words } from "./schema.js";

/**
 * @typedef {import("./survey.js").Choice} Choice
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./survey.js").Box} Box
 * @typedef {import("./survey.js").Rule} Rule
 * @typedef {import("./answers.js").Choices} Choices
 */

const role = matching(/^(no_answer|not_applicable)$/, "no_role");
const score = matching(/^(?!-0$)-?(0|[1-9]\d{0,8})(\.\d{0,5}[1-9])?$/, "no_score");
const figure = matching(/^(mean|distribution|contrast)$/, "no_figure");
/** Readers of a choice's fields that may be left out. */
export const CHOICE = { role, from: integer(-Number.MAX_SAFE_INTEGER), score };
const known = object({ counts: list(2, 1000, integer()), source: text() }), repeated = object({ repeats: identifier });
/** Readers of a question's fields that may be left out. */
export const QUESTION = {
  box: object({ of: identifier, text: words, label: words }, [], { role }),
  ask_if: object({ choices: list(1, 63, identifier, (name) => name), question: identifier }),
  wanted: object({
    figure: (value, path, _root, wanted, at = path) => {
      if ((figure(value, path) === "contrast") !== "numbers" in wanted) throw reject(at, "no_figure");
      return value;
    },
  }, [], { numbers: list(2, 1000, score) }),
  anchor: (/** @type {any} */ value, /** @type {string} */ path) => (value?.repeats === undefined ? known : repeated)(value, path),
};

/** Throw if two entries have the same role, if all have one, or if a rule can skip the question and no entry has the role for that. */
function requireRoles(/** @type {{role?: string}[]} */ entries, /** @type {Rule | undefined} */ rule, /** @type {string} */ path) {
  const roles = entries.flatMap(({ role }) => role ?? []);
  requireDistinct(roles, path);
  if (roles.length === entries.length) throw reject(path, "only_roles");
  if (rule && !roles.includes("not_applicable")) throw reject(path, "no_skipped");
}

/** Throw unless roles, ranges, scores, wanted figure and anchor of a question that has been read fit each other, and a box is one. */
export function requireForm(/** @type {Question} */ { id, choices, box, ask_if: rule, wanted, anchor }, /** @type {string} */ path) {
  const at = under(path, "choices"), answers = choices.filter((choice) => !choice.role);
  requireRoles(choices, undefined, at);
  for (const name of ["from", "score"])
    if (choices.some((choice) => name in choice !== (!choice.role && name in answers[0]))) throw reject(at, "not_all", name);
  const lows = answers.flatMap(({ from }) => from ?? []);
  if (lows.some((low, i) => low <= lows[i - 1])) throw reject(at, "order_of_ranges");
  if (wanted && (box || (wanted.figure === "mean" && !answers[0].score) || (wanted.numbers ?? choices).length !== choices.length))
    throw reject(under(path, "wanted"), "no_figure");
  if (anchor) {
    const { counts } = anchor;
    if (box || rule || (counts && answers.length !== choices.length)) throw reject(under(path, "anchor"), "anchor_of_all");
    if (counts && (counts.length !== choices.length || !counts.some(Boolean))) throw reject(under(path, "anchor.counts"), "anchor_counts");
  }
  if (!box) return;
  if (choices.some((choice, i) => choice.id !== BOX_CHOICES[i] || Object.keys(choice).length > 2)) throw reject(at, "box_choices");
  if (!id.startsWith(`${box.of}-`) || id.length === box.of.length + 1) throw reject(under(path, "id"), "box_id", box.of);
}

/** Throw unless boxes of a question are neighbours, rules refer to earlier choices and repeated questions to earlier ones; `questions` : all randomised ones, in the document's order. */
export function requireRules(/** @type {Question[]} */ questions) {
  /** @type {Map<string, string[]>} */
  const earlier = new Map(), ofEverybody = new Map();
  for (const { id, choices, box, ask_if: rule, anchor } of questions) {
    const ids = choices.map((choice) => choice.id);
    if (rule && !rule.choices.every((choice) => earlier.get(rule.question)?.includes(choice))) throw reject(id, "no_earlier");
    if (!box) requireRoles(choices, rule, id);
    if (anchor?.repeats && ofEverybody.get(anchor.repeats) !== ids.join()) throw reject(id, "no_repeated");
    earlier.set(id, ids);
    if (!box && !rule) ofEverybody.set(id, ids.join());
  }
  const names = new Set(earlier.keys());
  for (const group of groupsOf(questions)) {
    const { box, ask_if: rule } = group[0], alike = (/** @type {Question} */ one) => JSON.stringify([one.box?.text, one.ask_if]);
    if (!box) continue;
    if (names.has(box.of)) throw reject(box.of, "boxes_apart");
    names.add(box.of);
    if (group.some((one) => alike(one) !== alike(group[0]))) throw reject(box.of, "boxes_differ");
    requireRoles(group.map((one) => /** @type {Box} */ (one.box)), rule, box.of);
  }
}

/** Ids of a box's choices: not ticked, ticked. */
export const BOX_CHOICES = ["no", "yes"];

/** Return the id of a box among those of its question. */
export const boxId = (/** @type {Question} */ { id, box }) => id.slice(/** @type {Box} */ (box).of.length + 1);

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

/** Return the choice of a question that its rule skips or whose boxes are listed; undefined if it has an answer of its own. `chosen`: the choices of those before it. */
export const settle = (/** @type {any} */ given, /** @type {Question} */ question, /** @type {Question[]} */ questions, /** @type {Choices} */ chosen) =>
  skipped(question, chosen) ?? (question.box && Object.hasOwn(given, question.box.of) ? listed(given, question, groupOf(question, questions)) : undefined);

const groupOf = (/** @type {Question} */ question, /** @type {Question[]} */ questions) =>
  /** @type {Question[]} */ (groupsOf(questions).find((group) => group.includes(question)));

/** Throw if a box that excludes the others of its question is ticked with one of them. */
export function requireTogether(/** @type {Question[]} */ questions, /** @type {Choices} */ chosen) {
  for (const group of groupsOf(questions)) {
    const boxes = group.filter(({ id, box }) => box && chosen[id] === ticked(true));
    if (boxes.length > 1 && boxes.some(({ box }) => box?.role)) throw wrongBoxes(group, "box_beside_others");
  }
}

/** Return the choice whose range holds the number given for a question; undefined unless it asks for one. */
export function rangeOf(/** @type {any} */ number, /** @type {Question} */ question) {
  if (!asksNumber(question) || !Number.isSafeInteger(number)) return undefined;
  const choice = ofNumber(question, number);
  if (!choice) throw new UnknownChoice(question.id, question.choices.map(({ id }) => id), "below_ranges");
  return choice;
}

/** Return the choice of a box whose question is answered by a list of ticked boxes. */
function listed(/** @type {any} */ given, /** @type {Question} */ question, /** @type {Question[]} */ group) {
  const list = given[/** @type {import("./survey.js").Box} */ (question.box).of], ids = group.map(boxId);
  if (!Array.isArray(list)) throw wrongBoxes(group, "no_box_list");
  if (!list.every((one) => ids.includes(one))) throw wrongBoxes(group, "no_box");
  if (Object.hasOwn(given, question.id)) throw wrongBoxes(group, "boxes_twice");
  return ticked(list.includes(boxId(question)));
}

const wrongBoxes = (/** @type {Question[]} */ group, /** @type {string} */ key) =>
  new UnknownChoice(/** @type {import("./survey.js").Box} */ (group[0].box).of, group.map(boxId), key);
