// SPDX-License-Identifier: Apache-2.0
/** Texts of the element and of explanations by language; the survey's own texts come from the signed document. */

import { InvalidInput, part } from "./errors.js";
import { baseOf } from "./languages.js";
import * as english from "./words.en.js";

export { baseOf, choose, directionOf, nameOf } from "./languages.js";

/** @typedef {Record<string, string>} Strings texts of the element */
/** @typedef {Record<string, Record<string, string | Record<string, string>>>} Catalogue texts of explanations, by part and name */
/** @typedef {{strings: Strings, texts: any}} Language */

const PATIENCE = 3000;

/** Languages that are loaded. @type {Record<string, Language>} */
const LOADED = { en: english };

/** Languages that are loaded when needed. @type {Record<string, () => Promise<Language>>} */
const MORE = {
  ar: () => import("./words.ar.js"),
  de: () => import("./words.de.js"),
  es: () => import("./words.es.js"),
  fr: () => import("./words.fr.js"),
  it: () => import("./words.it.js"),
  ja: () => import("./words.ja.js"),
  nl: () => import("./words.nl.js"),
  pl: () => import("./words.pl.js"),
  pt: () => import("./words.pt.js"),
  tr: () => import("./words.tr.js"),
  uk: () => import("./words.uk.js"),
  zh: () => import("./words.zh.js"),
};

/** Load the texts of a language, if there are any; if the network fails or is slow, they stay English. */
export async function learn(/** @type {string} */ language) {
  const tag = baseOf(language);
  if (Object.hasOwn(MORE, tag) && !LOADED[tag]) await part(MORE[tag], PATIENCE).then((loaded) => (LOADED[tag] = loaded), () => undefined);
}

/** Return the element's texts in a language; missing ones are in English. */
export const stringsFor = (/** @type {string} */ language, /** @type {Record<string, Strings>} */ more = {}) => ({
  ...english.strings, ...LOADED[baseOf(language)]?.strings, ...(more[language] ?? more[baseOf(language)] ?? {}),
});

/** Return true if the element has texts in a language. */
export const speaks = (/** @type {string} */ language, /** @type {Record<string, Strings>} */ more = {}) =>
  Boolean(LOADED[baseOf(language)]?.strings ?? more[language] ?? more[baseOf(language)]);

const PARTS = ["label", "explanation", "promises", "whole", "budget"];
/** Return the names in braces. @returns {string[]} */
const namesIn = (/** @type {string} */ text) => text.match(/\{\w+\}/g) ?? [];
const isMap = (/** @type {unknown} */ value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Check an app's own texts as the Python SDK does; raises InvalidInput. */
export function requireTexts(/** @type {any} */ own) {
  const need = (/** @type {unknown} */ holds, /** @type {string} */ field, /** @type {string} */ code, /** @type {import("./errors.js").Said} */ ...said) => {
    if (!holds) throw new InvalidInput(code, field, ...said);
  };
  need(isMap(own), "texts", "field_type", "no_texts");
  for (const [part, entries] of Object.entries(own)) {
    need(PARTS.includes(part), `texts.${part}`, "field_unknown", "text_part", PARTS);
    need(isMap(entries), `texts.${part}`, "field_type", "no_texts");
    for (const [name, text] of Object.entries(entries)) {
      const field = `texts.${part}.${name}`, known = /** @type {any} */ (english.texts)[part];
      need(Object.hasOwn(known, name), field, "field_unknown", "text_name");
      const forms = isMap(text) ? text : { other: text };
      need(Object.hasOwn(forms, "other") && Object.values(forms).every((form) => typeof form === "string"), field, "field_type", "text_forms");
      const allowed = namesIn(known[name].other ?? known[name]);
      need(Object.values(forms).every((form) => namesIn(form).every((one) => allowed.includes(one))), field, "field_type", "text_braces", allowed);
    }
  }
}

/** Return a text with values for the names in braces, in one pass, because a value may hold braces too. */
export const fill = (/** @type {string} */ text, /** @type {Record<string, unknown>} */ values) => text.replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole));

/** Texts of explanations in one language; an app's own texts replace those of the same part and name. */
export class Texts {
  constructor(/** @type {string} */ tag, /** @type {Catalogue} */ own = {}) {
    this.language = Object.hasOwn(LOADED, baseOf(tag)) ? baseOf(tag) : "en";
    this.own = own;
  }

  /** Return a text with its values; `n` is the number that its plural form depends on. */
  say(/** @type {string} */ part, /** @type {string} */ name, /** @type {Record<string, unknown>} */ values = {}) {
    let text = this.own[part]?.[name] ?? LOADED[this.language].texts[part][name];
    if (typeof text !== "string") text = text[new Intl.PluralRules(this.language).select(Number(values.n))] ?? text.other;
    return fill(text, values);
  }

  /** Return a number such as 2.72, 73.1% or inf as it is written in the language. */
  figure(/** @type {string} */ number) {
    const written = number.replace("%", "").replace(".", LOADED[this.language].texts.decimal).replace("inf", "∞");
    return number.endsWith("%") ? this.say("explanation", "percent", { number: written }) : written;
  }
}
