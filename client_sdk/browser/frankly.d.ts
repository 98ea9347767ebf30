// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk`. */

/** An exact ratio n/d; null where one is infinite. */
export type Rational = [bigint, bigint];
/** A text per language tag. */
export type Words = Record<string, string>;
/** Question id → choice id. */
export type Choices = Record<string, string>;

/** Question id → choice id; a whole number, for a question that asks for one; or the ids of the ticked boxes. */
export type Answers = Record<string, string | number | readonly string[]>;

/** `no_answer`: prefers not to say. `not_applicable`: does not apply, or was not asked. */
export type ChoiceRole = "no_answer" | "not_applicable";

export interface Choice {
  id: string;
  label: Words;
  role?: ChoiceRole;
  /** Smallest number of its range, in a question that asks for a number. */
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
}

/** What became of an answer; `detail` as an error's. */
export interface Receipt { status: "sent" | "queued" | "refused" | "disabled"; code: string; detail: string; }

/** Something that happened; nothing in it depends on an answer or a draw. `detail` is as an error's, or empty. */
export interface FranklyEvent { name: string; survey: string; code: string; detail: string; }

export interface PolicyOptions {
  /**
   * Nats of log-odds, as a decimal string; "5" by default: what all surveys answered by one respondent may cost together,
   * and how far one report may move the odds of any secret that its survey declares.
   */
  cap?: string;
  /** Nats: blocks that rest on a prior must have a ceiling within it, and may then come unpinned. */
  maxCeiling?: string | null;
  /** Accept links without a digest and without a log. */
  allowUnpinned?: boolean;
  /** Accept only what a watched transparency log vouches for. */
  requireLog?: boolean;
  /** Below 1: what the δ of all (ε, δ) promises that count as stated may add up to; "0" by default. */
  deltaCap?: string;
  /**
   * Ids of surveys that cost more than the cap, or an infinite amount, and may be answered all the same by somebody to
   * whom nothing has been charged, if the odds of every declared secret (of the answers, where none is declared) stay
   * within the cap; nothing else can be answered here afterwards.
   */
  finalSurveys?: string[];
  /** Hosts that may collect reports besides the one of the link; none by default. */
  collectHosts?: string[];
}

export interface Options {
  policy?: PolicyOptions;
  /** Bytes of the keys document shipped with the page; without it the server's first one is trusted and remembered. */
  keys?: Uint8Array | null;
  /** Name of this install's database; "frankly" by default. */
  store?: string;
  /** Send even where the browser keeps nothing; a page that is left then forgets that it has answered. */
  allowMemory?: boolean;
  onEvent?: (event: FranklyEvent) => void;
  /** https address of a reverse proxy that everything goes through. */
  relay?: string | null;
  /** A report leaves at a random moment within so many milliseconds of its seal; 10 by default. */
  spreadMs?: number;
  /** Ed25519 for browsers without it, such as `(key, signature, message) => ed25519.verify(signature, message, key)`. */
  verify?: (key: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean | Promise<boolean>;
  /** The rest exists for tests. */
  fetch?: typeof fetch;
  now?: () => number;
  timer?: () => number;
  sleep?: (ms: number) => Promise<void>;
  randomBits?: (bits: number) => number;
}

export interface BlockExplanation {
  block: string;
  questions: string[];
  /** Least and greatest chance that what leaves names the true answer; null if symbols are no answers. */
  same: [Rational, Rational] | null;
  guess: Rational;
  blind: Rational;
  ceiling: Rational | null;
  unchanged: boolean;
  words: string;
}

export interface Explanation {
  title: string;
  blocks: BlockExplanation[];
  /** What the ledger charges for the form, in nats of log-odds, rounded up. */
  formNats: string;
  /** The chance that is charged with `formNats`; 0 unless the policy allows one. Who has less of it left pays `level.ceiling`. */
  formDelta: Rational;
  level: ReportLevel;
  signedBy: string[];
  leaves: string;
  words: string;
  toString(): string;
}

/** What the whole report tells about one secret, given the public answers. */
export interface SecretLevel {
  /** In the unit of the secret's notions: a ratio of odds for secret-ldp and rldp, else a lift. */
  level: Rational | null;
  odds: Rational | null;
  unit: "odds" | "lift";
  /** As in (ε, δ): P(T|s) ≤ odds·P(T|t) + δ for every set T of reports. */
  delta: Rational;
  /** The block that counts its promise for `odds`; null if every block counts its prior-free bound. */
  counted: string | null;
  /** What the public answers alone tell: 1 without public questions, null if infinite or not known. */
  strataLift: Rational | null;
  strataOdds: Rational | null;
}

/** The level of a whole report; `cost` is what the ledger charges, `ceiling` the same where no δ is left. */
export interface ReportLevel {
  secrets: Map<string, SecretLevel>;
  answers: { level: Rational | null; odds: Rational | null; delta: Rational };
  cost: { odds: Rational | null; delta: Rational };
  ceiling: Rational | null;
  lines: { block: string; countedBy: "ceiling" | "dp"; odds: Rational | null; delta: Rational }[];
  posteriors: { block: string; secret: string; sensitive: number; bound: Rational }[];
}

/**
 * What answering costs one respondent, and what is left: nats of log-odds as decimal strings, costs rounded up, what is
 * left rounded down, "inf" if infinite. `toString()` is a sentence for the respondent.
 */
export interface Budget {
  /** "0.0000" once the survey is answered. */
  cost: string;
  /** The chance that is charged with it. */
  delta: string;
  cap: string;
  spent: string;
  left: string;
  leftAfter: string;
  isAnswered: boolean;
  /** The cost is above the cap: nothing else can be answered afterwards. */
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
  token: { kind: string; key: string | null } | null;
}

/** Limits as `Client.open` takes them, checked; `allowed` is the cap on δ as an exact ratio. */
export class Policy { constructor(options?: PolicyOptions); readonly allowed: Rational; }

export { explain } from "./explain.js";

/** What a survey's link names. */
export function readLink(text: string): { origin: string; survey: string; digest: string | null };

export class Client {
  private constructor();
  readonly policy: Policy;
  static open(link: string, options?: Options): Promise<Client>;
  readonly survey: Survey;
  readonly signedBy: string[];
  /** Names the chain of keys: the digest of its version 1. What is remembered of the survey belongs to it. */
  readonly chain: string;
  readonly trust: { pinned: boolean; logged: boolean };
  /** The level of the whole report, with as much δ as the policy allows. */
  readonly level: ReportLevel;
  readonly questions: Question[];
  /** With a budget, the words say what is left before and after, too. */
  explain(language?: string, budget?: Budget): Explanation;
  /** What answering costs this respondent, and what is left before and after; nothing is charged. */
  budget(respondent?: string): Promise<Budget>;
  answered(respondent?: string): Promise<Receipt | null>;
  answer(
    answers: Answers,
    options?: { strata?: Choices; respondent?: string; token?: string | null; patienceMs?: number },
  ): Promise<Receipt>;
  flush(timeoutMs?: number): Promise<Receipt[]>;
  /** What contradicts each other; `chain` is the first root of the keys it was signed under. */
  evidence(): Promise<{ chain: string; digest: string; data: Uint8Array }[]>;
  on(name: "opened" | "log_renamed" | "sealed" | "sent" | "queued" | "refused" | "*", listener: (event: FranklyEvent) => void): () => void;
  close(): void;
}

/** `detail` is in words with `@frankly/sdk` and the element; with `@frankly/sdk/core` it is a key for `describe` of `@frankly/sdk/texts`. */
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
export class SurveyClosed extends FranklyError {}
export class StoreError extends FranklyError {}
export class NetworkError extends FranklyError {}
