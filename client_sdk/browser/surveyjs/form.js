// SPDX-License-Identifier: Apache-2.0
/**
 * Mapping of a SurveyJS form's questions to those of a signed document, and of their values to its choices. This module
 * does not draw, send or store anything.
 */

/**
 * @typedef {import("../frankly.d.ts").Question} Signed
 * @typedef {import("./index.d.ts").Warning} Warning
 * @typedef {{id: string, signed: Signed[], kind: string, question: any, row: any}} Pair row: of a matrix, otherwise undefined
 */

const ONE = ["radiogroup", "dropdown", "buttongroup", "boolean", "rating", "imagepicker"], MANY = ["checkbox", "tagbox"];
const SHOWN_ONLY = ["html", "image"];

/** Return how a question is answered: one, many, number or rows; an empty string if no signed question can represent it. */
function kindOf(/** @type {any} */ question) {
  const type = question.getType();
  if (MANY.includes(type) || (type === "imagepicker" && question.multiSelect)) return "many";
  if (ONE.includes(type)) return "one";
  if (type === "matrix" && question.cellType !== "checkbox") return "rows";
  if ((type === "text" && ["number", "range"].includes(question.inputType)) || (type === "slider" && question.sliderType === "single")) return "number";
  return "";
}

/** Return the values that a form's question offers; empty if the question asks for a number or loads its choices later. */
function offered(/** @type {any} */ question) {
  const type = question.getType(), list = { boolean: [{ value: true }, { value: false }], rating: question.visibleRateValues, matrix: question.columns }[/** @type {string} */ (type)];
  return /** @type {any[]} */ (list ?? question.choices ?? []).map(({ value }) => value);
}

/** Return the id of the signed choice that corresponds to a value; undefined if there is none. */
function choiceOf(/** @type {Pair} */ { question, signed: [{ choices }] }, /** @type {any} */ value) {
  if (question.getType() === "boolean") value = value === question.getValueTrue() || value === true ? named(question.valueTrue, "yes") : named(question.valueFalse, "no");
  const id = String(value), scored = question.getType() === "rating" ? choices.find(({ score }) => score !== undefined && Number(score) === Number(value)) : undefined;
  return choices.find((choice) => choice.id === id)?.id ?? scored?.id;
}

const named = (/** @type {any} */ value, /** @type {string} */ otherwise) => (value === undefined || typeof value === "boolean" ? otherwise : value);

/** Return the id of a box for a value of a question with boxes. */
const boxOf = (/** @type {Pair} */ { id, signed }, /** @type {any} */ value) =>
  signed.find((one) => one.id.slice(id.length + 1) === String(value))?.id.slice(id.length + 1);

/** Return the signed questions by the name that a form uses for them; the boxes of a question share its name. */
function namesOf(/** @type {Signed[]} */ questions) {
  /** @type {Map<string, Signed[]>} */
  const names = new Map();
  for (const one of questions) {
    const name = one.box?.of ?? one.id;
    names.set(name, [...(names.get(name) ?? []), one]);
  }
  return names;
}

/**
 * Return the pairs, warnings about parts that cannot be protected, and faults that make the form unusable for the
 * document.
 * @returns {{pairs: Pair[], warnings: Warning[], faults: string[]}}
 */
export function assign(/** @type {any} */ model, /** @type {Signed[]} */ questions, /** @type {Record<string, string>} */ map, isDrawn = false) {
  const names = namesOf(questions), pairs = /** @type {Pair[]} */ ([]), warnings = /** @type {Warning[]} */ ([]);
  const warn = (/** @type {any} */ question, /** @type {Warning["reason"]} */ reason, /** @type {string} */ words) =>
    warnings.push({ question: question.name, type: question.getType(), reason, words: `${question.name}: ${words}` });
  for (const question of model.getAllQuestions()) {
    const kind = kindOf(question), rows = kind === "rows" ? question.rows : [undefined];
    const found = rows.map((/** @type {any} */ row) => {
      const key = row ? `${question.name}.${row.value}` : question.name, id = map[key] ?? (row ? `${question.name}-${row.value}` : key);
      return { id, signed: names.get(id) ?? [], kind: row ? "one" : kind, question, row };
    });
    if (kind && found.every((/** @type {Pair} */ { signed }) => signed.length)) pairs.push(...found);
    else if (SHOWN_ONLY.includes(question.getType())) continue;
    else if (!kind) warn(question, "type", `answers of the type ${question.getType()} cannot be randomised`);
    else warn(question, "unsigned", "the signed survey has no such question");
  }
  const derived = derivedFrom(model, pairs);
  for (const { question, type } of [...warnings])
    if (derived.has(question)) warnings.push({ question, type, reason: "derived", words: `${question}: it depends on answers that are randomised, and would reveal them` });
  for (const { question } of pairs)
    if (question.hasOther || question.showCommentArea) warn(question, "free_text", "its free text cannot be randomised, and is not offered");
  if (model.surveyPostId) warnings.push({ question: "", type: "survey", reason: "posts", words: "surveyPostId would send the answers as they are, and is removed" });
  return { pairs, warnings, faults: [...faultsOf(pairs), ...missing(names, pairs), ...(isDrawn ? unsignedRules(model, pairs) : [])] };
}

/**
 * Return a fault for each question that the form asks, computes or requires by an answer to another one, unless the signed survey
 * has that rule: if only what is drawn is asked, the other question may not be asked.
 */
function unsignedRules(/** @type {any} */ model, /** @type {Pair[]} */ pairs) {
  const holding = (/** @type {string | undefined} */ name) => pairs.find(({ signed }) => signed.some(({ id }) => id === name));
  /** The questions that are asked with a pair's, because signed rules name them. @returns {any[]} */
  const askedWith = (/** @type {Pair} */ pair) => {
    const named = holding(pair.signed[0].ask_if?.question);
    return named ? [named.question, ...askedWith(named)] : [];
  };
  const faults = pairs.flatMap((other) => {
    const derived = derivedFrom(model, [other]);
    return pairs.filter((pair) => derived.has(pair.question.name) && ![pair.question, ...askedWith(pair)].includes(other.question)).map(({ question }) =>
      `${question.name} depends on ${other.question.name}, which may not be asked: write that as ask_if in the survey's file, or ask: all`);
  });
  return [...new Set(faults)];
}

/**
 * Return the names of unprotected questions whose value, or whose being asked, depends on answers of the pairs: by an expression
 * of their own, of a panel or page around them, of a trigger or of a calculated value. A text that only contains a name counts.
 */
function derivedFrom(/** @type {any} */ model, /** @type {Pair[]} */ pairs) {
  const sources = new Set(pairs.map(({ question }) => question.getValueName())), derived = new Set();
  const mentions = (/** @type {string[]} */ texts) => [...sources].some((name) => {
    const word = new RegExp(`(?<![\\p{L}\\p{N}_])${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\p{L}\\p{N}_])`, "iu");
    return texts.some((text) => word.test(text));
  });
  for (let before = -1; before < sources.size; ) {
    before = sources.size;
    for (const { name, expression } of model.calculatedValues) if (mentions([expression ?? ""])) sources.add(name);
    for (const question of model.getAllQuestions()) {
      const triggers = model.triggers.filter((/** @type {any} */ { setToName, questions = [], pages = [] }) => [setToName, ...questions].includes(question.name) || pages.includes(question.page?.name));
      const texts = [question.toJSON(), ...triggers.map((/** @type {any} */ trigger) => ({ ...trigger.toJSON(), nameIf: trigger.fromName ?? "" }))].flatMap(expressionsOf);
      if (!mentions([...texts, ...around(question)])) continue;
      derived.add(question.name);
      sources.add(question.getValueName());
    }
  }
  return derived;
}

/** Return the expressions in the JSON of an element, at any depth. @returns {string[]} */
const expressionsOf = (/** @type {any} */ json) => Object.entries(json).flatMap(([name, value]) => {
  if (typeof value === "object" && value !== null) return expressionsOf(value);
  return /(if|expression)$/i.test(name) && typeof value === "string" ? [value] : [];
});

/** Return the conditions of the panels and the page around a question. @returns {string[]} */
const around = (/** @type {any} */ { parent }) => (parent ? [parent.visibleIf, parent.enableIf, ...around(parent)].filter(Boolean) : []);

const missing = (/** @type {Map<string, Signed[]>} */ names, /** @type {Pair[]} */ pairs) => [...names.keys()].flatMap((name) => {
  const count = pairs.filter(({ id }) => id === name).length;
  return count === 1 ? [] : [count ? `${count} questions of the form correspond to ${name}` : `the form does not ask ${name}`];
});

/** Return the differences between form and document in each pair. */
const faultsOf = (/** @type {Pair[]} */ pairs) => pairs.flatMap((pair) => {
  const { question, signed, kind, id } = pair, [first] = signed, hasRanges = first.choices.some(({ from }) => from !== undefined);
  const wanted = first.box ? "many" : hasRanges ? "number" : "one";
  if (kind !== wanted) return [`${id} is answered by ${WAYS[wanted]}, but ${question.name} by ${WAYS[/** @type {"one"} */ (kind)]}`];
  const of = kind === "many" ? boxOf : choiceOf, strange = kind === "number" ? [] : offered(question).filter((value) => of(pair, value) === undefined);
  return strange.map((value) => `${question.name} offers ${value}, which is no choice of ${id}`);
});

const WAYS = { one: "one choice", many: "boxes", number: "a number" };

/** Return the answer to one pair, in the form that `client.answer` accepts; undefined if there is no answer. */
export function answerOf(/** @type {Pair} */ pair) {
  const { question, row, kind, signed } = pair, whole = question.value, value = row ? whole?.[row.value] : whole;
  if (kind === "many") return /** @type {any[]} */ (question.isEmpty() ? [] : whole).map((one) => boxOf(pair, one)).filter((one) => one !== undefined);
  const isMissing = value === undefined || value === null || value === "";
  if (isMissing) return question.isVisible ? undefined : signed[0].choices.find(({ role }) => role === "not_applicable")?.id;
  return kind === "number" ? Number(value) : choiceOf(pair, value);
}
