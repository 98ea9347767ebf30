// SPDX-License-Identifier: Apache-2.0
/**
 * Preview of a survey's questions before verification: they are shown, but nothing can be entered. The element, which
 * checks signature and privacy, then replaces the preview.
 */

import { choose, directionOf } from "./languages.js";

const make = (/** @type {string} */ tag, /** @type {object} */ properties = {}, /** @type {(Node | string)[]} */ ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** Return a preview of the questions in an envelope; throws if its bytes are not an envelope. */
export function preview(/** @type {string} */ envelope, /** @type {readonly string[]} */ wanted) {
  const bytes = Uint8Array.from(atob(JSON.parse(envelope).payload), (one) => one.charCodeAt(0));
  const { title, languages, consent, arms, ...asked } = JSON.parse(new TextDecoder().decode(bytes));
  const { strata = [], blocks, instructed } = arms ? { blocks: [] } : asked, lang = choose(wanted, languages);
  // Of arms, and of forms that ask only what is drawn, nothing is shown before the draw. The boxes of a question are one field.
  const own = blocks.flatMap((/** @type {any} */ block) => (block.ask ? [] : block.questions))
    .filter((/** @type {any} */ { box }, /** @type {number} */ i, /** @type {any[]} */ all) => !box || box.of !== all[i - 1]?.box?.of);
  const half = Math.ceil(own.length / 2); // as in the element, the instructed item stands in the middle
  const fields = [...strata, ...own.slice(0, half), ...(instructed ? [instructed] : []), ...own.slice(half)].flatMap(({ text, choices, box, ask_if: rule }) => {
    if (rule) return [];
    const labels = box ? [] : choices.filter((/** @type {any} */ { from }) => from === undefined);
    return [make("fieldset", { disabled: true }, make("legend", {}, (box ?? { text }).text[lang]),
      ...labels.map((/** @type {any} */ { label }) => make("label", {}, make("input", { type: "radio" }), label[lang])))];
  });
  return make("div", { lang, dir: directionOf(lang), ariaBusy: "true" }, make("h1", {}, title[lang]), ...(consent ? [make("p", {}, consent[lang])] : []), ...fields);
}
