// SPDX-License-Identifier: Apache-2.0
/**
 * Frankly for SurveyJS: `protect(model, link)` sends the answers of a survey-core form as one randomised report. The
 * form shows the questions and validates the answers. Answers leave it only through `client.answer`, and are erased
 * before the app's own `onComplete` listeners see the form's data.
 */

import { begin } from "../src/begin.js";
import { AlreadyAnswered, Client, FranklyError, UnknownChoice } from "../src/index.js";
import { isDrawn, openQuestions } from "../src/survey.js";
import { learn, stringsFor } from "../src/words.js";
import { surveyLocalization } from "survey-core";
import { answerOf, assign, extrasOf } from "./form.js";

const EXPLANATION = "frankly-explanation";

/** The form's questions do not match those of the signed survey; `faults` lists the differences. */
export class FormMismatch extends Error {
  constructor(/** @type {string[]} */ faults) {
    super(`the form does not fit the signed survey: ${faults.join("; ")}`);
    this.name = "FormMismatch";
    this.faults = faults;
  }
}

/**
 * Verify the survey and take over the form. Throws the errors of `Client.open`, and FormMismatch.
 * @param {any} model @param {string} link @param {import("./index.d.ts").ProtectOptions} options
 * @returns {Promise<import("./index.d.ts").ProtectedForm>}
 */
export async function protect(model, link, options = {}) {
  if (taken.has(model)) throw new Error("the form is protected already: close that first");
  taken.add(model);
  hold(model); // until the survey is verified, the form cannot be answered
  if (options.enabled === false || options.client?.enabled === false) return disabled(model);
  /** @type {Client | undefined} */
  let client;
  try {
    client = await Client.open(link, options.client);
    model.getPanelByName("frankly")?.delete(); // of an earlier attempt
    if (client.survey.arms) throw new FormMismatch(["it has arms, and a form can show only one of them"]);
    const open = openQuestions(client.survey);
    const assigned = assign(model, [...client.questions, ...open], options.map ?? {}, isDrawn(client.survey), open.map(({ id }) => id));
    if (assigned.faults.length) throw new FormMismatch(assigned.faults);
    const form = new Form(model, client, assigned, options), { warnings } = assigned;
    await form.prepare();
    return { client, warnings, receipt: form.receipt, close: () => form.close() };
  } catch (error) {
    client?.close();
    taken.delete(model); // the app may try again; until then the form stays held
    throw error;
  }
}

/** Forms that are protected, or about to be. @type {WeakSet<any>} */
const taken = new WeakSet();
/** What releases a form that is held. @type {WeakMap<any, () => void>} */
const held = new WeakMap();

/** Prevent a form from being answered and completed: what it loads, or sends page by page, could depend on answers. */
function hold(/** @type {any} */ model) {
  if (held.has(model)) return;
  const refuse = (/** @type {any} */ _, /** @type {any} */ completing) => (completing.allow = false), insert = blank(model), { mode } = model;
  model.mode = "display";
  model.onCompleting.add(refuse);
  held.set(model, () => {
    held.delete(model);
    model.onCompleting.remove(refuse);
    model.mode = mode;
    insert();
  });
}

const release = (/** @type {any} */ model) => held.get(model)?.();

/** Keep answers out of the form's texts and addresses, whose requests would contain them; return a function that ends this. */
function blank(/** @type {any} */ model) {
  const empty = (/** @type {any} */ _, /** @type {any} */ text) => Object.assign(text, { value: "", isExists: false });
  model.onProcessDynamicText?.add(empty);
  return () => {
    model.onProcessDynamicText?.remove(empty);
    model.locStrsChanged?.();
  };
}

/** Erase the answers except those of these names, and the variables that triggers have made of them. */
function erase(/** @type {any} */ model, /** @type {string[]} */ kept = []) {
  const variables = model.triggers.filter((/** @type {any} */ { isVariable }) => isVariable).map((/** @type {any} */ { setToName }) => setToName);
  model.triggers = []; // they could write again
  model.data = Object.fromEntries(Object.entries(model.data).filter(([name]) => kept.includes(name)));
  for (const name of variables) model.setVariable(name, undefined);
}

/** Complete without sending anything. All answers are erased, because it is unknown which of them would be protected. */
function disabled(/** @type {any} */ model) {
  const insert = blank(model), eraseAll = () => erase(model);
  release(model);
  model.surveyPostId = "";
  model.sendResultOnPageNext = model.partialSendEnabled = false; // its newer name
  model.onCompleting.add(eraseAll);
  const close = () => {
    hold(model);
    model.onCompleting.remove(eraseAll);
    insert();
    taken.delete(model);
  };
  const receipt = { status: /** @type {const} */ ("disabled"), code: "disabled", detail: "" };
  return { client: null, warnings: [], receipt: Promise.resolve(receipt), close };
}

class Form {
  #isBusy = false;
  #isDone = false;
  /** @type {(receipt: any) => void} */ #settle = () => undefined;

  constructor(/** @type {any} */ model, /** @type {Client} */ client, /** @type {ReturnType<assign>} */ { pairs, warnings, free, removed }, /** @type {any} */ options) {
    this.model = model;
    this.client = client;
    this.pairs = pairs;
    this.warnings = warnings;
    this.kept = options.unprotected === "keep" ? free : [];
    this.removed = options.unprotected === "keep" ? removed : [...free, ...removed];
    this.options = options;
    /** @type {Promise<import("../frankly.d.ts").Receipt>} */
    this.receipt = new Promise((resolve) => (this.#settle = resolve));
    this.complete = this.complete.bind(this);
    this.speak = this.speak.bind(this);
  }

  /** Show the explanation and take over the form's completion. */
  async prepare() {
    const { model, client, warnings, options } = this;
    const { before, plan, budget } = await begin(client);
    this.budget = budget;
    for (const warning of warnings) (options.onWarning ?? ((/** @type {any} */ { words }) => console.warn(`Frankly: ${words}`)))(warning);
    if (plan) this.#askOnly(plan.questions);
    this.#restrict();
    const first = model.pages.find((/** @type {any} */ { isVisible }) => isVisible) ?? model.pages[0], panel = (this.panel = first.addNewPanel("frankly"));
    first.removeElement(panel);
    first.addElement(panel, 0);
    panel.state = "collapsed";
    this.words = panel.addNewQuestion("comment", EXPLANATION);
    Object.assign(this.words, { titleLocation: "hidden", readOnly: true, autoGrow: true });
    await this.speak();
    model.onLocaleChangedEvent?.add(this.speak);
    model.onCompleting.add(this.complete);
    release(model); // now: a form that is held cannot be completed below
    if (before) this.#finish(before);
  }

  /** Take the questions and rows of a matrix that are not asked out of the form. */
  #askOnly(/** @type {readonly string[]} */ asked) {
    const { client, pairs } = this, open = openQuestions(client.survey).map(({ id }) => id);
    const isAsked = (/** @type {import("./form.js").Pair} */ { signed }) => signed.some(({ id }) => asked.includes(id) || open.includes(id));
    for (const question of new Set(pairs.map((pair) => pair.question))) {
      const own = pairs.filter((pair) => pair.question === question), left = own.filter(isAsked);
      if (!left.length) {
        this.model.clearValue(question.getValueName());
        question.delete(); // a trigger could show a hidden question again
      } else if (left.length < own.length) question.rows = left.map(({ row }) => row.toJSON?.() ?? row);
    }
    this.pairs = pairs.filter(isAsked);
  }

  /** Remove from the form everything that would let answers bypass the randomiser. */
  #restrict() {
    const { model, pairs } = this, hasLogo = this.warnings.some(({ question, reason }) => !question && reason === "address");
    model.surveyPostId = "";
    if (hasLogo) model.locLogo.clear(); // in all locales
    model.sendResultOnPageNext = model.partialSendEnabled = false; // its newer name
    for (const { question, signed: [first] } of pairs) {
      question.showOtherItem = question.showCommentArea = false;
      if (question.getType() === "text") question.autocomplete = "off"; // the browser would keep what was typed
      for (const one of extrasOf(question)) {
        one.showCommentArea = false;
        if (one.hasElements) for (const element of [...one.elements]) one.panel.removeElement(element);
      }
      if (!first.box && !first.ask_if) question.isRequired = question.eachRowRequired = true;
    }
    for (const question of this.removed) question.delete(); // a trigger could show a hidden question again, and it could still load something
  }

  get #language() {
    const { languages } = this.client.survey, locale = this.model.locale || surveyLocalization.defaultLocale; // empty: the default
    return [locale, locale.split("-")[0]].find((one) => languages.includes(one)) ?? languages[0];
  }

  /** Explain the survey, and write the notes, in the form's language if the survey has it. */
  async speak() {
    const { client, model, pairs, options, panel, words } = this, language = this.#language, { strata, instructed } = client.survey, open = strata.map(({ id }) => id);
    await learn(language);
    if (language !== this.#language) return; // changed while the texts were loaded
    const { details, public: plain, passed, final } = stringsFor(language), strings = { details, open: plain, passed, final, ...options.strings };
    Object.assign(panel, { title: strings.details, description: strings.final });
    words.title = strings.details;
    words.value = client.explain(language, this.budget).words;
    for (const question of [...pairs.filter(({ id }) => open.includes(id)).map(({ question }) => question), ...this.kept]) question.description = strings.open;
    for (const { id, question } of pairs) if (id === instructed?.id) question.description = strings.passed;
  }

  /** Listener of `onCompleting`: send first, then complete without the answers. */
  complete(/** @type {any} */ _, /** @type {any} */ completing) {
    if (this.#isDone) return this.#erase(); // an app may clear a form and show it again
    completing.allow = false;
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#send().then((receipt) => this.#finish(receipt), (error) => {
      if (error instanceof AlreadyAnswered) return this.#finish(error.receipt);
      this.#isBusy = false;
      this.#refuse(error);
    });
  }

  #send() {
    const { client, pairs, options } = this, open = openQuestions(client.survey).map(({ id }) => id);
    const pick = (/** @type {boolean} */ isOpen) => Object.fromEntries(pairs.filter(({ id }) => open.includes(id) === isOpen)
      .map((pair) => [pair.id, answerOf(pair)]).filter(([, answer]) => answer !== undefined));
    return (async () => client.answer(/** @type {any} */ (pick(false)), { strata: pick(true), token: options.token, ...(isDrawn(client.survey) && { patienceMs: 0 }) }))();
  }

  /** Erase the answers, then let SurveyJS complete the form. */
  #finish(/** @type {import("../frankly.d.ts").Receipt} */ receipt) {
    this.#isDone = true;
    this.#erase();
    this.#settle(receipt);
    this.model.doComplete();
  }

  #erase() {
    const { kept, model } = this;
    erase(model, kept.flatMap((question) => [question.getValueName(), question.getValueName() + model.commentSuffix]));
  }

  #refuse(/** @type {any} */ error) {
    const { pairs, model, options } = this, pair = error instanceof UnknownChoice && pairs.find(({ id }) => id === error.field);
    if (pair) pair.question.addError(error.detail);
    else model.notify?.(error instanceof FranklyError ? error.detail : String(error), "error");
    options.onError?.(error);
  }

  close() {
    this.model.onCompleting.remove(this.complete);
    this.model.onLocaleChangedEvent?.remove(this.speak);
    hold(this.model); // without its client the form cannot be completed
    taken.delete(this.model);
    this.client.close();
  }
}
