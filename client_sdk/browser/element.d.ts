// SPDX-License-Identifier: Apache-2.0
import type { Options } from "./frankly.d.ts";

/** `<frankly-survey link="…">`; importing the module defines it. */
export class FranklySurvey extends HTMLElement {
  options: Options;
  /** Strings by language, for languages the element does not speak. */
  strings: Record<string, Record<string, string>>;
}

declare global {
  interface HTMLElementTagNameMap { "frankly-survey": FranklySurvey; }
}
