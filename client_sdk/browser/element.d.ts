// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/element`. */
import type { FranklyEvent, Options, Texts } from "./frankly.d.ts";

/** `detail` of the event `frankly-error`; `code` is one of docs/errors.md. */
export interface ErrorDetail { code: string; detail: string; field: string | null; }

/** The element's events, all of which bubble; none depends on an answer. */
export interface FranklyElementEvents {
  "frankly-opened": CustomEvent<FranklyEvent>;
  "frankly-planned": CustomEvent<FranklyEvent>;
  "frankly-sealed": CustomEvent<FranklyEvent>;
  "frankly-sent": CustomEvent<FranklyEvent>;
  "frankly-queued": CustomEvent<FranklyEvent>;
  "frankly-refused": CustomEvent<FranklyEvent>;
  "frankly-log_renamed": CustomEvent<FranklyEvent>;
  "frankly-language": CustomEvent<{ language: string }>;
  "frankly-error": CustomEvent<ErrorDetail>;
}

/** Attributes of `<frankly-survey>` in markup and in JSX. */
export interface FranklyAttributes {
  /** Removing it forgets what was entered. */
  link?: string;
  lang?: string;
  cap?: string;
  "final-surveys"?: string;
  store?: string;
  token?: string;
  /** An https address, shown after the answer. */
  "return-to"?: string;
  /** Shown after the answer. */
  "completion-code"?: string;
}

/** Strings by language, for languages that the element does not include. */
export type Strings = Record<string, Record<string, string>>;

/** `<frankly-survey link="…">`; importing the module defines it, unless there is no DOM. */
export class FranklySurvey extends HTMLElement {
  /** Read when the element opens: set it before the link. */
  options: Options;
  strings: Strings;
  /** Texts for explanations, by survey language; they replace the SDK's texts. */
  texts: Record<string, Texts>;
  /** The attribute `token`, read when the answer is sent. Without it, the form of a survey that requires a token has a field for it. */
  get token(): string | null;
  set token(token: string | null | undefined);
}

declare global {
  interface HTMLElementTagNameMap { "frankly-survey": FranklySurvey; }
  interface HTMLElementEventMap extends FranklyElementEvents {}
}
