// SPDX-License-Identifier: Apache-2.0
/** Texts of the element by language; the survey's texts come from the signed document. */

import { part } from "./errors.js";

/** @typedef {Record<string, string>} Strings */

const PATIENCE = 3000;

/** Texts of the languages that are loaded. @type {Record<string, Strings>} */
export const STRINGS = {
  en: {
    loading: "Checking the survey…",
    private: "Your answers are randomised on this device; only the random result is sent. Below you can read what it can tell.",
    public: "Sent as you give it, not randomised",
    unchanged: "This survey sends at least one of your answers unchanged.",
    learnsOne: "Whoever guesses one of your answers from the random result alone is right at most {guess} of the time; by guessing blindly, {blind}, if all answers are equally common.",
    learns: "Whoever guesses your answer from the random result alone is right {guess} of the time; by guessing blindly, {blind}, if all answers are equally common.",
    details: "What leaves this device, and what it can tell",
    english: "",
    final: "Once sent, your answer cannot be withdrawn.",
    send: "Randomise and send",
    sending: "Sending…",
    missing: "Please answer this question.",
    boxes: "Tick all that apply. If none does, tick nothing.",
    range: "Only the range in which the number lies goes into the random draw; the number itself stays on this device. The ranges:",
    number: "Please enter a whole number, {least} or more.",
    invitation: "Invitation",
    invited: "The code you were given. It is sent along, not randomised, and counts once.",
    uninvited: "This code does not open the survey. Please enter the whole of yours.",
    spent: "The server does not take this invitation: it has been used, or belongs to another survey. Nothing of yours was kept.",
    sent: "Thank you. Your randomised answer has arrived, and this device has erased it.",
    queued: "Thank you. Your randomised answer is sealed on this device and will be sent when the server can be reached.",
    refused: "The survey takes no more answers. Nothing of yours was kept.",
    before: "This device has answered already; the first answer stands.",
    failed: "This survey cannot be answered here. Nothing was sent.",
    retry: "Try again",
    served: "This page came from the server that collects the answers. That protects less than an app that brings its own copy of this code and knows the survey beforehand.",
    language: "Language",
  },
};

/** Languages that are loaded when needed. @type {Record<string, () => Promise<{strings: Strings}>>} */
const MORE = { ar: () => import("./words.ar.js") };

/** Load the texts of a language, if there are any; if the network fails or is slow, the element stays English. */
export async function learn(/** @type {string} */ language) {
  const tag = language.split("-")[0];
  if (Object.hasOwn(MORE, tag) && !STRINGS[tag]) await part(MORE[tag], PATIENCE).then(({ strings }) => (STRINGS[tag] = strings), () => undefined);
}

const RIGHT_TO_LEFT = ["ar", "arc", "ckb", "dv", "fa", "he", "ku", "ps", "sd", "syr", "ug", "ur", "yi"];

/** Return the direction in which a language is written. */
export const directionOf = (/** @type {string} */ language) => (RIGHT_TO_LEFT.includes(language.split("-")[0]) ? "rtl" : "ltr");

/** Return the texts in a language; missing ones are in English. */
export const stringsFor = (/** @type {string} */ language, /** @type {Record<string, Strings>} */ more = {}) => ({
  ...STRINGS.en, ...(STRINGS[language.split("-")[0]] ?? {}), ...(more[language] ?? more[language.split("-")[0]] ?? {}),
});

/** Return true if the element has texts in a language. */
export const speaks = (/** @type {string} */ language, /** @type {Record<string, Strings>} */ more = {}) =>
  Boolean(STRINGS[language.split("-")[0]] ?? more[language] ?? more[language.split("-")[0]]);

/** Return the first of the wanted languages that the survey has, otherwise the survey's first. */
export function choose(/** @type {readonly string[]} */ wanted, /** @type {string[]} */ offered) {
  for (const tag of wanted) {
    const found = offered.find((one) => one === tag) ?? offered.find((one) => one.split("-")[0] === tag.split("-")[0]);
    if (found) return found;
  }
  return offered[0];
}
