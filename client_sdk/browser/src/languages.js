// SPDX-License-Identifier: Apache-2.0
/** Choice of a language, and its direction. */

/** Return the language of a tag such as de-AT. */
export const baseOf = (/** @type {string} */ language) => language.split("-")[0].toLowerCase();

const RIGHT_TO_LEFT = ["ar", "arc", "ckb", "dv", "fa", "he", "ku", "ps", "sd", "syr", "ug", "ur", "yi"];

/** Names of languages in themselves; asking the browser for the first one takes 20 ms, because it loads a table. @type {Record<string, string>} */
export const NAMES = {
  ar: "العربية", de: "Deutsch", en: "English", es: "español", fr: "français", it: "italiano", ja: "日本語", nl: "Nederlands", pl: "polski", pt: "português",
  tr: "Türkçe", uk: "українська", zh: "中文",
};

/** Return the name of a language in itself. */
export const nameOf = (/** @type {string} */ tag) => NAMES[tag] ?? new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;

/** Return the direction in which a language is written. */
export const directionOf = (/** @type {string} */ language) => (RIGHT_TO_LEFT.includes(baseOf(language)) ? "rtl" : "ltr");

/** Return the first of the wanted languages that the survey has, otherwise the survey's first. */
export function choose(/** @type {readonly string[]} */ wanted, /** @type {string[]} */ offered) {
  for (const tag of wanted) {
    const found = offered.find((one) => one === tag) ?? offered.find((one) => baseOf(one) === baseOf(tag));
    if (found) return found;
  }
  return offered[0];
}
