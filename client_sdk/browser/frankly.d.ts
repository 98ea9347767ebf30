// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk`. */

/** An exact ratio n/d; fields use null for an infinite ratio. */
export type Rational = [bigint, bigint];
/** A text per language tag. */
export type Words = Record<string, string>;
/** Question id → choice id. */
export type Choices = Record<string, string>;

/** Question id → the choice's id, a whole number if the question asks for a number, or the ids of the ticked boxes. */
export type Answers = Record<string, string | number | readonly string[]>;

/** `no_answer`: the person prefers not to say. `not_applicable`: the question does not apply, or was not asked. */
export type ChoiceRole = "no_answer" | "not_applicable";

export interface Choice {
  id: string;
  label: Words;
  role?: ChoiceRole;
  /** Smallest number of the choice's range, in a question that asks for a number. */
  from?: number;
  /** Its value on a scale, as decimal text. */
  score?: string;
}

export interface Question {
  id: string;
  text: Words;
  choices: Choice[];
  /** The question is one box of the question `of`, which the person reads; its choices are no and yes. */
  box?: { of: string; text: Words; label: Words; role?: ChoiceRole };
  /** Asked only if the answer to an earlier question is one of these choices of it. */
  ask_if?: { question: string; choices: string[] };
  /** The figure for which it is asked, used by estimates only; `numbers` of a contrast, one for each choice, as decimal texts. */
  wanted?: { figure: "mean" | "distribution" | "contrast"; numbers?: string[] };
  /**
   * What is known beforehand of the answers, used by estimates only: of all people, a count for each choice, and where it is
   * published; or the id of the earlier question that is asked a second time.
   */
  anchor?: { counts: number[]; source: string } | { repeats: string };
}

/** An item that asks for one given choice, `answer`; of the choice that is made, only whether it is this one is sent. */
export interface Instructed { id: string; text: Words; choices: Choice[]; answer: string; }

/** The state of an answer; `detail` is a message, as in an error. */
export interface Receipt {
  status: "sent" | "queued" | "refused" | "disabled"; code: string; detail: string;
  /**
   * Text of the report, only in the result of the call of `answer` that made it, to be shown to the respondent once. If the survey asks
   * only what is drawn, it shows what was asked: do not store or log it.
   */
  report?: string;
}

export type EventName = "opened" | "log_renamed" | "planned" | "sealed" | "sent" | "queued" | "refused" | "disabled";

/** An event of a client; its content never depends on an answer or a draw. `detail` is a message as in an error, or empty. */
export interface FranklyEvent { name: EventName; survey: string; code: string; detail: string; }

export interface PolicyOptions {
  /**
   * Limit in nats of log-odds, as a decimal string; "5" by default. It bounds the total cost of all surveys answered by
   * one respondent, and how far one report may move the odds of any secret that its survey declares.
   */
  cap?: string;
  /** Maximum ceiling, in nats, of blocks that rest on a prior; such blocks are then accepted through unpinned links too. */
  maxCeiling?: string | null;
  /** Accept links without a digest and without a log. */
  allowUnpinned?: boolean;
  /** Accept only documents in a witnessed transparency log, pinned or not. */
  requireLog?: boolean;
  /** Largest total δ of all (ε, δ) promises that are used; at least 0 and less than 1, "0" by default. */
  deltaCap?: string;
  /**
   * Ids of surveys that may cost more than the cap, or an infinite amount. A respondent can answer one if nothing has
   * been charged before and the odds of every declared secret (of the answers, if none is declared) stay within the
   * cap; nothing else can be answered here afterwards.
   */
  finalSurveys?: string[];
  /** Hosts that may collect reports in addition to the link's; none by default. */
  collectHosts?: string[];
}

export interface Options {
  /** If false, the client touches neither network nor storage, and `answer` does nothing; an element shows nothing. True by default. */
  enabled?: boolean;
  policy?: PolicyOptions;
  /** Bytes of the keys document shipped with the page; without it, the first one from the server is trusted and remembered. */
  keys?: Uint8Array | null;
  /** Name of this install's database; "frankly" by default. */
  store?: string;
  /** Send even if the browser stores nothing; answered surveys are then forgotten when the page is closed. */
  allowMemory?: boolean;
  onEvent?: (event: FranklyEvent) => void;
  /** https address of a reverse proxy through which all requests go. */
  relay?: string | null;
  /** Each report is sent at a random time within this many milliseconds of being sealed; by default 10, and 30 000 for a survey that has arms or asks only what is drawn. */
  spreadMs?: number;
  /** Ed25519 verification for browsers without it, such as `(key, signature, message) => ed25519.verify(signature, message, key)`. */
  verify?: (key: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean | Promise<boolean>;
}

export interface BlockExplanation {
  block: string;
  questions: string[];
  /** Smallest and largest chance that the symbol names the true answer; null if symbols do not correspond to answers. */
  same: [Rational, Rational] | null;
  /**
   * Chance that the best guess from the symbol is right, if all combinations of the block's answers are equally likely: of a guess
   * at all of them at once; for a form, at the question for which this chance is largest.
   */
  guess: Rational;
  /** The same chance without the symbol; for a form, at the same question. */
  blind: Rational;
  /** The sentence with these two chances; it names what the guess is about. */
  guessWords: string;
  ceiling: Rational | null;
  unchanged: boolean;
  words: string;
}

/** Chances of what is sent about one question: least and largest over all answers. A symbol fits an answer if no other makes it more likely. */
export interface Fit {
  /** It fits the true answer, but not every answer. */
  own: [Rational, Rational];
  /** It fits a given other answer, but not every answer. */
  other: [Rational, Rational];
  /** It says nothing about the question, whatever the answers to others are. */
  silent: [Rational, Rational];
  /** Some symbol says something only together with other answers. */
  isJoint?: boolean;
}

/** What a report tells about some questions, the same for each of them. */
export interface Consequence {
  /** Ids; a box has its own. */
  questions: string[];
  /** What the person reads, in the same order. */
  names: string[];
  /** To show; a picture of `fit` can replace them. */
  sentences: string[];
  notes: string[];
  /** The chances behind the sentences; undefined if they would take too long to compute. */
  fit: Fit | undefined;
}

export interface Explanation {
  title: string;
  /** Sentences to read before the first question; in English at most 90 words. */
  summary: string[];
  /** What a report tells about each question, in frequencies of people. */
  consequences: Consequence[];
  /** What it tells about all of them together. */
  overall: string[];
  /** The full technical text. */
  details: { heading: string; paragraphs: string[] }[];
  blocks: BlockExplanation[];
  /** The ledger's charge for the form, in nats of log-odds, rounded up. */
  formNats: string;
  /** The δ charged together with `formNats`; 0 unless the policy allows one. With less δ left, `level.ceiling` is charged. */
  formDelta: Rational;
  level: ReportLevel;
  signedBy: string[];
  /** The report with placeholders for its random values. */
  reportTemplate: string;
  words: string;
  /** Language of the sentences. */
  language: string;
  toString(): string;
}

/** An app's own texts for explanations by part and name, as in frankly_protocol/explanation/texts/en.json; plural forms by CLDR category. */
export type Texts = Partial<Record<"label" | "explanation" | "promises" | "whole" | "budget", Record<string, string | Record<string, string>>>>;

/** Bound on the information of the whole report about one secret, given the public answers. */
export interface SecretLevel {
  /** In the unit of the secret's notions: a ratio of odds for secret-ldp and rldp, else a lift. */
  level: Rational | null;
  odds: Rational | null;
  unit: "odds" | "lift";
  /** As in (ε, δ): P(T|s) ≤ odds·P(T|t) + δ for every set T of reports. */
  delta: Rational;
  /** Id of the block whose promise is used for `odds`; null if every block uses its prior-free bound. */
  counted: string | null;
  /** Bounds for the public answers alone: 1 without public questions, null if infinite or unknown. */
  strataLift: Rational | null;
  strataOdds: Rational | null;
}

/**
 * The level of a whole report; `cost` is the ledger's charge, `ceiling` the charge if no δ is left. Of a survey with arms, each figure is
 * the largest of any arm.
 */
export interface ReportLevel {
  secrets: Map<string, SecretLevel>;
  answers: { level: Rational | null; odds: Rational | null; delta: Rational };
  cost: { odds: Rational | null; delta: Rational };
  ceiling: Rational | null;
  lines: { block: string; countedBy: "ceiling" | "dp"; odds: Rational | null; delta: Rational }[];
  posteriors: { block: string; secret: string; sensitive: number; bound: Rational }[];
  /** The level of each arm, if the survey has arms. */
  arms?: Record<string, ReportLevel>;
}

/**
 * Cost of a survey for one respondent, and the remaining budget: nats of log-odds as decimal strings. Costs are rounded
 * up, remaining amounts down; "inf" is infinite. `toString()` returns a sentence for the respondent.
 */
export interface Budget {
  /** The ledger's charge; "0.0000" if the survey has been answered. */
  cost: string;
  /** The δ charged together with `cost`. */
  delta: string;
  cap: string;
  spent: string;
  left: string;
  leftAfter: string;
  isAnswered: boolean;
  /** True if the cost is above the cap, so that nothing else can be answered afterwards. */
  isFinal: boolean;
  canAnswer: boolean;
  toString(): string;
}

export interface Survey {
  survey: string;
  version: number;
  digest: string;
  opens: number;
  closes: number;
  languages: string[];
  title: Words;
  consent: Words | null;
  collectUrl: string;
  strata: Question[];
  /** Answered among `strata`, with the choice that is made. */
  instructed?: Instructed;
  /** Versions of the survey of which the device draws one; `strata` and `blocks` are ids, and the chances sum to 65,536. */
  arms?: { id: string; arms: { id: string; chance: number; strata: string[]; blocks: string[] }[] };
  /** The arm of which this is the view. */
  arm?: string;
  blocks: { id: string; questions: Question[] }[];
  /** With sources: the public question of which they are choices, and the rule of each. */
  token: { kind: string; key?: string | null; question?: string; rules?: Record<string, { kind: string; key?: string | null }> } | null;
}

/** Validated limits for `Client.open`; `allowed` is the cap on δ as an exact ratio. */
export class Policy { constructor(options?: PolicyOptions); readonly allowed: Rational; }

export { explain, learn } from "./explain.js";

/** Parse a survey link; throws LinkError, or InsecureTransport for an http:// address of another machine. */
export function readLink(text: string): { origin: string; survey: string; digest: string | null; invite: string | null; source: string | null };

export class Client {
  private constructor();
  readonly policy: Policy;
  static open(link: string, options?: Options): Promise<Client>;
  /** False if the client was opened with `enabled: false` and does nothing: it has no survey, and methods that need one throw Disabled. */
  readonly enabled: boolean;
  readonly survey: Survey;
  readonly signedBy: string[];
  /** Name of the chain of keys, the digest of its version 1. The survey's stored data belongs to this chain. */
  readonly chain: string;
  readonly trust: { pinned: boolean; logged: boolean };
  /** The invite code of a personal link, which `answer` uses unless it gets a token; null without one. */
  readonly invite: string | null;
  /** The source that the link names, which `answer` reports unless `strata` has another; null without one. */
  readonly source: string | null;
  /** The level of the whole report, with δ up to the policy's cap. */
  readonly level: ReportLevel;
  /** All questions whose answers are randomised, of whatever arm. */
  readonly questions: Question[];
  /** Explain the survey, or the arm of a plan; with a budget, the text includes the remaining budget before and after. */
  explain(language?: string, budget?: Budget, texts?: Texts, plan?: Plan): Explanation;
  /** Return the cost of the survey, or of the arm of a plan, for a respondent, and the remaining budget before and after; nothing is charged. */
  budget(respondent?: string, plan?: Plan): Promise<Budget>;
  /** Return what a plan is about, with its level: the view of its arm, or the whole survey if it has no arms. */
  view(plan?: Plan): { survey: Survey; level: ReportLevel };
  answered(respondent?: string): Promise<Receipt | null>;
  /**
   * Return what to ask; call it before the first question is shown. If the survey has arms or asks only what is drawn, the first call draws and
   * stores the draw durably, and later ones return the same until the answer is sealed. Nothing is charged or sent.
   */
  plan(options?: { respondent?: string }): Promise<Plan>;
  answer(
    answers: Answers,
    options?: { strata?: Choices; respondent?: string; token?: string | null; patienceMs?: number },
  ): Promise<Receipt>;
  flush(timeoutMs?: number): Promise<Receipt[]>;
  /** Return stored evidence of contradictions; `chain` is the first root of the keys that signed each piece. */
  evidence(): Promise<{ chain: string; digest: string; data: Uint8Array }[]>;
  on(name: EventName | "*", listener: (event: FranklyEvent) => void): () => void;
  close(): void;
}

/** What to ask one respondent. A report shows what it is about, so a page must not log or send it; its JSON is empty. */
export class Plan {
  private constructor();
  /** The arm that is asked, null if the survey has no arms. */
  readonly arm: string | null;
  /** Ids of the questions to ask, in the order of the document or of the arm; a question with boxes has the ids of all its boxes. Rules still apply. */
  readonly questions: readonly string[];
  /** Their number; the boxes of one question count as one. */
  readonly asked: number;
  /** The number of questions of the document or of the arm. */
  readonly of: number;
}

/** `detail` is a message; with `@frankly/sdk/core`, it is only a key, which `describe` of `@frankly/sdk/texts` translates. */
export class FranklyError extends Error { detail: string; code: string; field: string | null; }
export class InvalidInput extends FranklyError {}
export class DocumentRejected extends FranklyError { reason: string; }
export class UnsupportedDocument extends DocumentRejected {}
export class ClockError extends DocumentRejected {}
export class RollbackDetected extends DocumentRejected {}
export class Equivocation extends DocumentRejected {}
export class KeyChainError extends DocumentRejected {}
export class LogError extends DocumentRejected {}
export class RandomnessError extends FranklyError {}
export class LinkError extends FranklyError {}
export class InsecureTransport extends LinkError {}
export class PolicyRefused extends FranklyError { reason: string; }
export class BudgetExceeded extends PolicyRefused {}
export class UnknownChoice extends FranklyError { valid: string[]; }
export class AlreadyAnswered extends FranklyError { receipt: Receipt; }
/** The client was opened with `enabled: false` and has no survey; check `client.enabled` first. */
export class Disabled extends FranklyError {}
export class SurveyClosed extends FranklyError {}
export class StoreError extends FranklyError {}
export class NetworkError extends FranklyError {}
