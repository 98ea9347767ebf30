// SPDX-License-Identifier: Apache-2.0
/**
 * Mapping of a SurveyJS form's questions to those of a signed document, and of their values to its choices. This module
 * does not draw, send or store anything.
 */

/**
 * @typedef {import("../frankly.d.ts").Question} Signed
 * @typedef {import("./index.d.ts").Warning} Warning
 * @typedef {{id: string, signed: Signed[], kind: string, question: any, row: any, map: Record<string, string>}} Pair row: of a matrix, otherwise undefined
 */

const ONE = ["radiogroup", "dropdown", "buttongroup", "boolean", "rating", "imagepicker"], MANY = ["checkbox", "tagbox"];
const SHOWN_ONLY = ["html", "image"];

/** Return how a question is answered: one, many, number or rows; an empty string if no signed question can represent it. */
export function kindOf(/** @type {any} */ question) {
  const type = question.getType();
  if (MANY.includes(type) || (type === "imagepicker" && question.multiSelect)) return "many";
  if (ONE.includes(type)) return "one";
  if (type === "matrix" && question.cellType !== "checkbox") return "rows";
  if ((type === "text" && ["number", "range"].includes(question.inputType)) || (type === "slider" && question.sliderType === "single")) return "number";
  return "";
}

/** Return the values that a form's question offers; empty if the question asks for a number or loads its choices later. @returns {any[]} */
export function offered(/** @type {any} */ question) {
  const type = question.getType(), list = { boolean: [{ value: true }, { value: false }], rating: question.visibleRateValues, matrix: question.columns }[/** @type {string} */ (type)];
  const source = question.choicesFromQuestion && question.survey.getQuestionByName(question.choicesFromQuestion);
  const special = [question.showNoneItem && kindOf(question) === "one" && question.noneItem, question.showRefuseItem && question.refuseItem, question.showDontKnowItem && question.dontKnowItem];
  return [...(source?.choices ? offered(source) : []), .../** @type {any[]} */ (list ?? question.choices ?? []).concat(special.filter(Boolean)).map(({ value }) => value)];
}

/** Return the id of the signed choice that corresponds to a value; undefined if there is none. */
function choiceOf(/** @type {Pair} */ { question, signed: [{ choices }], map }, /** @type {any} */ value) {
  if (question.getType() === "boolean") value = value === question.getValueTrue() || value === true ? named(question.valueTrue, "yes") : named(question.valueFalse, "no");
  const id = map[`${question.name}=${value}`] ?? String(value), scored = question.getType() === "rating" ? choices.find(({ score }) => score !== undefined && Number(score) === Number(value)) : undefined;
  return choices.find((choice) => choice.id === id)?.id ?? scored?.id;
}

const named = (/** @type {any} */ value, /** @type {string} */ otherwise) => (value === undefined || typeof value === "boolean" ? otherwise : value);

/** Return the id of a box for a value of a question with boxes. */
const boxOf = (/** @type {Pair} */ { id, question, signed, map }, /** @type {any} */ value) =>
  signed.find((one) => one.id.slice(id.length + 1) === (map[`${question.name}=${value}`] ?? String(value)))?.id.slice(id.length + 1);

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
 * document; `free` are the questions without protection that an app may keep, `removed` those that it may not.
 * @param {any} model @param {Signed[]} questions @param {Record<string, string>} map
 * @param {string[]} open ids of the signed questions whose answers are sent as given
 * @returns {{pairs: Pair[], warnings: Warning[], faults: string[], free: any[], removed: any[]}}
 */
export function assign(model, questions, map, isDrawn = false, open = []) {
  const names = namesOf(questions), pairs = /** @type {Pair[]} */ ([]), warnings = /** @type {Warning[]} */ ([]), unprotected = /** @type {any[]} */ ([]);
  const warn = (/** @type {any} */ question, /** @type {Warning["reason"]} */ reason, /** @type {string} */ words) =>
    warnings.push({ question: question.name, type: question.getType(), reason, words: `${question.name}: ${words}` });
  for (const question of model.getAllQuestions()) {
    const kind = kindOf(question), rows = kind === "rows" ? question.rows : [undefined];
    const found = rows.map((/** @type {any} */ row) => {
      const key = row ? `${question.name}.${row.value}` : question.name, id = map[key] ?? (row ? `${question.name}-${row.value}` : key);
      return { id, signed: names.get(id) ?? [], kind: row ? "one" : kind, question, row, map };
    });
    if (kind && found.length && found.every((/** @type {Pair} */ { signed }) => signed.length)) pairs.push(...found);
    else if (SHOWN_ONLY.includes(question.getType())) continue;
    else {
      unprotected.push(question);
      if (!kind) warn(question, "type", `answers of the type ${question.getType()} cannot be randomised`);
      else warn(question, "unsigned", "the signed survey has no such question");
    }
  }
  const secret = pairs.filter(({ id }) => !open.includes(id)), { derived, inserts } = derivedFrom(model, secret, pairs), removed = derivedFrom(model, pairs).derived;
  const shown = model.getAllQuestions().filter((/** @type {any} */ one) => SHOWN_ONLY.includes(one.getType()) && derived.has(one) && loads(one.toJSON()));
  for (const question of unprotected) if (removed.has(question)) warn(question, "derived", "it depends on answers that are randomised, and would reveal them");
  for (const question of shown) warn(question, "address", "what it loads from a server depends on answers, and would reveal them; it is removed");
  for (const question of new Set(pairs.map((pair) => pair.question)))
    if (question.hasOther || question.showCommentArea || extrasOf(question).length) warn(question, "free_text", "its free text cannot be randomised, and is not offered");
  const survey = (/** @type {Warning["reason"]} */ reason, /** @type {string} */ words) => warnings.push({ question: "", type: "survey", reason, words });
  if (model.surveyPostId) survey("posts", "surveyPostId would send the answers as they are, and is removed");
  if (inserts([JSON.stringify(model.toJSON().logo ?? "")])) survey("address", "the address of the logo contains answers; it is removed");
  const { navigateToUrl, navigateToUrlOnCondition, completedHtml, completedHtmlOnCondition } = model.toJSON(), after = { navigateToUrl, navigateToUrlOnCondition, completedHtml, completedHtmlOnCondition };
  for (const [name, value] of Object.entries(after)) if (inserts([JSON.stringify(value ?? "")])) survey("erased", `${name} mentions answers, which are erased before`);
  const faults = [...faultsOf(pairs), ...missing(names, pairs), ...revealing(pairs, open, derived, derivedFrom(model, secret, []).derived), ...(isDrawn ? unsignedRules(model, pairs) : [])];
  return { pairs, warnings, faults, free: unprotected.filter((question) => !removed.has(question)), removed: [...unprotected.filter((question) => removed.has(question)), ...shown] };
}

/** Return a fault for each pair that would reveal answers which are randomised; `reached` are also those that a trigger may leave out. */
const revealing = (/** @type {Pair[]} */ pairs, /** @type {string[]} */ open, /** @type {Set<any>} */ derived, /** @type {Set<any>} */ reached) => pairs.flatMap(({ id, question }) => {
  if (open.includes(id) && derived.has(question)) return [`${question.name} is sent as given, but depends on answers that are randomised`];
  const isLater = question.survey.pages.indexOf(question.page) > 0; // the first page is shown in any case
  return (derived.has(question) || (isLater && reached.has(question))) && loads(question.toJSON()) ? [`what ${question.name} loads from a server depends on answers that are randomised`] : [];
});

/** Return the choices of a question that have a text field or questions of their own. @returns {any[]} */
export const extrasOf = (/** @type {any} */ { choices = [] }) => choices.filter((/** @type {any} */ one) => one.showCommentArea || one.hasElements);

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
    const { derived } = derivedFrom(model, [other], pairs);
    return pairs.filter((pair) => derived.has(pair.question) && ![pair.question, ...askedWith(pair)].includes(other.question)).map(({ question }) =>
      `${question.name} depends on ${other.question.name}, which may not be asked: write that as ask_if in the survey's file, or ask: all`);
  });
  return [...new Set(faults)];
}

/**
 * Return the questions whose value, address, or being asked, depends on answers of the pairs: by an expression of their own, of
 * a panel or page around them, of a trigger or of a calculated value, or because they share the pair's value. `inserts` tells
 * whether texts contain such an answer in braces. A text that only contains a name counts.
 * @param {any} model @param {Pair[]} pairs @param {Pair[]} all pairs of the form: a report has an answer to each of them
 * @returns {{derived: Set<any>, inserts: (texts: string[]) => boolean}}
 */
function derivedFrom(model, pairs, all = pairs) {
  const namesOf = (/** @type {any} */ question) => [question.getValueName(), question.name], containers = new Set();
  const sources = new Set(pairs.flatMap(({ question }) => namesOf(question))), own = new Set(pairs.map(({ question }) => question)), answered = new Set(all.map(({ question }) => question)), derived = new Set();
  if (pairs.some(({ question }) => !question.isValueEmpty(question.correctAnswer))) for (const name of ["correct", "corrected", "incorrect", "incorrected"]) sources.add(`${name}Answers`).add(`${name}AnswerCount`);
  const hasWord = (/** @type {string[]} */ texts, /** @type {string} */ name, before = "(?<![\\p{L}\\p{N}_])") => {
    const word = new RegExp(`${before}${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\p{L}\\p{N}_])`, "iu");
    return texts.some((text) => word.test(text));
  };
  // Properties of panels and pages are read as {$name.property}, and by functions with 'name'.
  const mentions = (/** @type {string[]} */ texts) => [...sources].some((name) => hasWord(texts, name)) || [...containers].some((name) => hasWord(texts, name, "[$'\"]"));
  const inserts = (/** @type {string[]} */ texts) => mentions(texts.flatMap((text) => String(text).match(/\{[^{}]*\}/g) ?? []));
  const textsOf = (/** @type {any} */ trigger) => [...expressionsOf(trigger.toJSON()), trigger.fromName ?? ""];
  const size = () => sources.size + derived.size + containers.size;
  for (let before = -1; before < size(); ) {
    before = size();
    for (const part of [...model.pages, ...model.getAllPanels()]) {
      const isConditional = mentions([part.visibleIf, part.enableIf, part.requiredIf, ...around(part)].filter(Boolean));
      if (isConditional) for (const name of COUNTS) sources.add(name);
      if (isConditional || part.questions.some((/** @type {any} */ one) => own.has(one) || derived.has(one))) containers.add(part.name);
    }
    for (const { name, expression } of model.calculatedValues) if (mentions([expression ?? ""])) sources.add(name);
    for (const trigger of model.triggers) if (trigger.setToName && mentions(textsOf(trigger))) sources.add(trigger.setToName);
    for (const question of model.getAllQuestions()) {
      const triggers = model.triggers.filter((/** @type {any} */ trigger) => (["completetrigger", "skiptrigger"].includes(trigger.getType()) && !answered.has(question)) || // it decides whether the question is reached
        [trigger.setToName, ...(trigger.questions ?? [])].includes(question.name) || trigger.pages?.includes(question.page?.name));
      const json = question.toJSON(), shares = !own.has(question) && sources.has(question.getValueName());
      if (!shares && !mentions([...expressionsOf(json), ...triggers.flatMap(textsOf), ...around(question)]) && !inserts(addressesOf(json))) continue;
      derived.add(question);
      for (const name of [...namesOf(question), ...COUNTS]) sources.add(name);
    }
  }
  return { derived, inserts };
}

/** Return the expressions in the JSON of an element, and the names of questions that it takes choices or counts from, at any depth. @returns {string[]} */
const expressionsOf = (/** @type {any} */ json) => Object.entries(json).flatMap(([name, value]) => {
  if (name === "bindings") return Object.values(value);
  if (typeof value === "object" && value !== null) return expressionsOf(value);
  return typeof value === "string" && (/(if|expression|choicesfromquestion)$/i.test(name) || value.startsWith("=")) ? [value] : []; // SurveyJS computes a default value that begins with =
});

const SHOWN_AS_TEXT = /(title|description|text|placeholder|caption|labeltrue|labelfalse|if|expression)$/i;
const LOADING = /(src|srcset|srcdoc|href|data|poster|action|background|ping|[\s"'/]on[a-z]+)\s*=|url\s*\(|image-set|@import|http-equiv|<script|<style|\\/i;
/** Variables of SurveyJS that depend on what is visible. */
const COUNTS = ["pageno", "pagecount", "questioncount", "$survey"];

/** Return the strings in the JSON of an element, at any depth, that may be part of an address. @returns {string[]} */
const addressesOf = (/** @type {any} */ json, isHtml = false) => Object.entries(json).flatMap(([name, value]) => {
  if (SHOWN_AS_TEXT.test(name)) return [];
  if (typeof value === "object" && value !== null) return addressesOf(value, isHtml || name === "html");
  return typeof value === "string" && (!(isHtml || name === "html") || LOADING.test(value)) ? [value] : [];
});

/** Return true if an element loads something from a server. @returns {boolean} */
const loads = (/** @type {any} */ json) => Object.entries(json).some(([name, value]) => {
  if (["imageLink", "html"].includes(name)) return Object.values(typeof value === "object" ? value : { value }).some((one) => (name === "html" ? LOADING.test(one) : !/^data:/.test(one)));
  return name === "choicesByUrl" || (typeof value === "object" && value !== null && loads(value));
});

/** Return the conditions of the panels and the page around a question. @returns {string[]} */
const around = (/** @type {any} */ { parent }) => (parent ? [parent.visibleIf, parent.enableIf, parent.requiredIf, ...around(parent)].filter(Boolean) : []);

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
  const { question, row, kind, signed } = pair, whole = question.value, value = row ? whole?.[row.value] : whole, isShown = question.isVisibleInSurvey && row?.isVisible !== false;
  const skipped = kind === "many" ? signed.find(({ box }) => box?.role === "not_applicable")?.id.slice(pair.id.length + 1) : signed[0].choices.find(({ role }) => role === "not_applicable")?.id;
  if (!isShown && skipped !== undefined) return kind === "many" ? [skipped] : skipped; // SurveyJS may keep the value of a question that was hidden later
  if (kind === "many") {
    const values = /** @type {any[]} */ (question.isEmpty() ? [] : whole).map((one) => (question.valuePropertyName && one?.[question.valuePropertyName]) ?? one);
    return values.filter((one) => !question.showNoneItem || one !== question.noneItem.value || boxOf(pair, one)).map((one) => boxOf(pair, one) ?? String(one));
  }
  if (value === undefined || value === null || value === "") return undefined;
  return kind === "number" ? Number(value) : choiceOf(pair, value) ?? String(value);
}
