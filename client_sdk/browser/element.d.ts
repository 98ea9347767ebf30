// SPDX-License-Identifier: Apache-2.0
import type { Options } from "./frankly.d.ts";

/** `<frankly-survey link="…">`; importing the module defines it. */
export class FranklySurvey extends HTMLElement {
  /** Read when the element opens: set it before the link. */
  options: Options;
  /** Strings by language, for languages the element does not speak. */
  strings: Record<string, Record<string, string>>;
  /** The attribute `token`, read when somebody answers; a survey that asks for one has a field for it otherwise. */
  get token(): string | null;
  set token(token: string | null | undefined);
}

declare global {
  interface HTMLElementTagNameMap { "frankly-survey": FranklySurvey; }
}
