// SPDX-License-Identifier: Apache-2.0
/**
 * What a device asks of a document that has arms, or forms that ask only what is drawn (docs/spec/3-documents.md, 3.7 and 3.10, and
 * 4-acceptance.md, 4.5). parts.js loads this module if a document needs it.
 */

import { UnknownChoice } from "./errors.js";
import { parts } from "./parts.js";
import { matching } from "./schema.js";
import { questionsOf } from "./survey.js";

/**
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./answers.js").Choices} Choices
 * @typedef {[number, number[]]} FormPlan the component and the parts
 * @typedef {FormPlan[]} Plans one for each form, in the order of the document or of the view
 * @typedef {Plans | {arm: string, plans: Plans}} Stored as it is stored; with the arm, if there are arms
 */

/** Readers of a form's fields that may be left out. */
export const BLOCK = { ask: matching(/^drawn$/, "no_ask") };

const formsOf = (/** @type {Survey} */ { blocks }) => blocks.filter(({ ask }) => ask);
const groupOf = (/** @type {Question} */ { id, box }) => box?.of ?? id;
const mechanismOf = (/** @type {import("./survey.js").Block} */ { mechanism }) => /** @type {any} */ (mechanism);

/**
 * Return what a plan depends on: the arms as they are written, mechanisms, and questions without their words, figures, anchors and scores.
 * A later version with the same text keeps the plan.
 */
export function formOf(/** @type {Survey} */ survey) {
  const forms = formsOf(survey).map(({ id, parameters, questions }) =>
    [id, parameters, questions.map(({ id: name, choices, box, ask_if: rule }) => [name, choices.map(({ id: one, role, from }) => [one, role, from]), box && [box.of, box.role], rule])]);
  return JSON.stringify(survey.arms ? [survey.arms, forms] : forms);
}

/** Draw a plan for each form, before them the arm if there are arms. @returns {Stored} */
export function draw(/** @type {Survey} */ survey, /** @type {import("./mechanisms.js").RandomBits} */ bits) {
  const arm = survey.arms && /** @type {string} */ (parts.arms.draw(survey, bits)), view = arm ? parts.arms.viewOf(survey, arm) : survey;
  const plans = formsOf(view).map((form) => mechanismOf(form).plan(bits));
  return arm ? { arm, plans } : plans;
}

/** Return the plans of what is stored. */
export const plansIn = (/** @type {Stored} */ stored) => ("plans" in stored ? stored.plans : stored);

/** Return the questions to ask: all of other blocks, those of the plans' parts, and with each the one that its rule names and all boxes of its group. */
export function needed(/** @type {Survey} */ survey, /** @type {Plans} */ plans) {
  const all = questionsOf(survey), forms = formsOf(survey);
  const drawn = forms.flatMap((form, i) => plans[i][1].flatMap((part) => mechanismOf(form).parts[part].map((/** @type {number} */ q) => form.questions[q])));
  const pending = [...survey.blocks.filter(({ ask }) => !ask).flatMap(({ questions }) => questions), ...drawn], groups = new Set();
  for (let one = pending.pop(); one; one = pending.pop()) {
    groups.add(groupOf(one));
    const rule = one.ask_if;
    // The boxes of a group have one rule, so any of them leads to what the group depends on.
    if (rule) pending.push(/** @type {Question} */ (all.find(({ id }) => id === rule.question)));
  }
  return all.filter((one) => groups.has(groupOf(one)));
}

/**
 * Return the choices that the rule of a question without an answer looks at, or undefined if the question is left without a
 * choice: it has no answer and no rule skips it. The answer that a rule looks at may be missing too; then the rule has no effect.
 * @returns {Choices | undefined}
 */
export function partly(/** @type {any} */ given, /** @type {Question} */ question, /** @type {Choices} */ chosen) {
  const { id, box, ask_if: rule } = question, seen = !rule || rule.question in chosen ? chosen : { ...chosen, [rule.question]: rule.choices[0] };
  return Object.hasOwn(given, id) || (box && Object.hasOwn(given, box.of)) || parts.ways?.skipped(question, seen) ? seen : undefined;
}

/** Return the choices of these questions alone; throws UnknownChoice if one is missing. @returns {Choices} */
export const only = (/** @type {Choices} */ chosen, /** @type {Question[]} */ questions) => Object.fromEntries(questions.map(({ id, choices }) => {
  if (!(id in chosen)) throw new UnknownChoice(id, choices.map((choice) => choice.id), "no_answer");
  return [id, chosen[id]];
}));

/** What to ask one respondent, for the page to show; its JSON and its text show nothing. */
export class Plan {
  #questions;
  #asked;
  #of;

  #arm;

  constructor(/** @type {Question[]} */ questions, /** @type {Question[]} */ all, /** @type {string | null} */ arm = null) {
    this.#questions = Object.freeze(questions.map(({ id }) => id));
    this.#asked = new Set(questions.map(groupOf)).size;
    this.#of = new Set(all.map(groupOf)).size;
    this.#arm = arm;
  }

  /** The arm that is asked, null if there are no arms. */
  get arm() {
    return this.#arm;
  }

  /** Ids of the questions to ask, in the order of the document or of the arm. */
  get questions() {
    return this.#questions;
  }

  /** Their number; the boxes of one question count as one. */
  get asked() {
    return this.#asked;
  }

  /** The number of questions of the document or of the arm. */
  get of() {
    return this.#of;
  }
}
