// SPDX-License-Identifier: Apache-2.0
/**
 * `<frankly-survey link="https://host/s/ID#sha256=…">`: shows and explains a survey, randomises, sends and confirms the
 * answer. Attributes: link, lang, cap, final-surveys, store, token, return-to, completion-code, served (the survey's server served this page). Properties:
 * `options` for `Client.open`, `strings` for more languages, `token`. Events: `frankly-opened`, `-planned`, `-sealed`, `-sent`,
 * `-queued`, `-refused`, `-language` and `-error`; none depends on the answers.
 */

import { begin } from "./begin.js";
import { Client } from "./client.js";
import { AlreadyAnswered, FranklyError, NetworkError, speak } from "./errors.js";
import { explain } from "./explain.js";
import { Field, follow, make } from "./fields.js";
import { label, sent } from "./label_view.js";
import { wayBack } from "./panel.js";
import { reasonOf } from "./reasons.js";
import { CSS } from "./styles.js";
import { openQuestions, questionsOf } from "./survey.js";
import { inWords } from "./texts.js";
import { groupsOf } from "./ways.js";
import { baseOf, choose, directionOf, learn, nameOf, speaks, stringsFor } from "./words.js";

speak(inWords); // loaded immediately, because its texts could not be loaded without a network

// A server that renders pages has no DOM, or parts of one. The class exists there only so that imports work.
const Base = /** @type {typeof HTMLElement} */ (typeof globalThis.HTMLElement === "function" ? HTMLElement : Object);

/**
 * The controls of a survey's form. They are the only place of what was entered: every form of the survey is made around them.
 * @typedef {{arm: string | null, open: Field[], own: Field[], fields: Field[], code: HTMLInputElement, details: HTMLElement, more: HTMLElement, trial: HTMLElement}} Controls
 *   arm: the arm that is asked; open: fields of questions asked in the clear, own: of all others; fields: both, as they are shown; code: the field for the invitation;
 *   details, more, trial: what a person can open, which stays open
 */

export class FranklySurvey extends Base {
  static observedAttributes = ["link", "lang", "token"];
  // A page may have set these properties before this module was loaded.
  /** @type {import("../frankly.d.ts").Options} */ options = Object(this).options ?? {};
  /** @type {Record<string, import("./words.js").Strings>} */ strings = Object(this).strings ?? {};
  /** @type {Record<string, import("./words.js").Catalogue>} */ texts = Object(this).texts ?? {};
  /** @type {Client | undefined} */ #client;
  #root = this.attachShadow({ mode: "open" });
  /** @type {import("../frankly.d.ts").Budget | undefined} */ #budget;
  /** What to ask, if the device draws it. @type {import("./plans.js").Plan | undefined} */ #plan;
  /** By store and digest, until the survey is answered. @type {Map<string, Controls>} */ #controls = new Map();
  /** Draw what is shown in another language; undefined while that cannot be done. @type {(() => unknown) | undefined} */ #draw;
  #language = "";
  #isAttached = false;
  #attempt = 0;
  #asked = 0;

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(CSS);
    this.#root.adoptedStyleSheets = [sheet];
  }

  connectedCallback() {
    if (Object.hasOwn(this, "token")) {
      const { token } = this; // a property set before the module was loaded hides the accessor of that name
      delete (/** @type {{token?: unknown}} */ (this).token);
      this.token = token;
    }
    if (this.#isAttached) return; // it was only moved
    this.#isAttached = true;
    this.#open();
  }

  disconnectedCallback() {
    queueMicrotask(() => { // an element that is moved is attached again at once
      if (this.isConnected) return;
      this.#isAttached = false;
      this.#close();
    });
  }

  attributeChangedCallback(/** @type {string} */ name, /** @type {string | null} */ before, /** @type {string | null} */ after) {
    if (!this.#isAttached || before === after) return;
    if (name === "link") this.#open();
    else if (name === "token") {
      const controls = this.#client && this.#controls.get(keyOf(this.#client));
      if (controls) this.#uninvited(controls, ""); // a code that was typed, or refused, was another one
      if (controls) controls.code.value = "";
      this.#invitation?.toggleAttribute("hidden", after !== null);
    }
    else this.#translate();
  }

  /** The respondent's token, for surveys with a token rule; if null, the form asks for a token. @returns {string | null} */
  get token() {
    return this.getAttribute("token");
  }

  set token(token) {
    if (token === null || token === undefined) this.removeAttribute("token");
    else this.setAttribute("token", token);
  }

  get #invitation() {
    return this.#root.querySelector(".invitation");
  }

  get #wanted() {
    // An embedding page has one language; the hosted page uses the languages that the visitor prefers.
    const page = this.hasAttribute("served") ? [] : [document.documentElement.lang];
    return [this.#language, this.lang, ...page, ...navigator.languages].filter(Boolean);
  }

  get #first() {
    return this.#wanted[0] ?? "en";
  }

  /** Show in another language what is shown. While an answer is sent, only the texts are loaded. */
  async #translate() {
    if (!this.#client && !this.#draw) return; // nothing is shown that could be translated, or the element is switched off
    const survey = this.#client?.survey;
    await Promise.all([this.#first, ...(survey ? [choose(this.#wanted, survey.languages)] : [])].map((language) => learn(language)));
    this.#draw?.();
  }

  /** Close the client; what was entered stays. Returns the number of the next attempt to open one. */
  #close() {
    this.#client?.close();
    this.#client = this.#draw = undefined;
    return ++this.#attempt;
  }

  async #open() {
    const attempt = this.#close(), link = this.getAttribute("link"), first = this.#first, { enabled = true } = this.options;
    if (link === null || !enabled) { // a page may set the options first and the link later
      this.#controls.clear();
      return this.#root.replaceChildren();
    }
    await learn(first);
    if (attempt !== this.#attempt) return;
    const strings = stringsFor(first, this.strings);
    this.#show(first, () => [make("p", { role: "status", part: "status" }, strings.loading)]);
    try {
      const cap = this.getAttribute("cap"), store = this.getAttribute("store"), finalSurveys = this.getAttribute("final-surveys")?.match(/\S+/g);
      const policy = { ...this.options.policy, ...(cap && { cap }), ...(finalSurveys && { finalSurveys }) };
      const options = { ...this.options, ...(store && { store }), policy };
      /** @type {Client} */
      const client = await Client.open(link, { ...options, onEvent: (event) => {
        options.onEvent?.(event);
        if (event.name === "sealed") this.#controls.delete(keyOf(client)); // delivery may take long, or fail
        this.#tell(event.name, event);
      } });
      if (attempt !== this.#attempt) return client.close();
      this.#client = client;
      await pause();
      const { before, plan, budget } = await begin(client);
      if (attempt !== this.#attempt) return;
      this.#plan = plan;
      this.#budget = budget; // without it, the explanation shows the cost without the remaining budget
      if (!before) return await this.#ask();
      await learn(choose(this.#wanted, /** @type {import("./survey.js").Survey} */ (client.survey).languages));
      this.#finish(client, before, true);
    } catch (error) {
      this.#fail(error, attempt);
    }
  }

  #tell(/** @type {string} */ name, /** @type {unknown} */ detail) {
    this.dispatchEvent(new CustomEvent(`frankly-${name}`, { bubbles: true, composed: true, detail }));
  }

  #tellError(/** @type {FranklyError} */ { code, detail, field }) {
    this.#tell("error", { code, detail, field });
  }

  /** Show nodes; the focus stays on its control, or on that of the same id. `nodes` may move controls, which lose the focus by it. */
  #show(/** @type {string} */ language, /** @type {() => Node[]} */ nodes) {
    this.#asked++; // a form that is still being made is not shown any more
    const focused = /** @type {HTMLElement | null} */ (this.#root.activeElement);
    const body = make("div", { lang: language, dir: directionOf(language), part: "body" }, ...nodes());
    this.#tell("language", { language });
    this.#root.replaceChildren(body);
    if (focused) (focused.isConnected ? focused : this.#root.getElementById(focused.id))?.focus({ preventScroll: true });
  }

  /** Show the form; what takes long is done in several tasks, so that the page stays responsive. */
  async #ask() {
    const asked = ++this.#asked, client = /** @type {Client} */ (this.#client), plan = this.#plan, { survey, level } = client.view(plan);
    const isOver = () => asked !== this.#asked || client !== this.#client;
    this.#draw = () => this.#ask();
    const language = choose(this.#wanted, survey.languages);
    await learn(language);
    await pause();
    if (isOver()) return;
    const strings = stringsFor(language, this.strings);
    const told = explain(survey, level, client.signedBy ?? [], language, this.#budget, this.texts[language]);
    await pause();
    if (isOver()) return;
    const explained = { lang: told.language, dir: directionOf(told.language) }, shown = (/** @type {string} */ words) => isolated(words, told, survey, language);
    const [first, ...others] = told.summary;
    const promise = make("div", { class: "promise", part: "promise", role: "note", ...explained }, make("p", { class: "about" }, first), make("p", {}, ...shown(others.join(" "))));
    const questions = questionsOf(survey).filter(({ id }) => plan?.questions.includes(id) ?? true), arm = plan?.arm ?? null;
    const fieldsOf = (/** @type {import("./survey.js").Question[]} */ questions, noteName = "") => groupsOf(questions).map((group) => new Field(group, noteName));
    const kept = this.#controls.get(keyOf(client)), isSame = kept?.arm === arm && String(kept?.own.flatMap((field) => field.questions.map(({ id }) => id))) === String(questions.map(({ id }) => id));
    // With a store that has lost the plan, the device has drawn another one, and other questions are asked.
    const controls = kept && isSame ? kept : {
      arm, ...inOrder(fieldsOf(survey.strata, "public"), fieldsOf(questions), fieldsOf(survey.instructed ? [survey.instructed] : [], "passed")), details: make("details", { part: "explanation" }),
      more: make("details", { part: "more" }), trial: make("details", { class: "trial", part: "trial" }),
      code: /** @type {HTMLInputElement} */ (make("input", { id: "invitation", part: "input", type: "text", dir: "ltr", required: true, autocomplete: "off",
        autocapitalize: "none", spellcheck: "false", "aria-describedby": "invitation-note invitation-error" })),
    }, { open, own, fields, details } = controls;
    open.find(({ name }) => name === survey.token?.question)?.fix(client.source);
    await pause();
    if (isOver()) return;
    this.#controls.set(keyOf(client), controls);
    // From here on nothing waits: the controls may be in the form that is shown.
    this.#show(language, () => {
      for (const field of fields) field.write(language, strings);
      const bar = /** @type {HTMLProgressElement} */ (make("progress", { id: "progress" })), count = make("label", { for: "progress" });
      const progress = make("div", { class: "progress", part: "progress" }, count, bar);
      const write = () => {
        follow(own);
        const shown = fields.filter(({ node }) => !node.hidden), left = missingOf(fields).length;
        progress.hidden = shown.length < 2;
        bar.max = shown.length;
        bar.value = shown.length - left;
        count.textContent = strings.progress.replace("{left}", String(left)).replace("{asked}", String(shown.length));
      };
      write();
      details.replaceChildren(make("summary", { id: "details" }, strings.details),
        ...(strings.english && told.language === "en" ? [make("p", { class: "note" }, strings.english)] : []),
        make("div", { class: "words", ...explained }, ...told.details.map(({ heading, paragraphs }, i, all) => {
          const words = paragraphs.map((text) => make("div", {}, ...text.split("\n").map((line) => make("p", {}, ...shown(line.trim())))));
          return i < all.length - 1 ? make("section", {}, make("h3", {}, heading), ...words) : make("details", {}, make("summary", {}, heading), ...words);
        })));
      if (this.hasAttribute("served")) details.querySelector("details")?.before(make("p", { part: "served" }, strings.served));
      const form = make("form", { part: "form", novalidate: true },
        ...(survey.token ? [this.#invited(controls, strings)] : []),
        ...(plan && plan.asked < plan.of ? [make("p", { class: "note", part: "drawn" }, strings.drawn.replace("{asked}", String(open.length + plan.asked)).replace("{of}", String(open.length + plan.of)))] : []),
        ...fields.map(({ node }) => node),
        progress,
        make("p", { class: "note", id: "final" }, strings.final),
        make("button", { id: "send", part: "button", type: "submit", "aria-describedby": "final" }, strings.send));
      form.addEventListener("input", () => {
        write();
        for (const field of fields) if (field.isWrong && field.answer !== undefined) field.complain(false);
      });
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#submit(/** @type {HTMLFormElement} */ (form), controls, strings);
      });
      return [make("h1", { part: "title" }, survey.title[language]), ...this.#languages(survey.languages, language, strings),
        ...(survey.consent ? [make("p", { part: "consent" }, survey.consent[language])] : []), promise,
        label(survey, told, strings, language, shown, controls), details, form];
    });
  }

  /** Return the field for a token; its ids differ from those of all questions. */
  #invited(/** @type {Controls} */ { code }, /** @type {import("./words.js").Strings} */ strings) {
    const isWrong = code.getAttribute("aria-invalid") === "true";
    return make("div", { class: "invitation", part: "question", hidden: !isWrong && (this.token ?? this.#client?.invite ?? null) !== null },
      make("label", { for: "invitation", part: "legend" }, strings.invitation),
      make("p", { class: "note", id: "invitation-note" }, strings.invited),
      code,
      make("p", { class: "error", id: "invitation-error", part: "error" }, isWrong ? strings.uninvited : ""));
  }

  /** Show an error at the token's field; an empty text removes it. */
  #uninvited(/** @type {Controls} */ { code }, /** @type {string} */ said) {
    this.#root.getElementById("invitation-error")?.replaceChildren(said);
    code.setAttribute("aria-invalid", String(Boolean(said)));
    if (!said) return;
    this.#invitation?.removeAttribute("hidden"); // the token that the page has set was refused
    code.focus();
  }

  #languages(/** @type {string[]} */ offered, /** @type {string} */ chosen, /** @type {import("./words.js").Strings} */ strings) {
    if (offered.length < 2) return [];
    const select = /** @type {HTMLSelectElement} */ (make("select", { id: "language", part: "language" },
      ...offered.map((tag) => make("option", { value: tag, lang: tag, selected: tag === chosen }, nameOf(tag)))));
    select.addEventListener("change", () => {
      this.#language = select.value;
      select.focus();
      this.#translate();
    });
    return [make("div", { class: "languages" }, make("label", { for: "language" }, strings.language), select)];
  }

  /** Send the answers, unless one is missing. */
  async #submit(/** @type {HTMLFormElement} */ form, /** @type {Controls} */ controls, /** @type {import("./words.js").Strings} */ strings) {
    if (!this.#draw) return; // the answer is being sent, or the element opens another client
    const client = /** @type {Client} */ (this.#client), attempt = this.#attempt, { token: rule } = /** @type {import("./survey.js").Survey} */ (client.survey);
    const { open, own, fields, code } = controls, token = rule && (code.value.trim() || this.token || client.invite);
    const missing = missingOf(fields);
    for (const field of fields) field.complain(missing.includes(field));
    this.#uninvited(controls, rule && !token ? strings.uninvited : "");
    if (rule && !token) return;
    if (missing.length) return missing[0].focus();
    this.#asked++;
    this.#draw = undefined; // a form that could be sent again must not be shown
    const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
    button.disabled = true;
    button.textContent = strings.sending;
    const pick = (/** @type {Field[]} */ fields) => Object.fromEntries(fields.filter(({ node }) => !node.hidden).map(({ name, answer }) => [name, /** @type {any} */ (answer)]));
    try {
      // A report about what was drawn leaves within half a minute, one without a network later; the person is thanked at once.
      const patience = (this.#plan || !navigator.onLine) && { patienceMs: 0 };
      this.#finish(client, await client.answer(pick(own), { strata: pick(open), token, ...patience }), false);
    } catch (error) {
      if (error instanceof AlreadyAnswered) this.#finish(client, error.receipt, true);
      else if (rule && error instanceof FranklyError && error.code === "token_invalid" && attempt === this.#attempt) { // nothing was drawn
        this.#tellError(error);
        code.setAttribute("aria-invalid", "true");
        await this.#ask();
        code.focus();
      } else this.#fail(error, attempt);
    }
  }

  #finish(/** @type {Client} */ client, /** @type {{status: string, code: string, report?: string}} */ { status, code, report }, /** @type {boolean} */ before) {
    this.#controls.delete(keyOf(client));
    if (client !== this.#client) return;
    const survey = /** @type {import("./survey.js").Survey} */ (client.survey);
    this.#draw = () => {
      const language = choose(this.#wanted, survey.languages);
      /** @type {import("./words.js").Strings} */
      const strings = stringsFor(language, this.strings);
      const said = before && status !== "refused" ? `${strings.before}${status === "queued" ? ` ${strings.queued}` : ""}` : strings[status === "refused" && code.startsWith("token_") ? "spent" : status];
      this.#show(language, () => [make("h1", { part: "title" }, survey.title[language]), make("p", { id: "status", role: "status", part: "status", tabindex: "-1" }, said),
        ...(status === "refused" ? [] : wayBack(this, strings)),
        ...(status === "sent" && report ? [sent(client.view(armOf(survey, report)).survey, report, strings, language)] : [])]);
    };
    this.#draw();
    if (!before && this.#root.activeElement?.id !== "back") this.#root.getElementById("status")?.focus();
    if (status !== "queued") return;
    const off = client.on("*", ({ name, survey: of, code: since }) => {
      if (of !== survey.survey || (name !== "sent" && name !== "refused")) return;
      off();
      this.#finish(client, { status: name, code: since, report }, false);
    });
  }

  /** Show an error, unless the element already shows another attempt. */
  #fail(/** @type {unknown} */ error, /** @type {number} */ attempt) {
    if (attempt !== this.#attempt) return;
    const known = error instanceof FranklyError, { code, detail } = known ? error : { code: "internal", detail: "" };
    if (known) this.#tellError(error);
    else this.#tell("error", { code, detail, field: null });
    // What was entered comes back, unless no later attempt can succeed either.
    const canRetry = error instanceof NetworkError || (this.#controls.size && !/^(closed|document_(?!window)|insecure_|link|policy_)/.test(code));
    this.#draw = () => {
      const language = speaks(this.#first, this.strings) ? this.#first : "en", strings = stringsFor(language, this.strings);
      const alert = [strings.failed, ...(known ? [reasonOf(error, strings, language)] : [])].filter(Boolean).join(" ");
      const children = [make("p", { role: "alert", part: "alert" }, alert)];
      // The texts of errors are English; beside another language, the code stands for them.
      if (known) children.push(make("p", { lang: "en", dir: "ltr", part: "detail" }, baseOf(language) === "en" ? `${detail} (${code})` : `(${code})`));
      if (canRetry) {
        const button = make("button", { id: "retry", type: "button", part: "button" }, strings.retry);
        button.addEventListener("click", () => this.#open());
        children.push(button);
      }
      this.#show(language, () => children);
    };
    this.#draw();
    if (!known) throw error;
  }
}

/** Return the fields with the instructed item in the middle of the randomised questions: people tire, and begin to answer without reading. */
const inOrder = (/** @type {Field[]} */ strata, /** @type {Field[]} */ own, /** @type {Field[]} */ item, half = Math.ceil(own.length / 2)) =>
  ({ open: [...strata, ...item], own, fields: [...strata, ...own.slice(0, half), ...item, ...own.slice(half)] });

/** Return the fields that need an answer; boxes may stay empty. */
const missingOf = (/** @type {Field[]} */ fields) => fields.filter(({ node, answer }) => !node.hidden && answer === undefined);

/** Return the arm that a report names. */
const armOf = (/** @type {import("./survey.js").Survey} */ { arms }, /** @type {string} */ report) => ({ arm: arms ? JSON.parse(report).strata[arms.id] : null });

/** Return the name of a survey's form: another store or invitation may belong to another person. */
const keyOf = (/** @type {Client} */ { store, survey, invite, source }) => `${survey?.digest} ${store.name} ${invite ?? ""} ${source ?? ""}`;

/** Let the browser do other work in between, if it can. */
const pause = () => /** @type {any} */ (globalThis).scheduler?.yield?.();

/** Return words of the explanation with parts of the other direction isolated: in English sentences, Arabic words would change places. */
function isolated(/** @type {string} */ words, /** @type {{language: string, reportTemplate: string}} */ { language: spoken, reportTemplate }, /** @type {import("./survey.js").Survey} */ survey, /** @type {string} */ language) {
  const { title, consent } = survey, questions = [...openQuestions(survey), ...questionsOf(survey)], direction = directionOf(spoken);
  const texts = [title, ...(consent ? [consent] : []), ...questions.flatMap(({ text, choices, box }) => [text, ...choices.map((choice) => choice.label), ...(box ? [box.text, box.label] : [])])];
  const others = [...(direction === "rtl" ? [reportTemplate] : []), ...(directionOf(language) === direction ? [] : texts.map((text) => text[language]))];
  if (!others.length) return [words];
  const known = others.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
  return words.split(new RegExp(`(?<!\\p{L})(${known.join("|")})(?!\\p{L})`, "u")).map((part, i) => {
    if (i % 2 === 0) return part;
    return part === reportTemplate ? make("bdi", { dir: "ltr" }, part) : make("bdi", { lang: language }, part);
  });
}

if (globalThis.customElements && typeof customElements.define === "function" && Base !== /** @type {unknown} */ (Object) && !customElements.get?.("frankly-survey")) customElements.define("frankly-survey", FranklySurvey);
