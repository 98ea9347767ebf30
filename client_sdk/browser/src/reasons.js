// SPDX-License-Identifier: Apache-2.0
/** Why a survey cannot be answered, in a respondent's language: the texts of errors are English, for developers. */

import { NetworkError } from "./errors.js";
import { fill } from "./words.js";

/** Names of texts, each with the codes of its errors; the first that matches is used. @type {[string, RegExp][]} */
const REASONS = [
  ["why_link", /^(link|insecure_transport|not_found|policy_unpinned)$/],
  ["why_closed", /^closed$/],
  ["why_browser", /^(unsupported|document_type)$/],
  ["why_document", /^(document_|policy_unlogged)/],
  ["why_limits", /^policy_/],
  ["why_store", /^store$/],
];

/** Errors whose code is that of others, which have another reason: a wrong clock, a page without https, another format. */
const OWN = /^(keys_window|insecure_page|payload_type)$/;

/** Return the reason for an error of the SDK in a language; empty if its code says all that is known. */
export function reasonOf(
  /** @type {import("./errors.js").FranklyError} */ error, /** @type {import("./words.js").Strings} */ strings, /** @type {string} */ language,
) {
  const { code, said: [key, ...values] } = error;
  if (key === "window") {
    const [from, to, now] = values.map((at) => new Date(at).toLocaleString(language, { dateStyle: "long", timeStyle: "short" }));
    return fill(strings.why_window, { from, to, now });
  }
  if (OWN.test(key)) return "";
  const [name = error instanceof NetworkError ? "why_network" : ""] = REASONS.find(([, codes]) => codes.test(code)) ?? [];
  return strings[name] ?? "";
}
