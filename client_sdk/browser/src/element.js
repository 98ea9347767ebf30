// SPDX-License-Identifier: Apache-2.0
/**
 * `<frankly-survey link="https://host/s/ID#sha256=…">`: shows and explains a survey, randomises, sends and confirms the
 * answer. Attributes: link, lang, cap, final-surveys, store, token, served (the survey's server served this page). Properties:
 * `options` for `Client.open`, `strings` for more languages, `token`. Events: `frankly-opened`, `-sealed`, `-sent`,
 * `-queued`, `-refused`, `-language` and `-error`; none depends on the answers.
 */

import { Client } from "./client.js";
import { AlreadyAnswered, FranklyError, NetworkError, speak, unless } from "./errors.js";
import { explain } from "./explain.js";
import { Field, follow, make } from "./fields.js";
import { CSS } from "./styles.js";
import { inWords } from "./texts.js";
import { groupsOf } from "./ways.js";
import { choose, directionOf, learn, nameOf, speaks, stringsFor } from "./words.js";

speak(inWords); // loaded immediately, because its texts could not be loaded without a network

// A server that renders pages has no DOM. The class exists there only so that imports work.
const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? Object);

export class FranklySurvey extends Base {
  static observedAttributes = ["link", "lang", "token"];
  // A page may have set these properties before this module was loaded.
  /** @type {import("../frankly.d.ts").Options} */ options = Object(this).options ?? {};
  /** @type {Record<string, import("./words.js").Strings>} */ strings = Object(this).strings ?? {};
  /** @type {Record<string, import("./words.js").Catalogue>} */ texts = Object(this).texts ?? {};
  /** @type {Client | undefined} */ #client;
  /** @type {AbortController | undefined} */ #shown;
  #root = this.attachShadow({ mode: "open" });
  /** @type {import("../frankly.d.ts").Budget | undefined} */ #budget;
  #language = "";
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
    this.#open();
  }

  disconnectedCallback() {
    this.#attempt++;
    this.#client?.close();
    this.#client = undefined;
  }

  attributeChangedCallback(/** @type {string} */ name, /** @type {string | null} */ before, /** @type {string | null} */ after) {
    if (!this.isConnected || before === after) return;
    if (name === "link") this.#open();
    else if (name === "token") this.#invitation?.toggleAttribute("hidden", after !== null);
    else if (this.#client) this.#ask();
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

  async #open() {
    const attempt = ++this.#attempt;
    this.#client?.close();
    this.#client = undefined;
    const link = this.getAttribute("link"), first = this.#wanted[0] ?? "en";
    if (link === null) return this.#root.replaceChildren(); // a page may set the options first and the link later
    await learn(first);
    if (attempt !== this.#attempt) return;
    const strings = stringsFor(first, this.strings);
    this.#show(first, make("p", { role: "status", part: "status" }, strings.loading));
    try {
      const cap = this.getAttribute("cap"), store = this.getAttribute("store"), finalSurveys = this.getAttribute("final-surveys")?.match(/\S+/g);
      const policy = { ...this.options.policy, ...(cap && { cap }), ...(finalSurveys && { finalSurveys }) };
      const options = { ...this.options, ...(store && { store }), policy };
      const client = await Client.open(link, { ...options, onEvent: (event) => {
        options.onEvent?.(event);
        this.#tell(event.name, event);
      } });
      if (attempt !== this.#attempt) return client.close();
      this.#client = client;
      const before = await client.answered();
      await pause();
      // If the network is lost by now, the explanation shows the cost without the remaining budget.
      this.#budget = before ? undefined : await unless(client.budget(), NetworkError, () => undefined);
      if (attempt !== this.#attempt) return;
      if (!before) return await this.#ask();
      await learn(choose(this.#wanted, /** @type {import("./survey.js").Survey} */ (client.survey).languages));
      if (attempt === this.#attempt) this.#finish(before, true);
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

  #show(/** @type {string} */ language, /** @type {Node[]} */ ...children) {
    this.#asked++; // a form that is still being made is not shown any more
    this.#shown?.abort();
    this.#shown = new AbortController();
    const body = make("div", { lang: language, dir: directionOf(language), part: "body" }, ...children);
    this.#tell("language", { language });
    if (this.hasAttribute("served")) {
      const said = speaks(language, this.strings) ? language : "en";
      body.append(make("p", { class: "served", part: "served", lang: said, dir: directionOf(said) }, stringsFor(language, this.strings).served));
    }
    this.#root.replaceChildren(body);
  }

  /** Show the form; what takes long is done in several tasks, so that the page stays responsive. */
  async #ask() {
    const asked = ++this.#asked, client = /** @type {Client} */ (this.#client), survey = /** @type {import("./survey.js").Survey} */ (client.survey);
    const isOver = () => asked !== this.#asked || client !== this.#client;
    const language = choose(this.#wanted, survey.languages);
    await learn(language);
    await pause();
    if (isOver()) return;
    const strings = stringsFor(language, this.strings);
    const told = explain(survey, /** @type {import("./ledger.js").ReportLevel} */ (client.level), client.signedBy ?? [], language, this.#budget, this.texts[language]);
    await pause();
    if (isOver()) return;
    const promise = make("div", { class: "promise", part: "promise", role: "note" }, make("p", {}, told.blocks.some((block) => block.unchanged) ? strings.unchanged : strings.private));
    const explained = { lang: told.language, dir: directionOf(told.language) }, shown = (/** @type {string} */ words) => isolated(words, told, survey, language);
    if (told.blocks.length === 1) promise.append(make("p", explained, ...shown(told.blocks[0].guessWords)));
    const fieldsOf = (/** @type {import("./survey.js").Question[]} */ questions, note = "") => groupsOf(questions).map((group) => new Field(group, language, strings, note));
    const open = fieldsOf(survey.strata, strings.public), own = fieldsOf(client.questions);
    follow(own);
    await pause();
    if (isOver()) return;
    const form = make("form", { part: "form", novalidate: true },
      ...(survey.token ? [this.#invited(strings)] : []),
      ...[...open, ...own].map(({ node }) => node),
      make("p", { class: "note", id: "final" }, strings.final),
      make("button", { part: "button", type: "submit", "aria-describedby": "final" }, strings.send));
    const details = make("details", { part: "explanation" }, make("summary", {}, strings.details),
      ...(strings.english && told.language === "en" ? [make("p", { class: "note" }, strings.english)] : []),
      make("div", { class: "words", ...explained }, ...shown(told.words)));
    this.#show(language, make("h1", { part: "title" }, survey.title[language]), ...this.#languages(survey.languages, language, strings),
      ...(survey.consent ? [make("p", { part: "consent" }, survey.consent[language])] : []), promise, details, form);
    form.addEventListener("input", () => follow(own));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(/** @type {HTMLFormElement} */ (form), open, own, strings);
    });
  }

  /** Return the field for a token; its ids differ from those of all questions. */
  #invited(/** @type {import("./words.js").Strings} */ strings) {
    return make("div", { class: "invitation", part: "question", hidden: (this.token ?? this.#client?.invite ?? null) !== null },
      make("label", { for: "invitation", part: "legend" }, strings.invitation),
      make("p", { class: "note", id: "invitation-note" }, strings.invited),
      make("input", { id: "invitation", part: "input", type: "text", dir: "ltr", required: true, autocomplete: "off", autocapitalize: "none",
        spellcheck: "false", "aria-describedby": "invitation-note invitation-error" }),
      make("p", { class: "error", id: "invitation-error", part: "error" }));
  }

  /** Show an error at the token's field; an empty text removes it. */
  #uninvited(/** @type {string} */ said) {
    const field = this.#root.getElementById("invitation");
    this.#root.getElementById("invitation-error")?.replaceChildren(said);
    field?.setAttribute("aria-invalid", String(Boolean(said)));
    if (!said) return;
    this.#invitation?.removeAttribute("hidden"); // the token that the page has set was refused
    field?.focus();
  }

  #languages(/** @type {string[]} */ offered, /** @type {string} */ chosen, /** @type {import("./words.js").Strings} */ strings) {
    if (offered.length < 2) return [];
    const select = /** @type {HTMLSelectElement} */ (make("select", { id: "language", part: "language" },
      ...offered.map((tag) => make("option", { value: tag, lang: tag, selected: tag === chosen }, nameOf(tag)))));
    select.addEventListener("change", async () => {
      this.#language = select.value;
      await this.#ask();
      /** @type {HTMLElement | null} */ (this.#root.querySelector("select"))?.focus();
    });
    return [make("div", { class: "languages" }, make("label", { for: "language" }, strings.language), select)];
  }

  /** Send the answers, unless one is missing; `open` are the fields of public questions, `own` the fields of all other questions. */
  async #submit(/** @type {HTMLFormElement} */ form, /** @type {Field[]} */ open, /** @type {Field[]} */ own, /** @type {import("./words.js").Strings} */ strings) {
    const client = /** @type {Client} */ (this.#client), { token: rule } = /** @type {import("./survey.js").Survey} */ (client.survey);
    const field = /** @type {HTMLInputElement | null} */ (this.#root.getElementById("invitation"));
    const token = rule && (field?.value.trim() || this.token || client.invite);
    const missing = [...open, ...own].filter(({ node, answer }) => !node.hidden && answer === undefined);
    for (const field of [...open, ...own]) field.complain(missing.includes(field));
    this.#uninvited(rule && !token ? strings.uninvited : "");
    if (rule && !token) return;
    if (missing.length) return missing[0].focus();
    const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
    button.disabled = true;
    button.textContent = strings.sending;
    const pick = (/** @type {Field[]} */ fields) => Object.fromEntries(fields.filter(({ node }) => !node.hidden).map(({ name, answer }) => [name, /** @type {any} */ (answer)]));
    try {
      this.#finish(await client.answer(pick(own), { strata: pick(open), token }), false);
    } catch (error) {
      if (error instanceof AlreadyAnswered) this.#finish(error.receipt, true);
      else if (rule && error instanceof FranklyError && error.code === "token_invalid") { // nothing was drawn
        button.disabled = false;
        button.textContent = strings.send;
        this.#tellError(error);
        this.#uninvited(strings.uninvited);
      } else this.#fail(error);
    }
  }

  #finish(/** @type {{status: string, code: string}} */ { status, code }, /** @type {boolean} */ before) {
    const client = /** @type {Client} */ (this.#client), survey = /** @type {import("./survey.js").Survey} */ (client.survey);
    const language = choose(this.#wanted, survey.languages);
    /** @type {import("./words.js").Strings} */
    const strings = stringsFor(language, this.strings);
    const said = before && status !== "refused" ? `${strings.before}${status === "queued" ? ` ${strings.queued}` : ""}` : strings[status === "refused" && code.startsWith("token_") ? "spent" : status];
    const words = make("p", { role: "status", part: "status", tabindex: "-1" }, said);
    this.#show(language, make("h1", { part: "title" }, survey.title[language]), words);
    if (!before) words.focus();
    if (status !== "queued") return;
    const off = client.on("*", ({ name, survey: of, code: since }) => {
      if (of !== survey.survey || (name !== "sent" && name !== "refused")) return;
      off();
      this.#finish({ status: name, code: since }, false);
    });
  }

  /** Show an error, unless the element already shows another attempt. */
  #fail(/** @type {unknown} */ error, attempt = this.#attempt) {
    if (attempt !== this.#attempt) return;
    const known = error instanceof FranklyError, language = this.#wanted[0] ?? "en", strings = stringsFor(language, this.strings);
    if (known) this.#tellError(error);
    else this.#tell("error", { code: "internal", detail: "", field: null });
    const children = [make("p", { role: "alert", part: "alert" }, strings.failed)];
    if (known) children.push(make("p", { lang: "en", dir: "ltr", part: "detail" }, `${error.detail} (${error.code})`));
    if (error instanceof NetworkError) {
      const button = make("button", { type: "button", part: "button" }, strings.retry);
      button.addEventListener("click", () => this.#open());
      children.push(button);
    }
    this.#show(speaks(language, this.strings) ? language : "en", ...children);
    if (!known) throw error;
  }
}

/** Let the browser do other work in between, if it can. */
const pause = () => /** @type {any} */ (globalThis).scheduler?.yield?.();

/** Return words of the explanation with parts of the other direction isolated: in English sentences, Arabic words would change places. */
function isolated(/** @type {string} */ words, /** @type {{language: string, reportTemplate: string}} */ { language: spoken, reportTemplate }, /** @type {import("./survey.js").Survey} */ survey, /** @type {string} */ language) {
  const { title, consent, strata, blocks } = survey, questions = [...strata, ...blocks.flatMap((block) => block.questions)], direction = directionOf(spoken);
  const texts = [title, ...(consent ? [consent] : []), ...questions.flatMap(({ text, choices, box }) => [text, ...choices.map((choice) => choice.label), ...(box ? [box.text, box.label] : [])])];
  const others = [...(direction === "rtl" ? [reportTemplate] : []), ...(directionOf(language) === direction ? [] : texts.map((text) => text[language]))];
  if (!others.length) return [words];
  const known = others.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
  return words.split(new RegExp(`(?<!\\p{L})(${known.join("|")})(?!\\p{L})`, "u")).map((part, i) => {
    if (i % 2 === 0) return part;
    return part === reportTemplate ? make("bdi", { dir: "ltr" }, part) : make("bdi", { lang: language }, part);
  });
}

if (globalThis.customElements && !customElements.get("frankly-survey")) customElements.define("frankly-survey", FranklySurvey);
