// SPDX-License-Identifier: Apache-2.0
/** The client: open a pinned link, verify, answer once (docs/browser.md). */

import { settled } from "./answers.js";
import { checkBeside } from "./beside.js";
import { bytesOf, digestOf, hex, textOf } from "./canonical.js";
import { Delivery, closed, receiptOf } from "./delivery.js";
import { webcryptoVerify } from "./dsse.js";
import { AlreadyAnswered, Disabled, InsecureTransport, RandomnessError, StoreError, SurveyClosed, describe, part } from "./errors.js";
import { Policy } from "./ledger.js";
import { readLink } from "./link.js";
import { systemBits } from "./mechanisms.js";
import { openSurvey } from "./opening.js";
import { parts } from "./parts.js";
import { SEAMS } from "./seams.js";
import { Store } from "./store.js";
import { drawnArm, isDrawn, openQuestions, questionsOf, reportBytes, reportLength, requireWindow, truthAt } from "./survey.js";
import { Transport } from "./transport.js";

/**
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./delivery.js").Receipt} Receipt
 * @typedef {import("./store.js").Sealed} Sealed
 * @typedef {import("./answers.js").Choices} Choices
 * @typedef {{view: Survey, level: import("./ledger.js").ReportLevel, chosen: Choices, open: Choices}} Settled answers to a document, or to the view of an arm
 */

const FIRST_RETRY = 2000, LONGEST_RETRY = 3_600_000, PATIENCE = 10_000;
// A report about what was drawn names the question that somebody answered last: this hides how long they hesitated.
const DRAWN_SPREAD = 30_000;

export class Client {
  /** @type {Map<string, Set<(event: import("../frankly.d.ts").FranklyEvent) => void>>} */ #listeners = new Map();
  #leaving = new AbortController();
  #retry = FIRST_RETRY;
  /** Digest of what a plan depends on. */ #form = "";
  /** Id of the survey that a client that is switched off does not open. @type {string | undefined} */ #named;
  /** Receipts of reports that were settled when the client was opened, for the first `flush`. @type {Receipt[]} */ #settled = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  /** @type {Promise<void>} */ #attempts = Promise.resolve();

  /** Send the reports that an earlier visit left, then fetch and verify a survey (steps 1 to 10). */
  static async open(/** @type {string} */ link, /** @type {import("../frankly.d.ts").Options} */ options = {}) {
    const wanted = readLink(link), { enabled = true } = options;
    if (!enabled) return new this(null, new Policy(options.policy), options, wanted.survey);
    if (!globalThis.isSecureContext || !globalThis.crypto?.subtle)
      throw new InsecureTransport("page", "insecure_page");
    const policy = new Policy(options.policy);
    const store = await Store.open(options.store ?? "frankly", options.allowMemory);
    const client = new this(store, policy, options);
    try {
      await client.#open(wanted, options);
    } catch (error) {
      client.close();
      throw error;
    }
    return client;
  }

  /** @protected Without a store, the client of the survey `named` is switched off. */
  constructor(/** @type {Store | null} */ store, /** @type {Policy} */ policy, /** @type {import("../frankly.d.ts").Options} */ options, /** @type {string | undefined} */ named = undefined) {
    this.store = /** @type {Store} */ (store);
    this.enabled = Boolean(store);
    this.#named = named;
    this.policy = policy;
    const { now = Date.now, randomBits = systemBits, sleep = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms)), timer = () => performance.now(), fetch } =
      /** @type {{[SEAMS]?: import("./seams.js").Seams}} */ (options)[SEAMS] ?? {};
    this.now = now;
    this.draw = randomBits;
    if (options.onEvent) this.on("*", options.onEvent);
    this.transport = new Transport(fetch, options.relay);
    this.delivery = new Delivery(
      this.transport, this.store, { sleep, timer, now },
      (name, survey, receipt) => this.#announce(name, survey, receipt), options.spreadMs ?? 10,
    );
  }

  async #open(/** @type {import("./link.js").SurveyLink} */ link, /** @type {import("../frankly.d.ts").Options} */ options) {
    this.#settled = (await this.delivery.flush(0)).filter((one) => one.status !== "queued"); // sent before opening, which may fail; the reports may belong to another survey
    const opening = {
      link, store: this.store, transport: this.transport, now: this.now(), verify: options.verify ?? webcryptoVerify,
      wantsLog: this.policy.wantsLog(link.digest), collectHosts: this.policy.collectHosts,
      check: (/** @type {Uint8Array} */ payload, /** @type {string} */ digest) => checkBeside(payload, digest, this.policy.allowed),
      announce: (/** @type {string} */ name) => this.#announce(name, link.survey, { code: name, detail: describe(name) }),
    };
    const opened = await openSurvey(opening, options.keys ?? null), { survey } = opened;
    this.survey = survey;
    this.chain = opened.chain;
    this.signedBy = opened.signedBy;
    this.trust = opened.trust;
    this.invite = link.invite;
    this.source = link.source;
    this.level = opened.level; // computed once, because sealing holds a lock
    if (survey.token) await tokens(); // now, while the network is available
    if (!(await this.store.answer(this.chain, survey.survey))) // (10); an answered survey has already been charged
      this.policy.check(survey, this.#level, { ...this.trust, spent: await this.store.spent() });
    if (this.#plans) {
      this.delivery.spreadMs = options.spreadMs ?? DRAWN_SPREAD;
      this.#form = await digestOf(bytesOf(this.#plans.formOf(survey)));
    }
    this.#announce("opened", survey.survey);
    const { signal } = this.#leaving;
    globalThis.addEventListener("online", () => this.#inBackground(0), { signal });
    globalThis.addEventListener("pagehide", () => this.delivery.pushAll(), { signal });
    globalThis.document?.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && this.delivery.pushAll(), { signal });
    if ((await this.store.outbox()).length) this.#inBackground(this.#retry);
  }

  /** The questions whose answers are randomised, in the document's order. */
  get questions() {
    return questionsOf(this.#accepted);
  }

  /** @returns {Survey} */
  get #accepted() {
    if (!this.enabled) throw new Disabled();
    return /** @type {Survey} */ (this.survey);
  }

  /** plans.js, if the device draws what it asks. @returns {typeof import("./plans.js") | undefined} */
  get #plans() {
    return isDrawn(this.#accepted) ? parts.plans : undefined;
  }

  /** @returns {import("./ledger.js").ReportLevel} */
  get #level() {
    return /** @type {import("./ledger.js").ReportLevel} */ (this.level);
  }

  /** The name of the current keys' chain: the digest of its first root. @returns {string} */
  get #chain() {
    return /** @type {string} */ (this.chain);
  }

  /** Return the receipt of this respondent's sealed answer to the survey, null if there is none. */
  async answered(respondent = "") {
    const { survey } = this.#accepted, kept = await this.store.answer(this.#chain, survey, await this.store.respondentNames(respondent));
    if (!kept) return null;
    return kept.state === "sealed" ? receiptOf("queued", "sealed", "sealed") : closed(kept);
  }

  /** Return the survey's cost for a respondent, and the remaining budget before and after; nothing is charged. With a plan, the cost is that of its arm. */
  async budget(respondent = "", /** @type {{arm: string | null} | undefined} */ plan = undefined) {
    const { survey, level } = this.view(plan), names = await this.store.respondentNames(respondent);
    const { budgetOf } = await part(() => import("./budget.js"));
    return budgetOf(this.policy, survey, level, await this.store.spent(names), Boolean(await this.store.answer(this.#chain, survey.survey, names)));
  }

  /** Return the survey that a plan is about and its level: that of the plan's arm, or the whole survey if it has no arms or there is no plan. */
  view(/** @type {{arm: string | null} | undefined} */ plan = undefined) {
    const survey = this.#accepted, level = this.#level, arm = survey.arms && plan?.arm;
    if (!arm || !level.arms) return { survey, level };
    return { survey: /** @type {Survey} */ (parts.arms.viewOf(survey, arm)), level: level.arms[arm] };
  }

  /** Return what to ask: all questions, or those that this device has drawn and stored; later calls return the same until the answer is sealed. */
  async plan(/** @type {{respondent?: string}} */ { respondent = "" } = {}) {
    const survey = this.#accepted, names = await this.store.respondentNames(respondent), plans = this.#plans;
    const { Plan } = plans ?? (await part(() => import("./plans.js")));
    const kept = await this.#planned(names);
    if (!kept) throw new AlreadyAnswered(/** @type {Receipt} */ (await this.answered(respondent)));
    if (!plans) return new Plan(this.questions, this.questions);
    this.#announce("planned", survey.survey);
    const view = this.view(kept).survey;
    return new Plan(plans.needed(view, plans.plansIn(kept)), questionsOf(view), view.arm);
  }

  /** Return the stored plans after the checks of an answer, drawing them if there are none; undefined after an answer. */
  async #planned(/** @type {string[]} */ names) {
    const survey = this.#accepted, plans = this.#plans, place = /** @type {const} */ ([this.#chain, survey.survey, names]);
    const check = (/** @type {Sealed[]} */ spent) => void this.#charge(spent, this.#level);
    if (plans) return this.store.plan(...place, this.#form, check, () => randomly(() => plans.draw(survey, this.draw)));
    if (await this.store.answer(...place)) return undefined;
    check(await this.store.spent(names));
    return [];
  }

  /** Randomise, seal and send one answer; the true `answers` are not stored anywhere. */
  async answer(/** @type {import("../frankly.d.ts").Answers} */ answers, /** @type {{strata?: Choices, respondent?: string, token?: string | null, patienceMs?: number}} */ options = {}) {
    if (!this.enabled) {
      this.#announce("disabled", /** @type {string} */ (this.#named));
      return receiptOf("disabled", "disabled", "disabled");
    }
    const survey = this.#accepted, plans = this.#plans, { patienceMs } = options, { arms } = survey, { question } = survey.token ?? {};
    const strata = question && this.source ? { [question]: this.source, ...options.strata } : options.strata ?? {};
    let own = arms ? undefined : this.#settle(answers, strata);
    const names = await this.store.respondentNames(options.respondent ?? "");
    const before = await this.store.answer(this.#chain, survey.survey, names);
    const given = options.token ?? (survey.token && this.invite) ?? null, token = !before && (survey.token || given) ? await (await tokens()).checkToken(survey, given, question && strata[question]) : null;
    // If an answer is missing, the plan is stored before it is compared with the answers: a draw that could be repeated until it fits would depend on them.
    // Which answers are needed depends on the arm: they are read when it is drawn and stored.
    const isPlanned = plans && !before && (arms || Object.keys(own?.chosen ?? {}).length < this.questions.length), plan = isPlanned ? await this.#planned(names) : undefined;
    if (arms && plan) own = this.#settle(answers, strata, plan);
    const sealed = before || !own ? undefined
      : await this.store.seal(this.#chain, survey.survey, names, this.#form, (spent, kept) => this.#draw(/** @type {Settled} */ (own), token, names[0], spent, kept));
    answers = {};
    own = undefined; // nothing keeps the answers while the report waits
    if (!sealed) {
      const kept = await this.store.answer(this.#chain, survey.survey, names);
      throw new AlreadyAnswered(kept?.state === "sealed" ? await this.#deliver(kept, patienceMs) : closed(kept));
    }
    this.delivery.schedule(sealed);
    this.#announce("sealed", sealed.survey);
    const report = textOf(/** @type {Uint8Array} */ (sealed.body)); // before it is erased
    return Object.defineProperty(await this.#deliver(sealed, patienceMs), "report", { value: report }); // not in its JSON, which apps may log
  }

  /** Return the choices that answers stand for; those to questions of other arms than the plan's are dropped. @returns {Settled} */
  #settle(/** @type {any} */ answers, /** @type {any} */ strata, /** @type {any} */ plan = undefined) {
    const { survey: view, level } = this.view(plan), whole = this.#accepted, { instructed } = view;
    /** @type {(given: any, all: Question[], own: Question[]) => any} */
    const own = view.arm ? parts.arms.ownAnswers : (given) => given;
    const chosen = settled(own(answers, questionsOf(whole), questionsOf(view)), questionsOf(view), this.#plans?.partly);
    const open = settled(own(strata, openQuestions(whole), openQuestions(view)), openQuestions(view));
    if (instructed) open[instructed.id] = open[instructed.id] === instructed.answer ? "passed" : "failed"; // the choice itself is not sent
    return { view, level, chosen, open };
  }

  /** Send the reports that are still sealed, for about `timeoutMs`; returns a receipt for each, at first also for those sent by `open`. */
  async flush(timeoutMs = 30_000) {
    return !this.enabled ? [] : [...this.#settled.splice(0), ...(await this.delivery.flush(timeoutMs))];
  }

  /** Return the stored evidence; two pieces that contradict each other prove that different versions were shown. */
  evidence() {
    return this.enabled ? this.store.evidence() : Promise.resolve([]);
  }

  /** Subscribe to `opened`, `log_renamed`, `planned`, `sealed`, `sent`, `queued`, `refused`, or to all by `*`; returns a function that unsubscribes. */
  on(/** @type {string} */ name, /** @type {(event: import("../frankly.d.ts").FranklyEvent) => void} */ listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Remove the page's listeners and close the store; reports that wait for their random moment are sent, others at the next visit. */
  close() {
    if (!this.enabled) return;
    this.delivery.pushAll(true);
    clearTimeout(this.#timer);
    this.#leaving.abort();
    this.store.backend.close();
  }

  /** Check that the survey is open and fits the budget at this level; return its cost. */
  #charge(/** @type {Sealed[]} */ spent, /** @type {import("./ledger.js").ReportLevel} */ level) {
    const survey = this.#accepted, now = this.now();
    try {
      requireWindow(survey, now);
    } catch (error) {
      throw now >= survey.closes ? new SurveyClosed(survey.closes, now) : error;
    }
    return this.policy.check(survey, level, { pinned: false, logged: false, ...this.trust, spent });
  }

  /** Check, draw every block once, and return the report to store; called within the store's transaction. @returns {Sealed} */
  #draw(
    /** @type {Settled} */ { view, level, chosen, open }, /** @type {string | null} */ token, /** @type {string} */ respondent,
    /** @type {Sealed[]} */ spent, /** @type {any} */ kept,
  ) {
    if (view.arms) this.#charge(spent, this.#level); // as before the draw: other answers since then must not leave out people of one arm only
    const { survey, digest, collectUrl, closes } = view, charge = this.#charge(spent, level), plans = this.#plans;
    if (view.arm && kept?.arm !== view.arm) throw new StoreError(); // the store has lost the arm for which the answers were read
    const truth = plans ? plans.only(chosen, kept ? plans.needed(view, plans.plansIn(kept)) : questionsOf(view)) : chosen;
    const [id, body] = randomly(() => {
      const stored = kept ?? plans?.draw(view, this.draw), drawn = [...(plans && stored ? plans.plansIn(stored) : [])];
      const y = view.blocks.map((block) => block.mechanism.sample(/** @type {any} */ (truthAt(block, positionsOf(block.questions, truth))), this.draw, block.ask && drawn.shift()));
      const name = hex(crypto.getRandomValues(new Uint8Array(16)));
      return [name, reportBytes({ doc: digest, id: name, y, strata: { ...open, ...drawnArm(view) }, token }, reportLength(view))];
    });
    return { chain: this.#chain, survey, respondent, digest, url: collectUrl, id, body, state: "sealed", code: "", closes, ...charge };
  }

  async #deliver(/** @type {Sealed} */ sealed, patienceMs = PATIENCE + (this.#plans ? this.delivery.spreadLeft(sealed) : 0)) {
    const receipt = await this.delivery.deliver(sealed, patienceMs);
    if (receipt.status === "queued") this.#later([receipt]);
    return receipt;
  }

  /** Try again at the next random moment of a report, or after the retry time if one of these is queued for another reason. */
  #later(/** @type {Receipt[]} */ queued) {
    const untried = queued.every(({ code }) => code === "scheduled"); // a moment may have passed since it was looked at
    this.#inBackground(Math.min(this.delivery.soonest(untried ? 0 : Infinity), untried ? LONGEST_RETRY : this.#retry));
  }

  /** Try again while the page is open; the retry time doubles, up to an hour. */
  #inBackground(/** @type {number} */ waitMs) {
    clearTimeout(this.#timer);
    if (this.#leaving.signal.aborted) return;
    // One after the other: attempts that wait for each other would each double the retry time.
    this.#timer = setTimeout(() => (this.#attempts = this.#attempts.then(() => this.#attempt())), waitMs);
  }

  async #attempt() {
    if (this.#leaving.signal.aborted) return;
    const left = await this.delivery.flush(0).then((receipts) => receipts.filter((one) => one.status === "queued"), () => [receiptOf("queued", "store", "store")]);
    if (left.some(({ code }) => code !== "scheduled")) this.#retry = Math.min(2 * this.#retry, LONGEST_RETRY);
    if (left.length) this.#later(left);
    else this.#retry = FIRST_RETRY;
  }

  #announce(/** @type {string} */ name, /** @type {string} */ survey, /** @type {{code: string, detail: string} | undefined} */ receipt = undefined) {
    const event = { name: /** @type {import("../frankly.d.ts").EventName} */ (name), survey, code: receipt?.code ?? "", detail: receipt?.detail ?? "" };
    for (const listener of [...(this.#listeners.get(name) ?? []), ...(this.#listeners.get("*") ?? [])])
      try {
        listener(event);
      } catch {
        // Exceptions of a listener are dropped: a sealed report has to be sent even if the page's display fails.
      }
  }
}

/** Return the result of a draw. The error of a failed one is dropped, because its frames contain the true answers. @type {<T>(work: () => T) => T} */
const randomly = (work) => {
  try {
    return work();
  } catch {
    throw new RandomnessError();
  }
};

const tokens = () => part(() => import("./tokens.js"));

/** Return the position of the true choice of every question. */
const positionsOf = (/** @type {Question[]} */ questions, /** @type {Choices} */ truth) =>
  questions.map(({ id, choices }) => choices.findIndex((choice) => choice.id === truth[id]));
