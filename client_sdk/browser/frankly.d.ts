// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk`. */

/** An exact ratio n/d in lowest terms; null where one is infinite. */
export type Rational = [bigint, bigint];
/** A text per language tag. */
export type Words = Record<string, string>;
/** Question id → choice id. */
export type Choices = Record<string, string>;

export interface Question { id: string; text: Words; choices: { id: string; label: Words }[]; }

/** What became of an answer; `detail` as an error's. */
export interface Receipt { status: "sent" | "queued" | "refused" | "disabled"; code: string; detail: string; }

/** Something that happened; nothing in it depends on an answer or a draw. `detail` is as an error's, or empty. */
export interface FranklyEvent { name: string; survey: string; code: string; detail: string; }

export interface PolicyOptions {
  /** Nats that all surveys answered by this install may cost together, as a decimal string; "5" by default. */
  cap?: string;
  /** Nats: blocks that rest on a prior must have a ceiling within it, and may then come unpinned. */
  maxCeiling?: string | null;
  /** Accept links without a digest and without a log. */
  allowUnpinned?: boolean;
  /** Accept only what a watched transparency log vouches for. */
  requireLog?: boolean;
  /** The chance, below 1, with which the cap may fail: δ of (ε, δ) promises that count as stated; "0" by default. */
  deltaCap?: string;
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
  formNats: string;
  /** The chance with which `formNats` fails; 0 unless the policy allows one. */
  formDelta: Rational;
  signedBy: string[];
  leaves: string;
  words: string;
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
  readonly questions: Question[];
  explain(language?: string): Explanation;
  answered(respondent?: string): Promise<Receipt | null>;
  answer(
    choices: Choices,
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
